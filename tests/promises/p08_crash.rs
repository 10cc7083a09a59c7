//! P8, crash: what a dead, stopped or cut-off process held and waited for is free again after its lease, and the
//! process, if it comes back, knows that before anything else.

use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::support::*;
use crate::tools::*;
use crate::workers::*;
use fairq::*;

const LEASE: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

fn setup(server: &Server, limit: u64) -> Setup {
    Setup::new(&server.url(), "a", limit, LEASE)
}

/// S17
#[test]
fn kill_9_of_a_holder_frees_its_slots_within_the_lease_whatever_its_max_hold() {
    let server = server();
    let mut worker = Worker::start(&Setup { max_hold: DAY, ..setup(&server, 3) });
    for label in ["x", "y", "z"] {
        worker.tell(&format!("acquire {label} 1 0"));
        worker.wait("granted", label);
    }
    let client = Client::open(&server.url()).unwrap();
    let limiter = client.limiter("a").limit(3).lease(LEASE).max_hold(DAY).poll(ms(100)).open().unwrap();
    worker.kill();
    let permit = limiter.acquire(&Request::new().cost(3).max_wait(SOON)).expect("all three slots");
    permit.release().expect("release");
    assert_empty(&server, &limiter);
}

#[test]
fn kill_9_of_waiters_in_the_middle_of_the_line_lets_those_behind_them_move_up() {
    let server = server();
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    let done = Completions::new();
    let mut workers = Vec::new();
    for token in 0..4 {
        line_up(&limiter, &done, token..token + 1);
        let mut worker = Worker::start(&setup(&server, 1));
        worker.tell("flood 3");
        wait_status(&limiter, "they wait", |s| s.waiting == 4 * (token + 1));
        workers.push(worker);
    }
    workers.iter_mut().for_each(Worker::kill);
    permit.release().expect("release");
    drain_in_order(&done, 0..4);
    // Behind the last one of ours: somebody has to ask, or there is nobody who would miss them.
    limiter.acquire(&Request::new().max_wait(SOON)).expect("a permit").release().expect("release");
    assert_empty(&server, &limiter);
}

/// S24: the question is there already when the process wakes.
#[test]
fn a_process_stopped_for_longer_than_its_lease_wakes_up_with_an_invalid_permit() {
    let server = server();
    let mut worker = Worker::start(&setup(&server, 1));
    worker.tell("acquire x 1 0");
    worker.wait("granted", "x");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    worker.tell("valid x");
    assert_eq!(worker.wait("valid", "x").words, ["true"]);
    worker.stop();
    worker.tell("valid x");
    let permit = limiter.acquire(&Request::new().max_wait(SOON)).expect("the stopped one's slot");
    worker.resume();
    eventually("it answers", SOON, || worker.count("valid") == 2);
    let reports = worker.reports();
    assert_eq!(reports.iter().rfind(|r| r.what == "valid").unwrap().words, ["false"]);
    eventually("it is told", SOON, || worker.reports().iter().any(|r| lost(r, "x")));
    permit.release().expect("release");
    assert_empty(&server, &limiter);
}

fn lost(report: &Report, label: &str) -> bool {
    report.what == "event" && report.label == label && report.words[0] == "Lost(LeaseExpired)"
}

#[test]
fn a_stopped_process_learns_its_loss_before_it_is_granted_its_next_permit() {
    let server = server();
    let mut worker = Worker::start(&setup(&server, 1));
    worker.tell("acquire x 1 0");
    worker.wait("granted", "x");
    worker.tell("acquire next 1 60000");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    wait_status(&limiter, "it waits", |s| s.waiting == 1);
    worker.stop();
    let permit = limiter.acquire(&Request::new().max_wait(SOON)).expect("past the stopped one");
    permit.release().expect("release");
    worker.resume();
    let next = worker.wait("granted", "next");
    assert_eq!(next.words[2], "", "what was still valid at that moment");
    eventually("it is told", SOON, || worker.reports().iter().any(|r| lost(r, "x")));
    worker.tell("release x");
    worker.tell("release next");
    assert_eq!(worker.wait("released", "x").words, ["PermitLost(LeaseExpired)"]);
    assert_eq!(worker.wait("released", "next").words, ["ok"]);
    assert_empty(&server, &limiter);
}

