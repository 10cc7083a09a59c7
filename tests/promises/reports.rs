//! What a completion queue tells beside the completion: places in line, and what happens to permits; and what becomes of
//! requests when their queue goes.

use std::time::Duration;

use fairq::{Change, Completions, Error, Event, Limiter, LostReason, PermitEvent, Position, Request, TicketState};

use crate::stores::*;
use crate::support::{SOON, eventually, eventually_some};

const POLL: Duration = Duration::from_millis(100);

fn limiter_of(world: &World, limit: u64) -> Limiter {
    open(world.client().limiter(NAME).limit(limit).lease(3 * SOON).poll(POLL))
}

fn watched() -> Request {
    patient().report_position(true)
}

/// The next event; meanwhile time goes on.
#[track_caller]
fn next_event(world: &World, from: &Completions) -> Event {
    eventually_some("an event", SOON, || {
        world.clock.advance(POLL / 4);
        from.poll_events(1, POLL / 4).pop()
    })
}

#[track_caller]
fn next_position(world: &World, from: &Completions) -> (u64, u64) {
    match next_event(world, from) {
        Event::Position { token, position } => (token, position.position),
        other => panic!("no position: {other:?}"),
    }
}

#[test]
fn who_waits_is_told_its_place_at_once_and_whenever_it_moves_up() {
    on_both(|world| {
        let limiter = limiter_of(world, 1);
        let mut held = take(&limiter);
        let queues: Vec<Completions> = (0..3).map(|_| Completions::new()).collect();
        for (before, queue) in queues.iter().enumerate() {
            queue_up(&limiter, queue, 7, &watched(), before as u64);
            assert_eq!(next_position(world, queue), (7, before as u64 + 1));
        }
        for round in 0..queues.len() {
            held.release().expect("release");
            for (at, queue) in queues.iter().enumerate().skip(round + 1) {
                assert_eq!(next_position(world, queue), (7, (at - round) as u64));
            }
            held = granted(&queues[round], 7);
        }
    });
}

#[test]
fn who_did_not_ask_is_told_nothing_but_the_end() {
    on_both(|world| {
        let limiter = limiter_of(world, 1);
        let held = take(&limiter);
        let (asks, asks_not) = (Completions::new(), Completions::new());
        queue_up(&limiter, &asks_not, 1, &patient(), 0);
        queue_up(&limiter, &asks, 2, &watched(), 1);
        let _ = next_position(world, &asks);
        held.release().expect("release");
        assert_eq!(next_position(world, &asks), (2, 1));
        assert!(matches!(next_event(world, &asks_not), Event::Done(_)));
        assert!(asks_not.poll_events(1, Duration::ZERO).is_empty());
    });
}

#[test]
fn places_that_nobody_asks_for_do_not_pile_up() {
    on_both(|world| {
        let (limiter, queue) = (limiter_of(world, 1), Completions::new());
        let (held, others) = (take(&limiter), Completions::new());
        let mut line: Vec<_> = (0..5).map(|before| queue_up(&limiter, &others, 0, &patient(), before)).collect();
        let ticket = queue_up(&limiter, &queue, 1, &watched(), 5);
        for left in (0..5).rev() {
            assert!(line.pop().expect("a waiter").cancel());
            eventually("it has moved up", SOON, || {
                world.clock.advance(POLL / 4);
                ticket.last_position().map(|p| p.position) == Some(left + 1)
            });
        }
        assert_eq!(next_position(world, &queue), (1, 1));
        assert!(queue.poll_events(1, Duration::ZERO).is_empty());
        held.release().expect("release");
        granted(&queue, 1).release().expect("release");
    });
}

#[test]
fn of_many_who_wait_each_is_told_its_exact_place_when_they_are_of_one_process() {
    const WAITERS: u64 = 350;
    on_both(|world| {
        let limiter = limiter_of(world, 1);
        let (held, queue) = (take(&limiter), Completions::new());
        for token in 0..WAITERS {
            limiter.acquire_start(&watched(), &queue, token).expect("start a request");
        }
        wait_for_line(&limiter, WAITERS);
        held.release().expect("release");
        let first = granted_among(world, &queue);
        let mut places = vec![0; WAITERS as usize];
        eventually("everybody knows its place", SOON, || {
            world.clock.advance(POLL / 4);
            for event in queue.poll_events(1000, POLL / 4) {
                if let Event::Position { token, position: Position { position, .. } } = event {
                    places[token as usize] = position;
                }
            }
            places.iter().skip(1).copied().eq(1..WAITERS)
        });
        drop(first);
    });
}

