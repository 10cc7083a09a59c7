//! P2, one exit, where the contenders meet: grant, cancel, timeout and close at random moments.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fairq::{Client, Completions, Error, Limiter, Permit, Request, TicketState};

use crate::stores::*;

/// What the rounds of a race came to.
#[derive(Default)]
struct Tally {
    granted: AtomicU64,
    cancelled: AtomicU64,
    timed_out: AtomicU64,
}

impl Tally {
    /// Counts an outcome, which has to agree with what the ticket says.
    fn count(&self, result: &Result<Permit, Error>, state: TicketState) {
        let (counter, expected) = match result {
            Ok(_) => (&self.granted, TicketState::Granted),
            Err(Error::Cancelled) => (&self.cancelled, TicketState::Cancelled),
            Err(Error::TimedOut { .. }) => (&self.timed_out, TicketState::TimedOut),
            Err(other) => panic!("an outcome that nobody asked for: {other:?}"),
        };
        assert_eq!(state, expected);
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn total(&self) -> u64 {
        [&self.granted, &self.cancelled, &self.timed_out].iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }
}

/// One request, with a cancel from another thread at a random moment.
fn blocked_and_cancelled(limiter: &Limiter, request: &Request, rng: &mut Rng, tally: &Tally) {
    let ticket = limiter.ticket();
    let rival = ticket.clone();
    let (pause, go) = (rng.below(1000), &AtomicBool::new(false));
    let cancelled = thread::scope(|scope| {
        let canceller = scope.spawn(move || {
            while !go.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            (0..pause).for_each(|_| std::hint::spin_loop());
            rival.cancel()
        });
        rng.dawdle(20_000);
        go.store(true, Ordering::Release);
        let result = limiter.acquire_with(&ticket, request);
        tally.count(&result, ticket.state());
        rng.dawdle(2000);
        drop(result);
        canceller.join().expect("the canceller")
    });
    assert_eq!(cancelled, ticket.state() == TicketState::Cancelled);
}

/// A few clients, each with threads that race; on the memory store time jumps meanwhile.
fn race(world: &World, rounds: u64, round: impl Fn(&Limiter, &mut Rng, &Tally) + Sync) -> (Limiter, Tally) {
    const THREADS: u64 = 4;
    let limiters = [world.limiter(2), world.limiter(2)];
    let tally = Tally::default();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (limiter, tally, round, clock) = (&limiters[number as usize % 2], &tally, &round, world.clock.clone());
            scope.spawn(move || {
                let mut rng = Rng::new(number + 1);
                for _ in 0..rounds {
                    round(limiter, &mut rng, tally);
                    clock.advance(Duration::from_micros(rng.below(300)));
                }
            });
        }
    });
    assert_eq!(tally.total(), THREADS * rounds);
    (limiters[0].clone(), tally)
}

#[test]
fn a_cancel_at_any_moment_leaves_one_outcome_and_nothing_behind() {
    on_both(|world| {
        let rounds = if world.is_memory() { 1000 } else { 250 };
        let (limiter, tally) =
            race(world, rounds, |limiter, rng, tally| blocked_and_cancelled(limiter, &patient(), rng, tally));
        world.assert_no_ticket_left(&limiter);
        assert!(tally.granted.load(Ordering::Relaxed) > 0);
        assert!(tally.cancelled.load(Ordering::Relaxed) > 0);
    });
}

/// One request that may time out, be cancelled and be granted, all at about the same time.
fn started_and_cancelled(world: &World, limiter: &Limiter, token: u64, rng: &mut Rng, tally: &Tally) {
    let completions = Completions::new();
    // Now and then long enough for a permit, however slow the machine is.
    let longest = if rng.one_in(8) {
        1_000_000
    } else if world.is_memory() {
        500
    } else {
        3000
    };
    let wait = Duration::from_micros(rng.below(longest));
    let ticket = limiter.acquire_start(&Request::new().max_wait(wait), &completions, token).expect("start");
    rng.dawdle(2000);
    if rng.one_in(2) {
        ticket.cancel();
    }
    world.clock.advance(wait);
    let completion = next(&completions);
    assert_eq!(completion.token, token);
    tally.count(&completion.result, ticket.state());
    rng.dawdle(2000);
    drop(completion);
    assert_none(&completions);
}

