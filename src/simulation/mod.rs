//! A deterministic simulation of the whole system.

mod checks;
mod faults;
mod instance;
mod link;
mod mutants;
mod oracle;
pub(crate) mod redis;
mod regressions;
mod rng;
mod run;
mod server;
mod trace;
mod view;
mod workload;
mod world;
