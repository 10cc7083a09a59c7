//! Processes that die, stop, or come in crowds.

use std::time::Duration;

use fairq::{Client, Completions, Request};

use crate::load::*;
use crate::matrix::{Recoveries, Row};
use crate::rows::proxy::{VERBS, needle, repeat, wait_until};
use crate::support::*;
use crate::tools::{is_in_line, limiter, open, raw, take, wait_status};
use crate::workers::{Worker, now};

pub fn rows() -> Vec<Row> {
    let mut rows = Vec::from(VERBS.map(|verb| {
        let row = Row::load(
            &format!("kill -9 at {verb}"),
            "the process dies when a request of this kind is on the way (of those that it often sends the first, second, \
             ... sixth), before and after the server got it; until nothing of it is left",
            "what it held and waited for is gone soon; no slot is lost",
            NOTHING,
            move |load| kill_at(load, verb),
        );
        if verb == "acquire" { row.quick() } else { row }
    }));
    let stops = [("half a lease", LEASE / 2), ("1.5 leases", LEASE * 3 / 2), ("3 leases", LEASE * 3)];
    rows.extend(stops.map(|(name, time)| {
        let price = if time > LEASE { PERMITS } else { NOTHING };
        let expected = match time > LEASE {
            true => "the others go on; it goes to the end of the line, and knows what it lost before it gets more",
            false => "it loses nothing",
        };
        Row::load(&format!("process stopped for {name}"), "SIGSTOP, SIGCONT; 2 times", expected, price, move |load| {
            stop(load, time)
        })
    }));
    rows.extend([
        Row::load(
            "100 clients reconnect at once",
            "all connections of 100 clients with a waiter each are cut, 5 times; until all stand in line",
            "each keeps its place",
            NOTHING,
            crowd,
        ),
        Row::load(
            "1,000 waiters die at once",
            "kill -9 of a process with 1,000 tickets in line; until none is left",
            "swept away, a batch a call",
            NOTHING,
            mass_death,
        ),
        Row::load(
            "10,000 cancels at once",
            "10,000 waiters of one process give up; until the line has none of them",
            "cancelled in batches; the others go on",
            NOTHING,
            mass_cancel,
        ),
        Row::load(
            "20,000 names used once",
            "a permit of each is taken and given back; until all their keys are gone",
            "keys expire; the number of keys returns to where it was",
            NOTHING,
            many_names,
        )
        .within(Duration::from_secs(60)),
    ]);
    rows
}

fn kill_at(load: &mut Load, verb: &str) -> Recoveries {
    let mut recoveries = Vec::new();
    for turn in 0..6 {
        for after in [false, true] {
            let proxy = Proxy::to(load.server.port());
            let victim = load.join(&setup(&proxy));
            let pid = load.workers[victim].pid();
            let is_at_work = || load.workers[victim].count("granted") > 5;
            eventually("it is at work", SOON, is_at_work);
            if verb == "leave" {
                load.end_work(victim); // a client that closes takes its permits along
            }
            let held = match verb {
                "restore" | "configure" | "revoke" | "leave" => proxy.stall_request(&needle(verb), 0),
                _ => proxy.stall_request(&needle(verb), turn),
            };
            match verb {
                "restore" => {
                    raw::<()>(&load.server, "DEL fq:{a}:held");
                    load.has_lost_state();
                }
                "configure" | "revoke" | "leave" => load.workers[victim].tell(&format!("order {verb}")),
                _ => {}
            }
            held.wait_caught();
            if after {
                held.deliver();
            }
            let since = load.kill(victim);
            load.forgotten(pid);
            recoveries.push(Duration::from_nanos(now() - since));
        }
    }
    recoveries
}

fn stop(load: &mut Load, time: Duration) -> Recoveries {
    let recover = |load: &mut Load| {
        load.workers[2].stop();
        let since = now();
        if time > LEASE {
            load.displaced.push(load.workers[2].pid());
        }
        wait_until(since, time);
        load.workers[2].resume();
        load.recovered(now())
    };
    vec![recover(load), recover(load)]
}