/// The message about the grant lies in its mailbox while the lease runs out.
#[test]
fn a_grant_that_a_stopped_process_finds_too_late_is_not_handed_out() {
    let server = server();
    let mut worker = Worker::start(&setup(&server, 1));
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let first = limiter.acquire(&Request::new()).expect("a permit");
    worker.tell("acquire late 1 60000");
    wait_status(&limiter, "it waits", |s| s.waiting == 1);
    worker.stop();
    first.release().expect("release");
    wait_status(&limiter, "it is granted to the stopped one", |s| s.holders == 1);
    let second = limiter.acquire(&Request::new().max_wait(SOON)).expect("past the stopped one");
    let mut hold = Hold::begin(&second);
    worker.resume();
    wait_status(&limiter, "it waits again", |s| s.waiting == 1);
    let_pass(&server, "a", LEASE / 2);
    hold.end();
    second.release().expect("release");
    worker.wait("granted", "late");
    check_limit(&[worker.holds(), vec![hold]].concat(), 1);
}

/// The same, with a message that comes even later: the process has been counted in again, and waits at its old place.
#[test]
fn a_message_that_comes_after_its_grant_was_reaped_grants_nothing() {
    let server = server();
    let proxy = Proxy::to(server.port());
    let (cut_off, its_limiter) = open(&proxy.url(), "a", 1, LEASE);
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let mut inbox = server.conn();
    let mut inbox = inbox.as_pubsub();
    let channel = format!("fq:{}", cut_off.instance());
    inbox.subscribe(&channel).expect("subscribe");
    let first = limiter.acquire(&Request::new()).expect("a permit");
    let done = Completions::new();
    line_up(&its_limiter, &done, 0..1);
    proxy.hang();
    first.release().expect("release");
    let mut next = || inbox.get_message().expect("a message").get_payload::<String>().expect("text");
    let message = std::iter::repeat_with(&mut next).find(|text| text.contains(" g,")).expect("a grant");
    let second = limiter.acquire(&Request::new().max_wait(SOON)).expect("the slot of the one cut off");
    proxy.heal();
    wait_status(&limiter, "it waits again", |s| s.waiting == 1);
    for _ in 0..10 {
        assert_eq!(run::<u64>(&server, &["PUBLISH", &channel, &message]), 2, "the client and the test");
        let_pass(&server, "a", LEASE / 10);
    }
    assert!(done.poll(1, Duration::ZERO).is_empty(), "granted by an old message, above the limit");
    second.release().expect("release");
    drain_in_order(&done, [0]);
    assert_empty(&server, &limiter);
}

/// Several permits of one client behind a proxy, with their events.
fn holders(limiter: &Limiter, count: usize) -> Vec<(Permit, Receiver<PermitEvent>)> {
    let permits = (0..count).map(|_| limiter.acquire(&Request::new()).expect("a permit"));
    permits.map(|permit| (permit.events(), permit)).map(|(events, permit)| (permit, events)).collect()
}

#[track_caller]
fn next_event(events: &Receiver<PermitEvent>) -> PermitEvent {
    events.recv_timeout(SOON).expect("an event")
}

/// S15, S49
#[test]
fn a_holder_cut_off_for_longer_than_its_lease_is_told_once_and_goes_on() {
    let server = server();
    let proxy = Proxy::to(server.port());
    let (_cut_off, limiter) = open(&proxy.url(), "a", 3, LEASE);
    let (_other, other) = open(&server.url(), "a", 3, LEASE);
    let held = holders(&limiter, 3);
    proxy.hang();
    for (permit, events) in &held {
        assert_eq!(next_event(events), PermitEvent::Unconfirmed);
        assert_eq!((permit.is_valid(), permit.state()), (false, PermitState::Unconfirmed));
    }
    let theirs = other.acquire(&Request::new().cost(3).max_wait(SOON)).expect("the slots of the one cut off");
    assert!(held.iter().all(|(permit, _)| !permit.is_valid()));
    proxy.heal();
    for (permit, events) in &held {
        assert_eq!(next_event(events), PermitEvent::Lost(LostReason::LeaseExpired));
        assert_eq!(permit.state(), PermitState::Lost);
        assert!(events.recv_timeout(SOON).is_err(), "told once, then the channel closes");
    }
    theirs.release().expect("release");
    let again = limiter.acquire(&Request::new().cost(3).max_wait(SOON)).expect("acquiring works again");
    for (permit, _) in held {
        assert_eq!(permit.release(), Err(Error::PermitLost(LostReason::LeaseExpired)));
    }
    // What was lost is not given back in another's place.
    assert_kept(&again);
    again.release().expect("release");
    assert_empty(&server, &limiter);
}

