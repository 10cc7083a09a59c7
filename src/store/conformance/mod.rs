//! The same random verbs on the model and on real servers must give the same answers, tell the same owners, and leave
//! the same state. This is what makes the model the specification of the scripts.
//!
//! Times differ between the two, so orders, fences and epochs are compared by rank, and leases are so long that only
//! the test itself lets an instance expire or a grace end. On the simulation's server both share a clock: there everything is
//! compared as it is, and time passes as it likes.

mod plan;
mod twins;
mod view;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use ::redis::{self, Value};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use self::plan::{Knows, Op, Plan};
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

/// More than one call may look at: what is left is for the next, and each step is the model's.
#[test]
fn a_crowd_is_served_and_dropped_batch_by_batch() {
    compare_crowd(None);
}

/// What is looked up at the beginning of a parcel is true to its end: a ticket is named there once.
#[test]
fn a_ticket_that_is_named_twice_in_a_parcel_is_what_it_is_the_second_time() {
    let mut twins = Twins::new(Box::new(InMemory::new(None)), Some(1_700_000_000_000_000));
    let acquire = |no, cost| Plan::Acquire { no, cost, may_wait: false, old_order: false };
    (0..3).for_each(|_| twins.bare(0, &acquire(5, 2)));
    let calls = vec![Plan::Release(vec![(5, true)]), acquire(1, 1), acquire(5, 1), Plan::Cancel(vec![5])];
    twins.apply(&Op::Parcel(0, calls));
    assert_eq!(twins.state().used, 1);
}

/// A loss of state, and a grant in the same microsecond as one before it: two tickets have one fence.
#[test]
fn tickets_that_share_a_fence_are_two() {
    let mut twins = Twins::new(Box::new(InMemory::new(None)), Some(START));
    let (ann, bob) = (0, 1);
    twins.bare(ann, &Plan::Acquire { no: 2, cost: 1, may_wait: true, old_order: false });
    twins.apply(&Op::Lose);
    twins.bare(bob, &Plan::Acquire { no: 1, cost: 1, may_wait: true, old_order: false });
    twins.bare(ann, &Plan::Restore(vec![(2, RestoreKind::Held)]));
    assert_eq!(twins.state().held.len(), 2);
    twins.bare(ann, &Plan::Release(vec![(2, true)]));
    assert_eq!(twins.state().held.len(), 1);
}

/// A new request needs memory, and is refused by a server that has none; what was there goes on.
#[test]
fn a_full_server_refuses_only_what_is_new() {
    compare_full(None);
}

fn compare_full(rewrite: Option<crate::simulation::redis::Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START)).fill(true);
    let (ann, bob, cy) = (0, 1, 2);
    let acquire = |no| Plan::Acquire { no, cost: 1, may_wait: true, old_order: false };
    twins.bare(ann, &Plan::Sync(Vec::new()));
    for no in 1..=3 {
        assert!(twins.refuses(ann, &acquire(no)), "{no} was put into the line of a full server");
        twins.bare(ann, &acquire(no));
    }
    twins.bare(bob, &Plan::Cancel(vec![7])); // which makes it known
    twins.apply(&Op::Advance(30));
    twins.apply(&Op::Reconnect(ann, true));
    twins.bare(ann, &Plan::Release(vec![(9, true)])); // renews it, by a new connection, and finds nothing
    twins.bare(ann, &Plan::Release(vec![(1, true)])); // and grants the third
    twins.bare(ann, &Plan::Cancel(vec![2, 8]));
    assert_eq!((twins.state().used, twins.state().queue.len()), (1, 0));
    // A stranger who says that it holds something is told to bring it back, and does.
    for plan in [Plan::Sync(vec![2]), Plan::PutBack(2, true), Plan::Restore(vec![(2, RestoreKind::Held)])] {
        twins.verb(cy, Knows::Nothing, false, None, &plan);
    }
    assert_eq!(twins.state().held.len(), 2);
    // A new epoch, which begins with nothing, is not begun by one who is refused.
    twins.apply(&Op::Restart);
    assert!(twins.refuses(ann, &acquire(10)), "an epoch was begun by one who finds no room in it");
}

