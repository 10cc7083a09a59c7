//! Processes that die in the middle of something that takes several calls. Of one that is killed nothing is left but what
//! the server got; so at each call it is enough to die before the server got it, and after.

use std::time::Duration;

use crate::load::*;
use crate::matrix::Row;
use crate::rows::proxy::needle;
use crate::support::*;
use crate::tools::{raw, wait_status};
use crate::workers::{Worker, now};

pub fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row::load(
            "kill -9 between the calls of a restore",
            "a process with 1,000 waiters brings them back in ten calls, and dies when the server has run some of them; until \
             nothing of it is left",
            "what was brought back is swept away; no slot is lost",
            NOTHING,
            |load| [15_000, 40_000, 80_000].map(|bytes| restore_in_part(load, bytes)).into(),
        ),
        Row::load(
            "kill -9 with half a batch sent",
            "300 enqueues and cancels at once, over a connection that is cut after some bytes, in the middle of a command; \
             until nothing of it is left",
            "what the server got of it is swept away; no slot is lost",
            NOTHING,
            |load| [3_000, 20_000, 50_000].map(|bytes| enqueue_in_part(load, bytes)).into(),
        ),
    ];
    rows.extend(["release", "cancel", "leave"].map(|verb| {
        Row::load(
            &format!("kill -9 in a close, at {verb}"),
            "a client with a permit and 200 waiters closes; its process dies when this request of it is on the way, before \
             and after the server got it; until nothing of it is left",
            "what was not given back is swept away; no slot is lost",
            NOTHING,
            move |load| [false, true].map(|after| close_in_part(load, verb, after)).into(),
        )
    }));
    rows
}

/// A process behind a proxy of its own, with so many waiters; no part of the load.
fn doomed(load: &Load, waiters: u64) -> (Worker, Proxy) {
    let proxy = Proxy::to(load.server.port());
    let mut worker = Worker::start(&setup(&proxy));
    worker.tell(&format!("flood {waiters}"));
    wait_status(&load.observer, "they wait", |s| s.waiting >= waiters - 10);
    (worker, proxy)
}

fn die(load: &mut Load, mut worker: Worker) -> Duration {
    let since = now();
    worker.kill();
    load.forgotten(worker.pid());
    Duration::from_nanos(now() - since).max(load.recovered(since))
}

fn restore_in_part(load: &mut Load, bytes: usize) -> Duration {
    let (worker, proxy) = doomed(load, 1000);
    proxy.cut_after(bytes); // each attempt brings back the first of them again, and gets no further
    raw::<()>(&load.server, "DEL fq:{a}:held");
    load.has_lost_state();
    proxy.cut();
    wait_status(&load.observer, "some are back", |s| s.waiting >= 90);
    let back = load.observer.status().expect("the limiter's status").waiting;
    assert!(back < 1000, "all {back} are back");
    die(load, worker)
}

fn enqueue_in_part(load: &mut Load, bytes: usize) -> Duration {
    let proxy = Proxy::to(load.server.port());
    let mut worker = Worker::start(&setup(&proxy));
    worker.tell("acquire first 1 60000");
    worker.wait("granted", "first");
    proxy.cut_after(bytes);
    proxy.cut();
    let cuts = proxy.accepted();
    worker.tell("flood 300");
    eventually("a connection was cut in the middle", SOON, || proxy.accepted() > cuts + 2);
    die(load, worker)
}

fn close_in_part(load: &mut Load, verb: &str, after: bool) -> Duration {
    let proxy = Proxy::to(load.server.port());
    let mut worker = Worker::start(&setup(&proxy));
    worker.tell("acquire own 1 60000");
    worker.wait("granted", "own");
    worker.tell("flood 200");
    wait_status(&load.observer, "they wait", |s| s.waiting >= 190);
    // Requests of one ticket travel together, if there are several.
    let scripts = if verb == "leave" { &["leave"][..] } else { &[verb, "parcel"] };
    let traps: Vec<Held> = scripts.iter().map(|script| proxy.stall_request(&needle(script), 0)).collect();
    worker.tell("order leave");
    eventually("the proxy caught the request", SOON, || traps.iter().any(Held::is_caught));
    if after {
        traps.iter().filter(|held| held.is_caught()).for_each(Held::deliver);
    }
    die(load, worker)
}
