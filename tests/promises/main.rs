//! The promises of the design, each a module of its name, held against both stores through the public face.

#[path = "../support/mod.rs"]
mod support;

mod input;
mod input_hostile;
mod input_server;
mod outage;
mod p01_declared;
mod p01_limit;
mod p02_close;
mod p02_deadlines;
mod p02_races;
mod p03_conservation;
mod p03_orphans;
mod p04_idempotence;
mod p05_fence;
mod p06_fifo;
mod p07_wakeup;
mod p08_crash;
mod p08_presence;
mod p09_state_loss;
mod p10_clocks;
mod p11_cost;
mod p12_idle;
mod p13_hosts;
mod reports;
mod stores;
mod tools;
mod workers;