#[test]
fn a_holder_cut_off_whose_slot_nobody_took_keeps_it() {
    let server = server();
    let proxy = Proxy::to(server.port());
    let (_client, limiter) = open(&proxy.url(), "a", 1, LEASE);
    let (permit, events) = holders(&limiter, 1).remove(0);
    proxy.hang();
    assert_eq!(next_event(&events), PermitEvent::Unconfirmed);
    proxy.heal();
    assert_eq!(next_event(&events), PermitEvent::Confirmed);
    assert_kept(&permit);
    permit.release().expect("release");
}

#[test]
fn max_hold_takes_a_permit_away_and_tells_its_owner() {
    let server = server();
    let client = Client::open(&server.url()).unwrap();
    let limiter = client.limiter("a").limit(1).lease(LEASE).max_hold(ms(200)).poll(ms(100)).open().unwrap();
    let (permit, events) = holders(&limiter, 1).remove(0);
    let next = limiter.acquire(&Request::new().max_wait(SOON)).expect("the stuck one's slot");
    assert_eq!(next_event(&events), PermitEvent::Lost(LostReason::MaxHold));
    assert_eq!((permit.is_valid(), permit.state()), (false, PermitState::Lost));
    assert_eq!(permit.release(), Err(Error::PermitLost(LostReason::MaxHold)));
    next.release().expect("release");
    assert_empty(&server, &limiter);
}

/// S30, S12
#[test]
fn sixteen_processes_keep_a_limit_of_four_while_some_are_killed() {
    let server = server();
    let (_client, limiter) = open(&server.url(), "a", 4, LEASE);
    let mut workers = start_all(16, &setup(&server, 4));
    workers.iter_mut().for_each(|worker| worker.tell("churn 2 3"));
    wait_grants(&workers, 100);
    let mut leaker = Worker::start(&setup(&server, 4));
    leaker.tell("acquire leaked 1 60000");
    leaker.wait("granted", "leaked");
    leaker.kill();
    workers[..4].iter_mut().for_each(Worker::kill);
    eventually("the leaked permit is back, under traffic", SOON, || {
        limiter.holders().expect("list").iter().all(|entry| entry.label != "leaked")
    });
    wait_grants(&workers[4..], 200);
    end_all(&mut workers[4..]);
    let holds: Vec<Hold> = workers.iter().chain([&leaker]).flat_map(Worker::holds).collect();
    check_limit(&holds, 4);
    check_order(&holds);
    assert_eq!(workers.iter().map(|worker| worker.count("failed")).sum::<usize>(), 0);
    assert_empty(&server, &limiter);
}

/// S28
#[test]
fn fifty_clients_that_start_while_the_dead_are_reaped_cost_no_living_one_its_place() {
    let server = server();
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let (permit, events) = holders(&limiter, 1).remove(0);
    let done = Completions::new();
    let living = line_up(&limiter, &done, 0..20);
    let mut dead = Worker::start(&setup(&server, 1));
    dead.tell("flood 600");
    wait_status(&limiter, "the doomed wait", |s| s.waiting == 620);
    dead.kill();
    let instances = || limiter.status().is_ok_and(|s| s.instances == 1);
    eventually("the reaper has begun", SOON, instances);
    let clients: Vec<(Client, Limiter)> = (0..50).map(|_| open(&server.url(), "a", 1, LEASE)).collect();
    std::thread::scope(|scope| {
        for (token, (_, limiter)) in (20..).zip(&clients) {
            let done = done.clone();
            scope.spawn(move || line_up(limiter, &done, token..token + 1));
        }
    });
    wait_status(&limiter, "only the living are left", |s| s.waiting == 70 && s.instances == 51);
    assert_kept(&permit);
    assert!(!events.try_iter().any(|event| matches!(event, PermitEvent::Lost(_))));
    assert!(living.iter().all(|ticket| ticket.state() == TicketState::Pending));
    permit.release().expect("release");
    drain_in_order(&done, 0..20);
    let mut rest: Vec<u64> = (0..50).map(|_| take(&done).0).collect();
    rest.sort_unstable();
    assert!(rest.into_iter().eq(20..70));
}
