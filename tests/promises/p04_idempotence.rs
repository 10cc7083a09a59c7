//! P4, idempotence: a verb done twice, or again after a lost reply, changes nothing and answers the same.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use fairq::{Client, Completions, Error, Limiter, LostReason, Permit, PermitEvent, Revoked};

use crate::stores::*;
use crate::support::{Proxy, SOON, Server, eventually, tickets_in};

/// A client behind a proxy, and one beside it that sees what is true.
struct Net {
    server: Server,
    proxy: Proxy,
    limiter: Limiter,
    observer: Limiter,
}

impl Net {
    fn new(limit: u64) -> Net {
        let server = Server::start(Server::default_flavor());
        let proxy = Proxy::to(server.port());
        let short = Duration::from_millis(600);
        let client = Client::builder(&proxy.url()).io_timeout(short).connect_timeout(short).open().expect("open");
        let limiter = limiter(&client, limit);
        let observer = crate::stores::limiter(&Client::open(&server.url()).expect("open"), limit);
        drop(take(&limiter)); // connected, and the scripts are known
        wait_for_use(&observer, 0);
        Net { server, proxy, limiter, observer }
    }

    #[track_caller]
    fn assert_nothing_left(&self) {
        wait_for_use(&self.observer, 0);
        wait_for_line(&self.observer, 0);
        assert_eq!(tickets_in(&self.server, NAME), Vec::<String>::new());
    }
}

#[test]
fn a_lost_reply_to_an_acquire_makes_one_permit() {
    let net = Net::new(3);
    for round in 1..=5 {
        net.proxy.drop_reply_matching(b"needle");
        let permit = net.limiter.acquire(&patient().label("needle")).expect("a permit");
        assert_eq!(net.proxy.fired(), round, "the reply was lost");
        let holders = net.observer.holders().expect("holders");
        assert_eq!(holders.len(), 1, "{holders:?}");
        assert_eq!((holders[0].ticket.clone(), holders[0].fence), (permit.ticket_id(), Some(permit.fence())));
        permit.release().expect("release");
    }
    net.assert_nothing_left();
}

#[test]
fn a_lost_reply_to_an_enqueue_keeps_one_place_and_its_order() {
    let net = Net::new(1);
    let held = take(&net.observer);
    let completions = Completions::new();
    net.proxy.drop_reply_matching(b"needle");
    net.limiter.acquire_start(&patient().label("needle"), &completions, 1).expect("start");
    wait_for_line(&net.observer, 1);
    let order = net.observer.waiters().expect("waiters")[0].order;
    let later = Completions::new();
    queue_up(&net.observer, &later, 2, &patient(), 1);
    held.release().expect("release");
    let permit = granted(&completions, 1);
    assert_eq!(permit.order(), order);
    permit.release().expect("release");
    granted(&later, 2).release().expect("release");
    net.assert_nothing_left();
}

#[test]
fn an_acquire_whose_reply_is_lost_and_that_is_cancelled_leaves_no_orphan() {
    guarded(|| cancel_after_the_loss(&Net::new(1)));
}

fn cancel_after_the_loss(net: &Net) {
    for round in 1..=5 {
        net.proxy.drop_reply_matching(b"needle");
        let ticket = net.limiter.ticket();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| net.limiter.acquire_with(&ticket, &patient().label("needle")).map(drop));
            eventually("the reply was lost", SOON, || net.proxy.fired() == round);
            ticket.cancel();
            let _ = waiter.join().expect("the waiter");
        });
        net.assert_nothing_left();
    }
}

#[test]
fn a_lost_reply_to_a_release_frees_once() {
    let net = Net::new(2);
    let others = take(&net.observer);
    for _ in 0..5 {
        let permit = take(&net.limiter);
        net.proxy.drop_reply_matching(permit.fence().to_string().as_bytes());
        let answer = permit.release();
        // Sent again, it finds nothing: which of the two it was cannot be told.
        assert!(matches!(answer, Ok(()) | Err(Error::Stale)), "{answer:?}");
        wait_for_use(&net.observer, 1);
    }
    assert_eq!(net.proxy.fired(), 5);
    assert!(others.is_valid());
    others.release().expect("release");
    net.assert_nothing_left();
}

#[test]
fn a_release_that_arrives_a_second_time_takes_nothing_from_the_next_holder() {
    let net = Net::new(1);
    let permit = take(&net.limiter);
    let held = net.proxy.hold_next_request(permit.fence().to_string().as_bytes());
    permit.release().expect("it is sent again");
    let next = take(&net.observer);
    held.deliver();
    assert_eq!(net.observer.status().expect("status").used, 1);
    assert!(net.limiter.try_acquire(&fairq::Request::new()).expect("ask").is_none());
    next.release().expect("release");
    net.assert_nothing_left();
}

#[test]
fn an_acquire_that_arrives_after_its_own_cancel_is_refused() {
    let net = Net::new(1);
    for is_free in [true, false] {
        let taken = (!is_free).then(|| take(&net.observer));
        let completions = Completions::new();
        let held = net.proxy.hold_next_request(b"needle");
        net.proxy.refuse(); // no second attempt before the cancel
        let ticket = net.limiter.acquire_start(&patient().label("needle"), &completions, 1).expect("start");
        held.wait_caught();
        assert!(ticket.cancel());
        assert_eq!(next(&completions).result.expect_err("cancelled"), Error::Cancelled);
        net.proxy.heal();
        eventually("the cancel was sent by another connection", SOON, || net.limiter.status().is_ok());
        held.deliver();
        let left = tickets_in(&net.server, NAME);
        assert!(!left.iter().any(|entry| entry.contains(&ticket.id())), "{left:?}");
        drop(taken);
        net.assert_nothing_left();
    }
}

