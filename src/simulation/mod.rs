//! A deterministic simulation of the whole system.

pub(crate) mod redis;
