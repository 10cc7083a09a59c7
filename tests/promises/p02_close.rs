//! P2, one exit: a close settles every waiter, and gives those who hold the time that they were promised.

use std::thread;
use std::time::Duration;

use fairq::{Completions, Error, LostReason, PermitEvent, PermitState, Request};

use crate::stores::*;
use crate::support::{SOON, eventually};

const LEASE: Duration = Duration::from_secs(3);

#[test]
fn a_close_settles_all_waiters_as_closed() {
    on_both(|world| {
        let client = world.client();
        let limiter = limiter(&client, 1);
        let _held = take(&limiter);
        let completions = Completions::new();
        for token in 0..5 {
            queue_up(&limiter, &completions, token, &patient(), token);
        }
        thread::scope(|scope| {
            let blocked = scope.spawn(|| limiter.acquire(&patient()));
            wait_for_line(&limiter, 6);
            client.close(Duration::ZERO).expect("close");
            assert_eq!(blocked.join().expect("the waiter").expect_err("closed"), Error::Closed);
        });
        for completion in next_all(&completions, 5) {
            assert_eq!(completion.result.expect_err("closed"), Error::Closed);
        }
    });
}

#[test]
fn after_a_close_every_call_says_closed() {
    on_both(|world| {
        for used in [false, true] {
            let client = world.client();
            let limiter = limiter(&client, 1);
            if used {
                drop(take(&limiter));
            }
            client.close(Duration::ZERO).expect("close");
            client.close(SOON).expect("once more");
            assert_eq!(limiter.acquire(&patient()).expect_err("closed"), Error::Closed);
            assert_eq!(limiter.try_acquire(&Request::new()).expect_err("closed"), Error::Closed);
            assert_eq!(limiter.status().expect_err("closed"), Error::Closed);
            assert_eq!(client.check().expect_err("closed"), Error::Closed);
            assert_eq!(client.limiters().expect_err("closed"), Error::Closed);
            assert_eq!(client.limiter("other").limit(1).open().expect_err("closed"), Error::Closed);
            let completions = Completions::new();
            limiter.acquire_start(&patient(), &completions, 9).expect("a promise of one completion");
            let completion = next(&completions);
            assert_eq!((completion.token, completion.result.expect_err("closed")), (9, Error::Closed));
        }
    });
}

#[test]
fn a_draining_close_keeps_what_is_held_until_it_is_released() {
    on_both(|world| {
        let client = world.client();
        let limiter = open(client.limiter(NAME).limit(1).lease(LEASE));
        let rival = world.leased(1, LEASE);
        let permit = take(&limiter);
        thread::scope(|scope| {
            let closing = scope.spawn(|| client.close(Duration::from_secs(3600)));
            eventually("it is closing", SOON, || limiter.acquire(&patient()).is_err_and(|e| e == Error::Closed));
            for _ in 0..6 {
                world.clock.advance(LEASE / 2);
                eventually("it is renewed", SOON, || permit.is_valid());
                assert!(rival.try_acquire(&Request::new()).expect("ask").is_none());
            }
            assert!(!closing.is_finished());
            permit.release().expect("release");
            closing.join().expect("the closer").expect("close");
        });
        take(&rival).release().expect("release");
    });
}

#[test]
fn a_close_whose_drain_is_over_gives_everything_back() {
    on_both(|world| {
        let client = world.client();
        let limiter = open(client.limiter(NAME).limit(2).lease(LEASE));
        let rival = world.leased(2, LEASE);
        let permits = [take(&limiter), take(&limiter)];
        let events = permits[0].events();
        client.close(Duration::ZERO).expect("close");
        assert_eq!(events.recv_timeout(SOON), Ok(PermitEvent::Lost(LostReason::Closed)));
        let [first, second] = permits;
        assert_eq!((first.state(), second.state()), (PermitState::Lost, PermitState::Lost));
        assert_eq!(first.release().expect_err("lost"), Error::PermitLost(LostReason::Closed));
        drop(second);
        let _all = take_cost(&rival, 2);
    });
}

#[test]
fn the_last_clone_of_a_client_closes_it() {
    on_both(|world| {
        let client = world.client();
        let limiter = limiter(&client, 1);
        let rival = world.limiter(1);
        let permit = take(&limiter);
        drop((client.clone(), client, limiter));
        assert!(permit.is_valid(), "a permit keeps its client open");
        assert!(rival.try_acquire(&Request::new()).expect("ask").is_none());
        drop(permit);
        wait_for_use(&rival, 0);
        eventually("it has left", SOON, || rival.status().is_ok_and(|status| status.instances <= 1));
    });
}