/// The first grant; places are passed over.
#[track_caller]
fn granted_among(world: &World, queue: &Completions) -> fairq::Permit {
    eventually_some("a grant", SOON, || {
        world.clock.advance(POLL / 4);
        queue.poll(1000, POLL / 4).pop()
    })
    .result
    .expect("a permit")
}

#[test]
fn a_lost_permit_is_told_after_the_completion_that_brought_it() {
    on_both(|world| {
        let limiter = open(world.client().limiter(NAME).limit(1).lease(3 * SOON).max_hold(POLL));
        let queue = Completions::new();
        limiter.acquire_start(&patient().report_permit(true), &queue, 9).expect("start a request");
        let Event::Done(done) = next_event(world, &queue) else { panic!("the completion comes first") };
        let permit = done.result.expect("a permit");
        match next_event(world, &queue) {
            Event::Permit { token: 9, event: PermitEvent::Lost(LostReason::MaxHold) } => {}
            other => panic!("{other:?}"),
        }
        assert!(!permit.is_valid());
        assert_eq!(permit.release(), Err(Error::PermitLost(LostReason::MaxHold)));
    });
}

/// Permits that were put into the queue, and not taken, hold up nobody; nor do those who wait for nobody.
#[test]
fn when_a_queue_goes_its_requests_leave_the_line_and_its_permits_go_back() {
    on_both(|world| {
        let (limiter, queue) = (limiter_of(world, 1), Completions::new());
        let granted = limiter.acquire_start(&patient(), &queue, 1).expect("start a request");
        wait_for_use(&limiter, 1);
        let waiting = queue_up(&limiter, &queue, 2, &patient(), 0);
        let clone = queue.clone();
        drop(queue);
        assert_eq!((granted.state(), waiting.state()), (TicketState::Granted, TicketState::Pending));
        drop(clone);
        assert_eq!((granted.state(), waiting.state()), (TicketState::Released, TicketState::Cancelled));
        world.assert_no_ticket_left(&limiter);
    });
}

#[test]
fn a_second_start_with_a_ticket_is_refused_and_leaves_the_first_alone() {
    on_both(|world| {
        let (limiter, queue) = (limiter_of(world, 1), Completions::new());
        let (held, ticket) = (take(&limiter), limiter.ticket());
        limiter.acquire_start_with(&ticket, &patient(), &queue, 1).expect("start a request");
        let again = limiter.acquire_start_with(&ticket, &patient(), &queue, 2).expect_err("it is used");
        assert!(matches!(again, Error::Invalid { what: "ticket", .. }), "{again:?}");
        held.release().expect("release");
        granted(&queue, 1).release().expect("release");
        assert_none(&queue);
    });
}

#[test]
fn a_ticket_that_was_cancelled_before_completes_as_cancelled() {
    on_both(|world| {
        let (limiter, queue) = (limiter_of(world, 1), Completions::new());
        let ticket = limiter.ticket();
        assert!(ticket.cancel());
        limiter.acquire_start_with(&ticket, &patient(), &queue, 1).expect("start a request");
        assert_eq!(next(&queue).result.expect_err("cancelled"), Error::Cancelled);
        world.assert_no_ticket_left(&limiter);
    });
}

#[test]
fn a_paused_limiter_still_tells_places() {
    on_both(|world| {
        let (limiter, queue) = (limiter_of(world, 1), Completions::new());
        drop(take(&limiter));
        wait_for_use(&limiter, 0);
        configure(&limiter, Change::new().pause());
        limiter.acquire_start(&watched(), &queue, 3).expect("start a request");
        assert_eq!(next_position(world, &queue), (3, 1));
    });
}

/// Whoever asks first, the queue is told, too.
#[test]
fn a_place_that_somebody_asked_for_is_reported_all_the_same() {
    on_both(|world| {
        let limiter = limiter_of(world, 1);
        let (held, others, queue) = (take(&limiter), Completions::new(), Completions::new());
        let ahead = queue_up(&limiter, &others, 0, &patient(), 0);
        let ticket = queue_up(&limiter, &queue, 1, &watched(), 1);
        assert_eq!(next_position(world, &queue), (1, 2));
        assert!(ahead.cancel());
        wait_for_line(&limiter, 1);
        let asked = ticket.position().expect("ask").expect("it waits");
        assert_eq!(asked.position, 1);
        assert_eq!(next_position(world, &queue), (1, 1));
        held.release().expect("release");
        granted(&queue, 1).release().expect("release");
    });
}
