//! The same random verbs on the model and on real servers must give the same answers, tell the same owners, and leave
//! the same state. This is what makes the model the specification of the scripts.
//!
//! Times differ between the two, so orders, fences and epochs are compared by rank, and leases are so long that only
//! the test itself lets an instance expire or a grace end. On the simulation's server both share a clock: there everything is
//! compared as it is, and time passes as it likes.

mod plan;
mod scenes;
mod twins;
mod view;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use ::redis::{self, Value};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

pub(crate) use self::scenes::compare_directly;
use self::twins::Twins;
pub(crate) use self::view::{State, state_of};
use self::wire::{InMemory, Sockets, Wire};
use super::model::{Caller, Model};
use super::*;
use crate::support::{Flavor, Server};

const LIMITER: &str = "conformance {of} 100%";
const INSTANCES: [&str; 3] = ["ann", "bob", "cy"];
const LEASE_MS: u64 = 3_600_000;
/// Not a whole second: an epoch is told apart by what is left of it.
const START: u64 = 1_700_000_000_123_457;

fn compare(flavor: Flavor) {
    let server = Server::start(flavor);
    let result = runner(200).run(&plan::ops(false), |ops| {
        let mut connection = server.conn();
        let _: Value = redis::cmd("FLUSHALL").query(&mut connection).unwrap();
        let mut subscriber = server.conn();
        subscriber.send_packed_command(&redis::cmd("PSUBSCRIBE").arg("fq:*").get_packed_command()).unwrap();
        subscriber.recv_response().unwrap();
        let mut twins = Twins::new(Box::new(Sockets { connection, subscriber }), None);
        ops.iter().for_each(|op| twins.apply(op));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{flavor}: {error}");
    }
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() })
}

/// The same on the simulation's server, with scripts that may be others than ours. `Err` says where they differ.
pub(crate) fn compare_simulated(cases: u32, rewrite: Option<crate::simulation::redis::Rewrite>) -> Result<(), String> {
    let mut runner = match rewrite {
        None => runner(cases),
        Some(_) => {
            // Of a mutant it is only asked whether it differs.
            let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
            TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        }
    };
    let server = InMemory::new(rewrite);
    let result = runner.run(&(plan::ops(true), proptest::bool::ANY), |(ops, is_full)| {
        let mut wire = server.clone();
        wire.ask(&redis::cmd("FLUSHALL"));
        let mut twins = Twins::new(Box::new(wire), Some(START)).fill(is_full);
        ops.iter().for_each(|op| twins.apply(op));
        Ok(())
    });
    result.map_err(|error| error.to_string())
}

#[test]
fn the_simulated_server_does_what_the_model_says() {
    if let Err(error) = compare_simulated(400, None) {
        panic!("{error}");
    }
}

/// `lua/lib/finish.lua` writes half of the numbers as they were read, unless a script has said that they changed.
#[test]
fn numbers_that_are_written_as_they_were_read_have_not_changed() {
    const EITHER: &str = "(cold or struct.pack(";
    let checked = |source: &str| {
        let Some((before, rest)) = source.split_once(EITHER) else { return source.to_owned() };
        let (numbers, after) = rest.split_once(" .. '2')").expect("the end of finish");
        let check = format!(
            "(function() local anew = struct.pack({numbers} .. '2'
            if cold and cold ~= anew then error('they have') end
            return anew end)()"
        );
        format!("{before}{check}{after}")
    };
    if let Err(error) = compare_simulated(300, Some(std::rc::Rc::new(checked))) {
        panic!("{error}");
    }
}

#[test]
fn redis_6_2_does_what_the_model_says() {
    on(Flavor::Redis62);
}

#[test]
fn redis_7_0_does_what_the_model_says() {
    on(Flavor::Redis70);
}

#[test]
fn redis_8_2_does_what_the_model_says() {
    on(Flavor::Redis82);
}

#[test]
fn valkey_8_1_does_what_the_model_says() {
    on(Flavor::Valkey81);
}

#[test]
fn valkey_9_1_does_what_the_model_says() {
    on(Flavor::Valkey91);
}

/// A server that is not here is reported by the test command's table.
fn on(flavor: Flavor) {
    if Flavor::available().contains(&flavor) {
        compare(flavor);
    }
}
