//! P6, FIFO: tickets are granted in order, over all clients, and nobody passes the head.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use fairq::{Change, Completions, Limiter, Request};

use crate::stores::*;
use crate::support::SOON;

#[test]
fn grants_follow_the_order_of_arrival() {
    on_both(|world| {
        let limiters = [world.limiter(1), world.limiter(1)];
        let held = take(&limiters[0]);
        let completions = Completions::new();
        for token in 0..10 {
            queue_up(&limiters[token as usize % 2], &completions, token, &patient(), token);
        }
        held.release().expect("release");
        for token in 0..10 {
            granted(&completions, token).release().expect("release");
        }
    });
}

/// All requests of one thread, started at once with the others'; returns order and fence of each grant.
fn burst(limiter: &Limiter, count: u64, start: &Barrier) -> Vec<(u64, u64)> {
    let completions = Completions::new();
    start.wait();
    for token in 0..count {
        limiter.acquire_start(&patient(), &completions, token).expect("start");
    }
    let mut grants = Vec::new();
    for _ in 0..count {
        let permit = next(&completions).result.expect("a permit");
        grants.push((permit.order(), permit.fence()));
        drop(permit);
    }
    grants
}

#[test]
fn a_thousand_requests_at_once_have_a_total_order_that_is_kept() {
    on_both(|world| {
        let limiters: Vec<_> = (0..4).map(|_| world.limiter(3)).collect();
        let start = Barrier::new(8);
        let mut grants: Vec<(u64, u64)> = thread::scope(|scope| {
            let bursts: Vec<_> = (0..8)
                .map(|i| {
                    scope.spawn({
                        let (limiter, start) = (&limiters[i % 4], &start);
                        move || burst(limiter, 125, start)
                    })
                })
                .collect();
            bursts.into_iter().flat_map(|burst| burst.join().expect("a burst")).collect()
        });
        assert_eq!(grants.len(), 1000);
        grants.sort_by_key(|(_, fence)| *fence);
        assert!(grants.is_sorted_by(|a, b| a.0 < b.0), "by fence, the orders increase");
        world.assert_no_ticket_left(&limiters[0]);
    });
}

#[test]
fn two_single_releases_admit_a_waiter_of_cost_two() {
    on_both(|world| {
        let (holder, waiter) = (world.limiter(2), world.limiter(2));
        let (first, second) = (take(&holder), take(&holder));
        let completions = Completions::new();
        queue_up(&waiter, &completions, 1, &patient().cost(2), 0);
        first.release().expect("release");
        assert_eq!(holder.status().expect("status").used, 1);
        assert_none(&completions);
        second.release().expect("release");
        assert_eq!(granted(&completions, 1).cost(), 2);
    });
}

#[test]
fn two_slots_freed_at_once_admit_two_waiters_of_one_client() {
    on_both(|world| {
        let (holder, waiters) = (world.limiter(2), world.limiter(2));
        let completions = Completions::new();
        for round in 0..20 {
            let both = take_cost(&holder, 2);
            queue_up(&waiters, &completions, 2 * round, &patient(), 0);
            queue_up(&waiters, &completions, 2 * round + 1, &patient(), 1);
            drop(both);
            let two = next_all(&completions, 2);
            assert_eq!(tokens(&two), [2 * round, 2 * round + 1]);
            wait_for_use(&holder, 2);
            drop(two);
            wait_for_use(&holder, 0);
        }
    });
}

#[test]
fn a_newcomer_never_passes_the_head() {
    on_both(|world| {
        let (owner, newcomer) = (world.limiter(2), world.limiter(2));
        let held = take(&owner);
        let completions = Completions::new();
        queue_up(&owner, &completions, 1, &patient().cost(2), 0);
        for _ in 0..20 {
            assert!(newcomer.try_acquire(&Request::new()).expect("ask").is_none(), "a slot is free, but not for it");
            assert!(owner.try_acquire(&Request::new()).expect("ask").is_none());
        }
        let status = owner.status().expect("status");
        assert_eq!((status.used, status.waiting), (1, 1));
        held.release().expect("release");
        let _head = granted(&completions, 1);
    });
}

