//! The promises of the design, each a module of its name, held against both stores through the public face.

#[path = "../support/mod.rs"]
mod support;

mod p02_races;
mod stores;
