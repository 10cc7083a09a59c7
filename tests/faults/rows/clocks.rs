//! Clocks that jump. The scripts' time is TIME plus a skew that they keep: to change the skew behind their back is to
//! them what a server sees whose clock is set.

use std::time::Duration;

use fairq::{Client, Clock, Completions, Error, LostReason, PermitEvent, Request};

use crate::load::*;
use crate::matrix::{Recoveries, Row};
use crate::rows::proxy::{repeat, wait_until};
use crate::support::*;
use crate::tools::{Record, SKEW, drain_in_order, limiter, line_up, ms, open, wait_status};
use crate::workers::now;

const HOUR: f64 = 3_600_000_000.0;

pub fn rows() -> Vec<Row> {
    vec![
        Row::load("server clock +1 h", "3 times", "nobody alive is reaped", NOTHING, |load| {
            set_clock(load, &[HOUR; 3])
        }),
        Row::load("server clock -1 h", "3 times", "orders and fences still grow", NOTHING, |load| {
            set_clock(load, &[-HOUR; 3])
        }),
        Row::load(
            "server clock swings",
            "by up to three leases to and fro, 20 times, 100 ms apart",
            "nobody alive is reaped, numbers still grow",
            NOTHING,
            swing,
        )
        .quick(),
        Row::alone(
            "host suspended",
            "one of two hosts stands still for an hour of its own clock, while the other goes on; until the other has \
             its slot, and until the first knows when it wakes",
            "the other is served after a lease; the first finds its permit lost and its waiter timed out",
            |flavor| repeat(3, || suspend(&Server::start(flavor))),
        ),
    ]
}

fn set_clock(load: &mut Load, jumps: &[f64]) -> Recoveries {
    let jump = |by: &f64| {
        Record::patch(&load.server, NAME, SKEW, *by);
        load.recovered(now())
    };
    jumps.iter().map(jump).collect()
}

fn swing(load: &mut Load) -> Recoveries {
    let lease = LEASE.as_micros() as f64;
    for step in 0..20 {
        let by = lease * f64::from(1 + step % 3);
        Record::patch(&load.server, NAME, SKEW, if step % 2 == 0 { by } else { -by });
        wait_until(now(), ms(100));
    }
    vec![load.recovered(now())]
}

/// A clock that nobody advances is a host that stands still: no heartbeat leaves it.
fn suspend(server: &Server) -> Duration {
    let clock = Clock::manual();
    let client = Client::builder(&server.url()).clock(clock.clone()).open().expect("open");
    let ours = limiter(&client, NAME, 1, ms(1000));
    let permit = ours.acquire(&Request::new()).expect("a permit");
    let (events, done) = (permit.events(), Completions::new());
    ours.acquire_start(&Request::new().max_wait(Duration::from_secs(600)), &done, 7).expect("start");
    wait_status(&ours, "it waits", |s| s.waiting == 1);
    let since = now();
    let (_other_client, other) = open(&server.url(), NAME, 1, ms(1000));
    let theirs = other.acquire(&Request::new().max_wait(SOON)).expect("the slot of the one that stands still");
    let slot_back = Duration::from_nanos(now() - since);
    clock.advance(Duration::from_secs(3600));
    assert!(!permit.is_valid(), "valid after an hour without a heartbeat");
    let waiter = done.poll(1, SOON).pop().expect("a completion");
    assert!(matches!(waiter.result, Err(Error::TimedOut { .. })), "{waiter:?}");
    let lost = || events.try_iter().any(|event| event == PermitEvent::Lost(LostReason::LeaseExpired));
    eventually("it is told", SOON, || {
        clock.advance(ms(10)); // what a slow server has to be asked again is due by this clock, too
        lost()
    });
    theirs.release().expect("release");
    line_up(&other, &done, 0..1);
    drain_in_order(&done, [0]);
    slot_back
}
