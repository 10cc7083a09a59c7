//! P5, fence: fences strictly increase over the grants of a limiter, whatever happens to the server.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use fairq::{Limiter, Request};

use crate::stores::*;
use crate::support::{SOON, Server, eventually_some};

/// Short, and with it the grace after a loss of state.
const LEASE: Duration = Duration::from_millis(500);

/// A fence of a grant that may have to wait out a grace.
fn fence(limiter: &Limiter) -> u64 {
    let permit = eventually_some("a permit", SOON, || limiter.try_acquire(&Request::new()).ok().flatten());
    let fence = permit.fence();
    permit.release().expect("release");
    fence
}

#[test]
fn fences_increase_from_holder_to_holder_over_threads_and_clients() {
    on_both(|world| {
        let limiters = [world.limiter(1), world.limiter(1), world.limiter(1)];
        let seen = Mutex::new(vec![0]);
        thread::scope(|scope| {
            for limiter in limiters.iter().cycle().take(6) {
                let seen = &seen;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let permit = limiter.acquire(&patient()).expect("a permit");
                        seen.lock().expect("no panic").push(permit.fence()); // one holder at a time
                        permit.release().expect("release");
                    }
                });
            }
        });
        let seen = seen.into_inner().expect("no panic");
        assert_eq!(seen.len(), 301);
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    });
}

#[test]
fn every_holder_of_several_has_a_fence_of_its_own() {
    on_both(|world| {
        let limiter = world.limiter(100);
        let fences: Vec<u64> = (0..100).map(|_| take(&limiter)).map(|permit| permit.fence()).collect();
        assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    });
}

#[test]
fn a_permit_that_was_put_back_comes_with_a_new_fence() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let permit = take(&limiter);
        let (fence, order) = (permit.fence(), permit.order());
        let again = permit.put_back(SOON).expect("its place is the first");
        assert_eq!(again.order(), order);
        assert!(again.fence() > fence);
    });
}

#[test]
fn fences_go_on_increasing_after_flushall() {
    let world = World::redis();
    let server = world.server().expect("a server");
    let limiter = world.leased(1, LEASE);
    let mut last = fence(&limiter);
    for round in 0..5 {
        redis::cmd("FLUSHALL").exec(&mut server.conn()).expect("FLUSHALL");
        // Now by one who remembers, now by one who has never heard of it.
        let next = if round % 2 == 0 { fence(&world.leased(1, LEASE)) } else { fence(&limiter) };
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}

#[test]
fn fences_go_on_increasing_after_a_restart_without_persistence() {
    let server = Server::start(Server::default_flavor());
    let client = fairq::Client::open(&server.url()).expect("open");
    let limiter = open(client.limiter(NAME).limit(1).lease(LEASE));
    let mut last = fence(&limiter);
    for _ in 0..3 {
        server.restart();
        let next = fence(&limiter);
        assert!(next > last, "{next} after {last}");
        last = next;
    }
}
