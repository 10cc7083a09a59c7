//! P2, one exit, where the contenders meet: grant, cancel, timeout and close at random moments.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fairq::{Clock, Completions, Error, Limiter, Permit, Request, Ticket, TicketState};

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
        let rounds = if world.is_memory() { 1500 } else { 500 };
        let (limiter, tally) =
            race(world, rounds, |limiter, rng, tally| blocked_and_cancelled(limiter, &patient(), rng, tally));
        world.assert_no_ticket_left(&limiter);
        assert!(tally.granted.load(Ordering::Relaxed) > 0);
        assert!(tally.cancelled.load(Ordering::Relaxed) > 0);
    });
}