#[test]
fn a_big_request_is_not_starved_by_small_ones() {
    on_both(|world| {
        let limiter = world.limiter(4);
        let mut small: Vec<_> = (0..4).map(|_| take(&limiter)).collect();
        let (big, crowd) = (Completions::new(), Completions::new());
        queue_up(&limiter, &big, 1, &patient().cost(4), 0);
        for token in 0..8 {
            queue_up(&limiter, &crowd, token, &patient(), token + 1);
        }
        while let Some(permit) = small.pop() {
            assert_none(&crowd);
            assert_none(&big);
            permit.release().expect("release");
        }
        let head = granted(&big, 1);
        assert_none(&crowd);
        head.release().expect("release");
        let first = next_all(&crowd, 4);
        assert_eq!(tokens(&first), [0, 1, 2, 3]);
    });
}

#[test]
fn a_cancelled_head_lets_the_next_through() {
    on_both(|world| {
        let limiter = world.limiter(2);
        let _held = take(&limiter);
        let (big, small) = (Completions::new(), Completions::new());
        let head = queue_up(&limiter, &big, 1, &patient().cost(2), 0);
        queue_up(&limiter, &small, 2, &patient(), 1);
        assert!(head.cancel());
        let _next = granted(&small, 2);
        assert!(next(&big).result.is_err());
    });
}

#[test]
fn a_permit_that_is_put_back_returns_to_its_place() {
    on_both(|world| {
        let (limiter, operator) = (world.limiter(1), world.limiter(1));
        let permit = take(&limiter);
        let order = permit.order();
        let completions = Completions::new();
        for token in 0..3 {
            queue_up(&operator, &completions, token, &patient(), token);
        }
        configure(&operator, Change::new().pause());
        thread::scope(|scope| {
            let again = scope.spawn(move || permit.put_back(Duration::MAX));
            wait_for_line(&operator, 4);
            assert_eq!(operator.waiters().expect("waiters")[0].order, order, "the first of four");
            configure(&operator, Change::new().resume());
            let again = again.join().expect("who waits").expect("a permit");
            assert_eq!(again.order(), order);
            assert_none(&completions);
            again.release().expect("release");
        });
        for token in 0..3 {
            granted(&completions, token).release().expect("release");
        }
        world.assert_no_ticket_left(&operator);
    });
}

#[test]
fn a_put_back_that_times_out_leaves_the_line_and_the_slot() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let permit = take(&limiter);
        configure(&limiter, Change::new().pause());
        let error = thread::scope(|scope| {
            let waiter = scope.spawn(move || permit.put_back(Duration::from_millis(50)));
            if world.is_memory() {
                wait_for_line(&limiter, 1);
                world.clock.advance(Duration::from_millis(50));
            }
            waiter.join().expect("who waits").expect_err("a pause")
        });
        assert!(matches!(error, fairq::Error::TimedOut { .. }), "{error:?}");
        configure(&limiter, Change::new().resume());
        world.assert_no_ticket_left(&limiter);
        take(&limiter).release().expect("release");
    });
}

#[test]
fn a_put_back_without_a_wait_has_its_answer_at_once() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let again = take(&limiter).put_back(Duration::ZERO).expect("it is the first");
        configure(&limiter, Change::new().pause());
        // On the manual clock nothing else could end it.
        let error = again.put_back(Duration::ZERO).expect_err("a pause");
        assert!(matches!(error, fairq::Error::TimedOut { .. }), "{error:?}");
        world.assert_no_ticket_left(&limiter);
    });
}

#[test]
fn positions_and_waiters_tell_the_line_as_it_is() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let held = take(&limiter);
        let completions = Completions::new();
        let tickets: Vec<_> = (0..4)
            .map(|token| queue_up(&limiter, &completions, token, &patient().label(format!("nr {token}")), token))
            .collect();
        let place = |i: usize| tickets[i].position().expect("ask").map(|p| p.position);
        assert_eq!([place(0), place(1), place(2), place(3)], [Some(1), Some(2), Some(3), Some(4)]);
        let labels: Vec<_> = limiter.waiters().expect("waiters").into_iter().map(|entry| entry.label).collect();
        assert_eq!(labels, ["nr 0", "nr 1", "nr 2", "nr 3"]);
        held.release().expect("release");
        let first = granted(&completions, 0);
        assert_eq!((place(0), place(1), place(3)), (None, Some(1), Some(3)));
        drop(first);
        drop(next_all(&completions, 1));
        crate::support::eventually("all are served in turn", SOON, || {
            completions.poll(4, Duration::ZERO);
            limiter.status().is_ok_and(|status| (status.used, status.waiting) == (0, 0))
        });
    });
}