#[test]
fn grant_timeout_and_cancel_at_once_make_exactly_one_completion() {
    on_both(|world| {
        let rounds = if world.is_memory() { 1000 } else { 200 };
        let tokens = AtomicU64::new(0);
        let (limiter, tally) = race(world, rounds, |limiter, rng, tally| {
            let token = tokens.fetch_add(1, Ordering::Relaxed);
            started_and_cancelled(world, limiter, token, rng, tally);
        });
        world.assert_no_ticket_left(&limiter);
        assert!(tally.granted.load(Ordering::Relaxed) > 0);
        assert!(tally.timed_out.load(Ordering::Relaxed) > 0);
    });
}

/// Starts requests until the client is closed; returns how many, each of which has its completion.
fn start_until_closed(limiter: &Limiter, completions: &Completions) -> u64 {
    let mut started = 0;
    let mut closed = false;
    while !closed {
        limiter.acquire_start(&patient(), completions, started).expect("start");
        started += 1;
        let completion = next(completions);
        closed = match &completion.result {
            Ok(_) => false,
            Err(Error::Closed) => true,
            Err(other) => panic!("{other:?}"),
        };
    }
    started
}

fn close_at_a_random_moment(client: &Client, limiter: &Limiter, rng: &mut Rng) {
    let busy = [Completions::new(), Completions::new(), Completions::new()];
    let waiting = Completions::new();
    limiter.acquire_start(&patient(), &waiting, 0).expect("start");
    thread::scope(|scope| {
        for completions in &busy {
            scope.spawn(move || start_until_closed(limiter, completions));
        }
        rng.dawdle(20_000);
        client.close(Duration::ZERO).expect("close");
    });
    let settled = next(&waiting); // granted and lost again, or closed: but settled
    assert!(settled.result.is_ok_and(|permit| !permit.is_valid()) || settled.token == 0);
    for completions in busy.iter().chain([&waiting]) {
        assert_none(completions);
    }
}

#[test]
fn a_close_at_any_moment_settles_every_request_once() {
    on_both(|world| {
        let mut rng = Rng::new(7);
        let observer = world.limiter(2);
        for _ in 0..if world.is_memory() { 200 } else { 25 } {
            let client = world.client();
            close_at_a_random_moment(&client, &limiter(&client, 2), &mut rng);
        }
        drop(take(&observer));
        world.assert_no_ticket_left(&observer);
    });
}

/// The slot comes free at the moment at which the first in line gives up; the second must have it in the end.
fn release_against_timeout(world: &World, limiter: &Limiter, rng: &mut Rng) -> bool {
    let held = take(limiter);
    let (first, second) = (Completions::new(), Completions::new());
    let wait = Duration::from_micros(2000);
    limiter.acquire_start(&Request::new().max_wait(wait), &first, 1).expect("start");
    limiter.acquire_start(&patient(), &second, 2).expect("start");
    let (before, after) = (rng.below(3000), rng.below(3000));
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..before).for_each(|_| std::hint::spin_loop());
            world.clock.advance(wait);
        });
        (0..after).for_each(|_| std::hint::spin_loop());
        if !world.is_memory() {
            thread::sleep(wait);
        }
        held.release().expect("release");
    });
    let first_was_granted = next(&first).result.is_ok();
    let _second = granted(&second, 2);
    first_was_granted
}

#[test]
fn a_timeout_in_the_moment_of_a_release_neither_skips_nor_doubles_the_next() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let mut rng = Rng::new(3);
        for _ in 0..if world.is_memory() { 400 } else { 60 } {
            release_against_timeout(world, &limiter, &mut rng);
            world.assert_no_ticket_left(&limiter);
        }
    });
}
