//! How long the slot of a killed process is missing: the server can tell by its closed subscription.

use std::time::Duration;

use fairq::{Completions, Request};

use crate::load::*;
use crate::matrix::{Recoveries, Row};
use crate::rows::proxy::repeat;
use crate::support::*;
use crate::tools::{drain_in_order, line_up, listeners, open, take};
use crate::workers::{Setup, Worker, now};

/// Longer than anybody waits: what is free sooner is so because the death was noticed.
const LONG: Duration = Duration::from_secs(200);
const KILLS: usize = 20;

pub fn rows() -> Vec<Row> {
    vec![
        Row::alone(
            "a holder dies",
            "kill -9 of the one who holds the only slot, somebody waits; until that one has it",
            "about a second, whatever the lease (here 200 s)",
            |flavor| on(flavor, holder_dies),
        ),
        Row::alone(
            "the head of the line dies",
            "kill -9 of the one who waits in front, then the slot is freed; until the next one has it",
            "about a second, whatever the lease (here 200 s)",
            |flavor| on(flavor, head_dies),
        ),
        Row::alone(
            "a holder dies that nobody can hear",
            "the same without subscriptions, lease 2 s",
            "the lease, and up to one poll",
            |flavor| repeat(5, || unheard_holder_dies(&Server::start(flavor))),
        ),
    ]
}

fn on(flavor: Flavor, death: fn(&Server) -> Duration) -> Recoveries {
    let server = Server::start(flavor);
    repeat(KILLS, || death(&server))
}

/// A process that is known to listen, as the first of its limiter, or beside one other.
fn listening(server: &Server, others: usize, request: &str) -> Worker {
    let mut worker = Worker::start(&Setup::new(&server.url(), NAME, 1, LONG));
    worker.tell(request);
    eventually("it is known to listen", SOON, || listeners(server, NAME) == others + 1);
    worker
}

fn holder_dies(server: &Server) -> Duration {
    let (client, limiter) = open(&server.url(), NAME, 1, LONG);
    let mut worker = listening(server, 0, "acquire x 1 0");
    worker.wait("granted", "x");
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    let since = now();
    worker.kill();
    let (_, permit) = take(&done);
    let slot_back = Duration::from_nanos(now() - since);
    permit.release().expect("release");
    client.close(Duration::ZERO).expect("close");
    slot_back
}

fn head_dies(server: &Server) -> Duration {
    let (client, limiter) = open(&server.url(), NAME, 1, LONG);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    eventually("it is known to listen", SOON, || listeners(server, NAME) == 1);
    let mut worker = listening(server, 1, "acquire x 1 200000");
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    let since = now();
    worker.kill();
    permit.release().expect("release");
    drain_in_order(&done, [0]);
    let slot_back = Duration::from_nanos(now() - since);
    client.close(Duration::ZERO).expect("close");
    slot_back
}

fn unheard_holder_dies(server: &Server) -> Duration {
    let client = fairq::Client::builder(&server.url()).subscribe(false).open().expect("open");
    let limiter = crate::tools::limiter(&client, NAME, 1, LEASE);
    let mut worker = Worker::start(&Setup::new(&server.url(), NAME, 1, LEASE));
    worker.tell("acquire x 1 0");
    worker.wait("granted", "x");
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    let since = now();
    worker.kill();
    drain_in_order(&done, [0]);
    Duration::from_nanos(now() - since)
}
