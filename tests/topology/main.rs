//! The promises in a Redis Cluster and behind sentinels, while masters die and slots move.
//!
//! The tests that run by default take one kind of server. Those on all kinds, and those that go on for longer, run by
//! `cargo test --all-features --test topology -- --ignored`.

#[allow(dead_code)] // made for the promises, of which a part is wanted here
#[path = "../promises/stores.rs"]
mod stores;
#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod cluster_faults;
mod scene;
mod sentinel;
mod sentinel_faults;
