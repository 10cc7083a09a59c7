//! What chance would seldom bring about, step by step on both sides.

use super::plan::{Knows, Op, Plan};
use super::twins::Twins;
use super::wire::InMemory;
use super::*;
use crate::simulation::redis::Rewrite;

/// More than one call may look at: what is left is for the next, and each step is the model's.
#[test]
fn a_crowd_is_served_and_dropped_batch_by_batch() {
    compare_crowd(None);
}

/// Requests that follow one another are one run of a script, but for those of which something is not where it should be.
#[test]
fn parcels_travel_as_such_when_all_is_in_its_place() {
    compare_parcels(None);
}

fn compare_parcels(rewrite: Option<Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite.clone())), Some(START));
    let acquire = |no, cost| Plan::Acquire { no, cost, may_wait: true, old_order: false };
    let release = |no| Plan::Release(vec![(no, true)]);
    let once = |twins: &mut Twins, plans: Vec<Plan>| {
        let before = twins.parcels;
        twins.apply(&Op::Parcel(0, plans));
        twins.parcels > before
    };
    // With a label or not, and a cost or not, in each order; and everything that lies in the way of what comes next.
    (0..3).for_each(|_| twins.bare(0, &acquire(1, 1)));
    assert!(once(&mut twins, vec![acquire(2, 2), acquire(3, 1), acquire(6, 1), release(1)]));
    assert_eq!((twins.state().held.len(), twins.state().queue.len()), (1, 2));
    assert!(once(&mut twins, vec![Plan::Cancel(vec![3]), release(2), acquire(4, 1), acquire(5, 2)]));
    assert_eq!((twins.state().held.len(), twins.state().queue.len()), (2, 1));
    assert!(once(&mut twins, vec![Plan::Cancel(vec![5]), release(6), acquire(1, 1)]));
    for not_there in [release(3), Plan::Cancel(vec![3])] {
        assert!(
            once(&mut twins, vec![acquire(2, 1), not_there, release(4), acquire(6, 1)]),
            "a ticket that is not there"
        );
    }
    // By one who is known, whatever configuration it knows; not by one who may have something to bring back.
    let mut other = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    other.bare(0, &acquire(1, 1));
    assert!(once(&mut other, vec![acquire(2, 1), acquire(3, 1), release(1)]), "by one who has just learnt of it");
    other.bare(1, &Plan::Limit(3));
    assert!(once(&mut other, vec![acquire(4, 1), Plan::Cancel(vec![3])]), "by one who knows an old one");
    twins.apply(&Op::Restart);
    assert!(!once(&mut twins, vec![acquire(2, 1), acquire(3, 1)]), "by one of whom something new is to be judged");
}

/// Nobody is put into a line that was lost, nobody takes what may be another's, and those who were there are brought
/// back: what heartbeats and an operator's verbs find at once, requests find where they miss something.
#[test]
fn a_key_that_was_lost_is_noticed_by_whoever_relies_on_it() {
    compare_lost_key(None);
}

fn compare_lost_key(rewrite: Option<Rewrite>) {
    const LINE: usize = 1;
    const HELD: usize = 2;
    const INSTANCES: usize = 3;
    let acquire = |no| Plan::Acquire { no, cost: 1, may_wait: true, old_order: false };
    let verb = |verb| Op::Verb { instance: 0, knows: Knows::Latest, bare: false, declares: None, verb };
    let mut cases = vec![(LINE, verb(acquire(5))), (LINE, Op::Parcel(0, vec![acquire(5), acquire(6)]))];
    for key in [LINE, HELD, INSTANCES] {
        let thorough = [Plan::Sync(Vec::new()), Plan::Restore(Vec::new()), Plan::PutBack(1, true), Plan::Limit(3)];
        let rest = [Plan::Revoke(0, 1), Plan::Leave];
        cases.extend(thorough.into_iter().chain(rest).map(|plan| (key, verb(plan))));
    }
    for (key, op) in cases {
        let mut twins = Twins::new(Box::new(InMemory::new(rewrite.clone())), Some(START));
        (1..=3).for_each(|no| twins.bare(0, &acquire(no)));
        twins.apply(&verb(acquire(4)));
        twins.lose(key);
        twins.apply(&op);
        let left = twins.state();
        assert!(
            twins.parcels == 0 && left.queue.is_empty() && left.held.is_empty(),
            "{op:?} without key {key}: {left:?}"
        );
    }
}

/// Whoever believes in a longer lease than the limiter has is given the time to hear of it.
#[test]
fn one_who_believes_in_another_lease_has_time_to_learn_it() {
    compare_short_lease(None);
}

fn compare_short_lease(rewrite: Option<Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    let (ann, bob) = (0, 1);
    let acquire = |no| Plan::Acquire { no, cost: 1, may_wait: true, old_order: false };
    twins.bare(ann, &acquire(1));
    twins.bare(ann, &Plan::Lease(1500));
    for head in [Vec::new(), vec![1], Vec::new(), vec![1]] {
        twins.bare(ann, &Plan::Sync(head)); // by one who knows the lease, and by one who does not
        twins.bare(bob, &acquire(1)); // with an hour in mind, until it has seen the configuration
        twins.bare(bob, &Plan::Sync(vec![1]));
        twins.bare(bob, &Plan::Leave);
    }
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

fn compare_full(rewrite: Option<Rewrite>) {
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

fn compare_silence(rewrite: Option<Rewrite>) {
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

fn compare_last_moment(rewrite: Option<Rewrite>) {
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

fn compare_no_line(rewrite: Option<Rewrite>) {
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

fn compare_crowd(rewrite: Option<Rewrite>) {
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

fn compare_set_back(rewrite: Option<Rewrite>) {
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

fn compare_estimates(rewrite: Option<Rewrite>) {
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

fn compare_mixed_crowd(rewrite: Option<Rewrite>) {
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

/// One of the caller's own can never be served any more, and another is, in the same call.
#[test]
fn all_news_of_ones_own_come_with_the_answer() {
    compare_own_news(None);
}

fn compare_own_news(rewrite: Option<Rewrite>) {
    let mut twins = Twins::new(Box::new(InMemory::new(rewrite)), Some(START));
    let acquire = |no, cost| Plan::Acquire { no, cost, may_wait: true, old_order: false };
    twins.bare(0, &acquire(1, 2));
    for plan in [Plan::Limit(4), acquire(2, 4), acquire(3, 1), Plan::Limit(3)] {
        twins.bare(0, &plan);
    }
    assert_eq!((twins.state().held.len(), twins.state().queue.len()), (2, 0));
}

/// All that is compared step by step, with scripts that are others than ours.
pub(crate) fn compare_directly(rewrite: &Rewrite) {
    for compare in [
        compare_full,
        compare_silence,
        compare_last_moment,
        compare_no_line,
        compare_estimates,
        compare_set_back,
        compare_mixed_crowd,
        compare_crowd,
        compare_parcels,
        compare_lost_key,
        compare_short_lease,
        compare_own_news,
    ] {
        compare(Some(rewrite.clone()));
    }
}