fn crowd(load: &mut Load) -> Recoveries {
    const CROWD: u64 = 100;
    let clients: Vec<_> = (0..CROWD).map(|_| open(&load.proxy.url(), "crowd", 1, LEASE)).collect();
    let (_client, holder) = open(&load.server.url(), "crowd", 1, LEASE);
    let permit = holder.acquire(&Request::new()).expect("a permit");
    let done = Completions::new();
    let request = Request::new().wait_forever();
    let tickets: Vec<_> = (0..CROWD)
        .map(|token| {
            let ticket = clients[token as usize].1.acquire_start(&request, &done, token).expect("start");
            eventually("it is in line", SOON, || is_in_line(&ticket));
            ticket
        })
        .collect();
    let recoveries = repeat(5, || {
        load.proxy.cut();
        let since = now();
        eventually("all have connected again", SOON, || load.proxy.live() as u64 >= 2 * CROWD);
        wait_status(&holder, "all stand in line", |s| s.waiting == CROWD && s.instances == CROWD + 1);
        Duration::from_nanos(now() - since).max(load.recovered(since))
    });
    permit.release().expect("release");
    for expected in 0..CROWD {
        let (token, permit) = take(&done);
        assert_eq!(token, expected, "overtaken");
        drop(permit);
    }
    drop(tickets);
    recoveries
}

fn mass_death(load: &mut Load) -> Recoveries {
    repeat(3, || {
        let mut doomed = Worker::start(&setup(&load.proxy));
        doomed.tell("flood 1000");
        wait_status(&load.observer, "they wait", |s| s.waiting >= 990);
        doomed.kill();
        let since = now();
        load.forgotten(doomed.pid());
        Duration::from_nanos(now() - since).max(load.recovered(since))
    })
}

fn mass_cancel(load: &mut Load) -> Recoveries {
    const MANY: u64 = 10_000;
    let client = Client::open(&load.server.url()).expect("open");
    let limiter = limiter(&client, NAME, LIMIT, LEASE);
    let done = Completions::new();
    let request = Request::new().wait_forever();
    let tickets: Vec<_> =
        (0..MANY).map(|token| limiter.acquire_start(&request, &done, token).expect("start")).collect();
    wait_status(&load.observer, "they wait", |s| s.waiting >= MANY / 2);
    let since = now();
    for ticket in &tickets {
        ticket.cancel(); // whether it comes in time is the load's business
    }
    let mut ended = 0;
    eventually("each has ended", SOON, || {
        ended += done.poll(1000, Duration::ZERO).len() as u64; // a permit among them is given back
        ended == MANY
    });
    wait_status(&load.observer, "they have left the line", |s| s.waiting < 20);
    let left = Duration::from_nanos(now() - since);
    assert!(done.poll(1, Duration::ZERO).is_empty(), "one has ended twice");
    vec![left.max(load.recovered(now()))]
}

fn many_names(load: &mut Load) -> Recoveries {
    const NAMES: u64 = 20_000;
    const CROWD: u64 = 500; // at a time
    let before: u64 = raw(&load.server, "DBSIZE");
    let client = Client::open(&load.server.url()).expect("open");
    let done = Completions::new();
    for name in 0..NAMES {
        let limiter = client.limiter(&format!("once {name}")).limit(1).lease(LEASE).idle(LEASE * 2).open();
        limiter.expect("open").acquire_start(&Request::new(), &done, name).expect("start");
        if name % CROWD == CROWD - 1 {
            (0..CROWD).for_each(|_| drop(take(&done))); // gives it back
        }
    }
    let since = now();
    eventually("their keys are gone", Duration::from_secs(60), || raw::<u64>(&load.server, "DBSIZE") == before);
    vec![Duration::from_nanos(now() - since).max(load.recovered(since))]
}