/// Who has joined by a request and falls silent is reaped when its lease ends, though nobody else's has.
#[test]
fn one_who_joined_by_a_request_is_reaped_in_time() {
    compare_silence(None);
}

fn compare_silence(rewrite: Option<crate::simulation::redis::Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    let (ann, bob) = (0, 1);
    let acquire = |no| Plan::Acquire { no, cost: 1, may_wait: true, old_order: false };
    for instance in [ann, bob] {
        twins.bare(instance, &acquire(1));
    }
    for step in [45, 45, 20] {
        twins.apply(&Op::Advance(step));
        twins.bare(bob, &acquire(1));
    }
    assert_eq!(twins.state().instances.len(), 1);
}

/// A lease is over after its end, not with it.
#[test]
fn one_whose_lease_ends_this_microsecond_is_alive() {
    compare_last_moment(None);
}

fn compare_last_moment(rewrite: Option<crate::simulation::redis::Rewrite>) {
    for by in [Plan::Release(vec![(1, true)]), Plan::Limit(1)] {
        let mut twins = Twins::new(Box::new(InMemory::new(rewrite.clone())), Some(START));
        let (ann, bob) = (0, 1);
        let acquire = |no| Plan::Acquire { no, cost: 1, may_wait: true, old_order: false };
        (1..=2).for_each(|no| twins.bare(bob, &acquire(no)));
        twins.bare(ann, &acquire(1));
        for step in [45, 45, 10] {
            twins.apply(&Op::Advance(step));
            twins.bare(bob, &if step == 10 { by.clone() } else { acquire(1) });
        }
        assert_eq!(twins.state().instances.len(), 2);
    }
}

/// What needs no waiting finds room in a line that may have nobody.
#[test]
fn a_line_of_nobody_admits_at_once() {
    compare_no_line(None);
}

fn compare_no_line(rewrite: Option<crate::simulation::redis::Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    let acquire = |no, cost| Plan::Acquire { no, cost, may_wait: true, old_order: false };
    twins.bare(0, &Plan::Sync(Vec::new()));
    twins.bare(0, &Plan::MaxQueue(0));
    twins.bare(0, &acquire(1, 1));
    twins.bare(0, &acquire(2, 2)); // full
    twins.bare(0, &acquire(3, 1));
    twins.bare(0, &acquire(4, 1)); // full
    assert_eq!((twins.state().held.len(), twins.state().queue.len()), (2, 0));
    twins.bare(0, &Plan::MaxQueue(1));
    twins.bare(0, &acquire(5, 1));
    twins.bare(0, &acquire(6, 1)); // full
    assert_eq!((twins.state().held.len(), twins.state().queue.len()), (2, 1));
}

fn compare_crowd(rewrite: Option<crate::simulation::redis::Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    let crowd = |from: u64| Plan::Restore((from..from + 300).map(|no| (no, RestoreKind::Waiting)).collect());
    let (ann, bob, cy) = (0, 1, 2);
    twins.bare(ann, &crowd(1));
    twins.bare(bob, &Plan::Limit(1000));
    twins.syncs(bob, 6);
    twins.bare(cy, &crowd(1001));
    twins.bare(bob, &Plan::Limit(1)); // what costs two can never fit now
    twins.syncs(bob, 6);
    for _ in 0..3 {
        twins.apply(&Op::Advance(45)); // ann and cy do not report
        twins.syncs(bob, 1);
    }
    twins.syncs(bob, 10);
    let left = twins.state();
    assert!(left.queue.is_empty() && left.held.is_empty(), "{left:?}");
}

/// Who comes after a loss of state stands behind those who came before it, also when the clock was set back with it.
#[test]
fn newcomers_stand_behind_whoever_is_brought_back() {
    compare_set_back(None);
}

