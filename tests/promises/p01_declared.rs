//! P1, limit: which limit it is, when processes and operators disagree.

use std::time::Duration;

use fairq::{Change, Client, Completions, Limiter, Permit, Request, TicketState};

use crate::stores::*;
use crate::support::{SOON, eventually};

const LEASE: Duration = Duration::from_secs(3);

fn declared(client: &Client, limit: u64) -> Limiter {
    open(client.limiter(NAME).limit(limit).lease(LEASE))
}

/// Takes all that is free.
fn fill(limiter: &Limiter) -> Vec<Permit> {
    std::iter::from_fn(|| limiter.try_acquire(&Request::new()).expect("ask")).collect()
}

#[test]
fn the_newest_open_wins_and_its_limit_holds_for_all() {
    on_both(|world| {
        let (old, new) = (world.client(), world.client());
        let ten = declared(&old, 10);
        let mut held = fill(&ten);
        assert_eq!(held.len(), 10);
        let five = declared(&new, 5);
        assert!(fill(&five).is_empty());
        assert_eq!(ten.status().expect("status").limit, 5, "the newest open wins");
        held.truncate(5);
        wait_for_use(&ten, 5);
        assert!(fill(&ten).is_empty() && fill(&five).is_empty(), "the winner's limit holds for the loser as well");
        held.truncate(4);
        wait_for_use(&ten, 4);
        assert_eq!(fill(&ten).len(), 1);
    });
}

#[test]
fn the_loser_learns_the_settings_of_the_winner_and_does_not_fight() {
    on_both(|world| {
        let (old, new) = (world.client(), world.client());
        let loser = declared(&old, 10);
        let _held = take(&loser);
        let winner = open(new.limiter(NAME).limit(1).lease(LEASE).max_wait(Duration::from_millis(50)));
        assert!(winner.try_acquire(&Request::new()).expect("ask").is_none());
        // The limiter's own max_wait bounds a request that has none: so the loser shows that it has learnt.
        let completions = Completions::new();
        eventually("the loser learns it by its next sync", SOON, || {
            let ticket = loser.acquire_start(&Request::new(), &completions, 1).expect("start");
            world.clock.advance(LEASE / 3);
            if completions.poll(1, Duration::from_millis(200)).is_empty() && ticket.cancel() {
                next(&completions);
            }
            ticket.state() == TicketState::TimedOut
        });
        assert_eq!(winner.status().expect("status").limit, 1, "the loser's later calls change nothing");
    });
}

#[test]
fn what_an_operator_sets_stands_above_every_declaration_until_it_is_reset() {
    on_both(|world| {
        let first = declared(&world.client(), 10);
        drop(take(&first));
        let status = configure(&first, Change::new().limit(2));
        assert_eq!((status.limit, status.overridden), (2, vec!["limit"]));
        let second = declared(&world.client(), 7);
        let held = fill(&second);
        assert_eq!(held.len(), 2);
        assert_eq!(first.status().expect("status").limit, 2);
        let status = configure(&first, Change::new().reset());
        assert_eq!((status.limit, status.overridden), (7, vec![]), "back to the newest declaration");
    });
}

#[test]
fn who_only_attaches_declares_nothing() {
    on_both(|world| {
        let declared = declared(&world.client(), 2);
        let _held = take(&declared);
        let attached = open(world.client().limiter(NAME));
        let _other = take(&attached);
        assert!(attached.try_acquire(&Request::new()).expect("ask").is_none());
        assert_eq!(attached.status().expect("status").limit, 2);
    });
}
