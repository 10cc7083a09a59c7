//! P1, limit: the cost held never exceeds the limit, and a lowered limit revokes nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairq::{Change, Completions, Limiter, PermitState, Request};

use crate::stores::*;
use crate::support::{SOON, eventually};

/// What is held at this moment, counted beside the store, and the most that ever was.
#[derive(Default)]
struct Gauge {
    now: AtomicU64,
    most: AtomicU64,
}

impl Gauge {
    fn hold(&self, cost: u64, work: impl FnOnce()) {
        let held = self.now.fetch_add(cost, Ordering::SeqCst) + cost;
        self.most.fetch_max(held, Ordering::SeqCst);
        work();
        self.now.fetch_sub(cost, Ordering::SeqCst);
    }

    fn most(&self) -> u64 {
        self.most.load(Ordering::SeqCst)
    }
}

/// Threads that acquire, hold a little and release, until the time is over. Returns the number of rounds.
fn hammer(limiters: &[Limiter], threads: usize, time: Duration, costs: u64, gauge: &Gauge) -> u64 {
    let rounds = AtomicU64::new(0);
    let end = Instant::now() + time;
    thread::scope(|scope| {
        for number in 0..threads {
            let (limiter, rounds) = (&limiters[number % limiters.len()], &rounds);
            scope.spawn(move || {
                let mut rng = Rng::new(number as u64 + 1);
                while Instant::now() < end {
                    let cost = 1 + rng.below(costs);
                    let permit = limiter.acquire(&patient().cost(cost)).expect("a permit");
                    gauge.hold(cost, || rng.dawdle(200));
                    drop(permit);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    rounds.into_inner()
}

#[test]
fn sixty_four_threads_never_hold_a_limit_of_one_twice() {
    on_both(|world| {
        let gauge = Gauge::default();
        let limiters = [world.limiter(1), world.limiter(1)];
        let rounds = hammer(&limiters, 64, Duration::from_millis(1500), 1, &gauge);
        assert_eq!(gauge.most(), 1, "in {rounds} rounds");
        assert!(rounds > 0);
        world.assert_no_ticket_left(&limiters[0]);
    });
}

#[test]
fn the_sum_of_costs_stays_within_the_limit() {
    on_both(|world| {
        let gauge = Gauge::default();
        let limiters = [world.limiter(7), world.limiter(7), world.limiter(7)];
        hammer(&limiters, 12, Duration::from_millis(700), 7, &gauge);
        assert!(gauge.most() <= 7, "{} were held", gauge.most());
        world.assert_no_ticket_left(&limiters[0]);
    });
}

#[test]
fn a_limiter_declared_again_in_each_request_gives_no_extra_permit() {
    on_both(|world| {
        let client = world.client();
        let _held: Vec<_> = (0..3).map(|_| take(&limiter(&client, 3))).collect();
        for _ in 0..50 {
            assert!(limiter(&client, 3).try_acquire(&Request::new()).expect("ask").is_none());
            assert!(world.limiter(3).try_acquire(&Request::new()).expect("ask").is_none());
        }
        assert_eq!(limiter(&client, 3).status().expect("status").used, 3);
    });
}

#[test]
fn of_twenty_requests_without_release_as_many_run_as_the_limit_says() {
    on_both(|world| {
        let limiter = world.limiter(5);
        let completions = Completions::new();
        for token in 0..20 {
            limiter.acquire_start(&patient(), &completions, token).expect("start");
        }
        let first = next_all(&completions, 5);
        wait_for_line(&limiter, 15);
        assert_eq!(tokens(&first), [0, 1, 2, 3, 4]);
        assert_none(&completions);
        drop(first);
        let second = next_all(&completions, 5);
        assert_eq!(tokens(&second), [5, 6, 7, 8, 9]);
    });
}

#[test]
fn a_cost_that_does_not_fit_beside_what_is_held_waits() {
    on_both(|world| {
        let limiter = world.limiter(4);
        let held = take_cost(&limiter, 3);
        let completions = Completions::new();
        queue_up(&limiter, &completions, 1, &patient().cost(3), 0);
        assert_none(&completions);
        held.release().expect("release");
        assert_eq!(granted(&completions, 1).cost(), 3);
    });
}

#[test]
fn a_permit_held_for_twenty_leases_is_still_held() {
    const LEASE: Duration = Duration::from_millis(250);
    on_both(|world| {
        let holder = world.leased(1, LEASE);
        let rival = world.leased(1, LEASE);
        let permit = take(&holder);
        let start = Instant::now();
        for step in 0..40 {
            world.clock.advance(LEASE / 2);
            eventually("half a lease has passed", SOON, || world.is_memory() || start.elapsed() >= LEASE / 2 * step);
            eventually("the permit is confirmed", SOON, || permit.is_valid());
            assert!(rival.try_acquire(&Request::new()).expect("ask").is_none());
        }
        permit.release().expect("it was held until now");
        take(&rival).release().expect("release");
    });
}

#[test]
fn a_lowered_limit_revokes_nothing_and_admits_nobody_until_use_is_below_it() {
    on_both(|world| {
        let limiter = world.limiter(4);
        let mut held: Vec<_> = (0..4).map(|_| take(&limiter)).collect();
        let completions = Completions::new();
        queue_up(&limiter, &completions, 1, &patient(), 0);
        assert_eq!(configure(&limiter, Change::new().limit(2)).used, 4);
        for left in [3, 2] {
            held.pop().expect("a permit").release().expect("release");
            assert_eq!(limiter.status().expect("status").used, left);
            assert_none(&completions);
        }
        assert!(held.iter().all(|permit| permit.state() == PermitState::Valid));
        held.pop().expect("a permit").release().expect("release");
        let _waiter = granted(&completions, 1);
        assert_eq!(limiter.status().expect("status").used, 2);
    });
}

#[test]
fn a_raised_limit_admits_the_waiting_at_once() {
    on_both(|world| {
        // Of another instance, so that the grant travels as a message; no poll will come.
        let operator = world.limiter(1);
        let limiter = open(world.client().limiter(NAME).limit(1).poll(Duration::from_secs(60)));
        let _held = take(&limiter);
        let completions = Completions::new();
        for token in 0..3 {
            queue_up(&limiter, &completions, token, &patient(), token);
        }
        configure(&operator, Change::new().limit(3));
        let two = next_all(&completions, 2);
        assert_eq!(tokens(&two), [0, 1]);
        assert_eq!(operator.status().expect("status").used, 3);
        assert_none(&completions);
    });
}

#[test]
fn a_pause_admits_nobody_and_takes_nothing() {
    on_both(|world| {
        let limiter = world.limiter(2);
        let held = take(&limiter);
        assert!(configure(&limiter, Change::new().pause()).paused);
        let completions = Completions::new();
        queue_up(&limiter, &completions, 1, &patient(), 0);
        assert!(limiter.try_acquire(&Request::new()).expect("ask").is_none());
        assert!(held.is_valid());
        held.release().expect("release");
        assert_none(&completions);
        assert!(!configure(&limiter, Change::new().resume()).paused);
        let _waiter = granted(&completions, 1);
    });
}

#[test]
fn a_limit_of_zero_admits_nobody_until_it_is_raised() {
    on_both(|world| {
        let limiter = world.limiter(0);
        assert!(limiter.try_acquire(&Request::new()).expect("ask").is_none());
        let completions = Completions::new();
        queue_up(&limiter, &completions, 1, &patient(), 0);
        configure(&limiter, Change::new().limit(1));
        let _permit = granted(&completions, 1);
    });
}