fn compare_set_back(rewrite: Option<crate::simulation::redis::Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    let acquire = |no| Plan::Acquire { no, cost: 1, may_wait: true, old_order: false };
    (1..=4).for_each(|no| twins.bare(0, &acquire(no)));
    twins.apply(&Op::Lose);
    twins.apply(&Op::Advance(-50));
    let [held, waiting] = [[1, 2], [3, 4]];
    let held = held.map(|no| (no, RestoreKind::Held)).into_iter();
    let all = held.chain(waiting.map(|no| (no, RestoreKind::Waiting))).collect();
    twins.verb(0, Knows::Latest, false, None, &Plan::Restore(all));
    twins.bare(1, &acquire(1));
    let line: Vec<String> = twins.state().queue.into_iter().map(|(ticket, ..)| ticket).collect();
    assert_eq!(line, ["ann:3", "ann:4", "bob:1"]);
}

/// What is told of the time that permits are held for, and of how long it may take: exactly the model's.
#[test]
fn estimates_follow_from_what_was_held() {
    compare_estimates(None);
}

fn compare_estimates(rewrite: Option<crate::simulation::redis::Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    let acquire = |no, cost| Plan::Acquire { no, cost, may_wait: true, old_order: false };
    twins.bare(0, &acquire(1, 2));
    twins.bare(0, &acquire(2, 1));
    twins.bare(0, &Plan::MaxQueue(1));
    for (no, next, percent) in [(1, 3, 1), (2, 4, 9), (3, 5, 2), (4, 6, 30), (5, 1, 1)] {
        twins.apply(&Op::Advance(percent));
        twins.bare(0, &Plan::Release(vec![(no, true)]));
        twins.bare(0, &Plan::Status);
        twins.bare(0, &acquire(next, 1 + next % 2));
        twins.bare(1, &acquire(next, 1)); // finds it full
        twins.bare(0, &Plan::Position(vec![no, next]));
        twins.bare(0, &Plan::Status);
        twins.bare(0, &Plan::List(true, 0, 1));
    }
    assert_eq!(twins.state().granted, 6);
    for limit in [0, 2] {
        twins.bare(0, &Plan::Limit(limit)); // admits nobody, and has no estimate
        twins.bare(0, &Plan::MaxQueue(100));
        twins.bare(2, &acquire(10 + limit, 1));
        twins.bare(2, &acquire(10 + limit, 1));
        twins.bare(2, &Plan::Position(vec![10]));
        twins.bare(0, &Plan::MaxQueue(0));
        twins.bare(2, &acquire(20 + limit, 1));
        twins.bare(0, &Plan::Status);
    }
}

/// The dead are found behind more living than one call looks at.
#[test]
fn the_dead_are_found_behind_a_crowd_of_the_living() {
    compare_mixed_crowd(None);
}

fn compare_mixed_crowd(rewrite: Option<crate::simulation::redis::Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    let (ann, bob) = (0, 1);
    let crowd = |from: u64, kind| Plan::Restore((from..from + 200).map(|no| (no, kind)).collect());
    for (from, kind) in [(1, RestoreKind::Local), (501, RestoreKind::Waiting)] {
        twins.bare(bob, &crowd(from, kind));
        twins.bare(ann, &crowd(from, kind));
    }
    for _ in 0..3 {
        twins.apply(&Op::Advance(45));
        twins.syncs(bob, 1); // ann does not report
    }
    twins.syncs(bob, 10);
    let left = twins.state();
    assert!(!left.sweeping && left.queue.len() == 200 && left.held.len() == 200, "{left:?}");
}

/// All that is compared step by step, with scripts that are others than ours.
pub(crate) fn compare_directly(rewrite: &crate::simulation::redis::Rewrite) {
    for compare in [
        compare_full,
        compare_silence,
        compare_last_moment,
        compare_no_line,
        compare_estimates,
        compare_set_back,
        compare_mixed_crowd,
        compare_crowd,
    ] {
        compare(Some(rewrite.clone()));
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