#[test]
fn a_link_that_hangs_with_an_acquire_in_flight_costs_exactly_one_permit() {
    let net = Net::new(2);
    let completions = Completions::new();
    net.proxy.hang();
    net.limiter.acquire_start(&patient(), &completions, 1).expect("start");
    let accepted = net.proxy.accepted();
    eventually("it was given up, and tried anew", SOON, || net.proxy.accepted() > accepted + 1);
    net.proxy.heal();
    let permit = granted(&completions, 1);
    wait_for_use(&net.observer, 1);
    assert_none(&completions);
    permit.release().expect("release");
    net.assert_nothing_left();
}

#[test]
fn a_release_of_what_was_revoked_frees_nothing() {
    on_both(|world| {
        let (owner, operator) = (world.limiter(1), world.limiter(1));
        let permit = take(&owner);
        let events = permit.events();
        assert_eq!(operator.revoke(&permit.ticket_id()).expect("revoke"), Revoked::Held);
        assert_eq!(operator.revoke(&permit.ticket_id()).expect("revoke"), Revoked::Unknown, "once more");
        let next = take(&operator);
        assert_stale(permit);
        assert_eq!(operator.status().expect("status").used, 1, "the next holder's slot is its own");
        assert!(next.is_valid());
        // Told of it, or released before that.
        let told = events.recv_timeout(SOON);
        assert!(matches!(told, Ok(PermitEvent::Lost(LostReason::Revoked)) | Err(_)), "{told:?}");
    });
}

#[track_caller]
fn assert_stale(permit: Permit) {
    let error = permit.release().expect_err("it was taken back");
    assert!(matches!(error, Error::Stale | Error::PermitLost(LostReason::Revoked)), "{error:?}");
}

#[test]
fn the_owner_is_told_of_a_revoke_by_its_own_client() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let permit = take(&limiter);
        let events = permit.events();
        limiter.revoke(&permit.ticket_id()).expect("revoke");
        assert_eq!(events.recv_timeout(SOON), Ok(PermitEvent::Lost(LostReason::Revoked)));
        let completions = Completions::new();
        let _other = take(&limiter);
        let waiter = queue_up(&limiter, &completions, 1, &patient(), 0);
        assert_eq!(limiter.revoke(&waiter.id()).expect("revoke"), Revoked::Waiting);
        assert_eq!(next(&completions).result.expect_err("revoked"), Error::Revoked);
    });
}

#[test]
fn a_release_and_a_revoke_at_once_free_one_slot() {
    on_both(|world| {
        let (owner, operator) = (world.limiter(2), world.limiter(2));
        let fixed = take(&operator);
        for _ in 0..if world.is_memory() { 300 } else { 100 } {
            let permit = take(&owner);
            let (id, start) = (permit.ticket_id(), Barrier::new(2));
            let (released, revoked) = thread::scope(|scope| {
                let rival = scope.spawn(|| {
                    start.wait();
                    operator.revoke(&id).expect("revoke")
                });
                start.wait();
                (permit.release(), rival.join().expect("the rival"))
            });
            match revoked {
                Revoked::Held => assert!(released.is_err(), "both of them freed it"),
                _ => assert_eq!(released, Ok(())),
            }
            assert_eq!(operator.status().expect("status").used, 1);
        }
        assert!(fixed.is_valid());
    });
}

#[test]
fn of_several_releases_with_a_stale_one_each_has_its_own_answer() {
    on_both(|world| {
        let (owner, operator) = (world.limiter(6), world.limiter(6));
        let permits: Vec<_> = (0..5).map(|_| take(&owner)).collect();
        let fixed = take(&owner);
        let stale = permits[2].ticket_id();
        operator.revoke(&stale).expect("revoke");
        let answers: Vec<_> = thread::scope(|scope| {
            let releases: Vec<_> = permits.into_iter().map(|permit| scope.spawn(move || permit.release())).collect();
            releases.into_iter().map(|release| release.join().expect("a release").is_ok()).collect()
        });
        assert_eq!(answers, [true, true, false, true, true]);
        assert_eq!(operator.status().expect("status").used, 1);
        fixed.release().expect("release");
        world.assert_no_ticket_left(&operator);
    });
}

#[test]
fn renewals_and_releases_at_the_same_time_lose_no_permit() {
    const LEASE: Duration = Duration::from_millis(100);
    on_both(|world| {
        let limiter = world.leased(4, LEASE);
        thread::scope(|scope| {
            for number in 0..4 {
                let (limiter, clock) = (&limiter, world.clock.clone());
                scope.spawn(move || {
                    let mut rng = Rng::new(number);
                    for _ in 0..if world.is_memory() { 1000 } else { 250 } {
                        let permit = limiter.acquire(&patient()).expect("a permit");
                        let events = permit.events();
                        clock.advance(Duration::from_millis(rng.below(20)));
                        rng.dawdle(20_000);
                        permit.release().expect("it was never lost");
                        assert!(!events.try_iter().any(|event| matches!(event, PermitEvent::Lost(_))));
                    }
                });
            }
        });
        world.assert_no_ticket_left(&limiter);
    });
}
