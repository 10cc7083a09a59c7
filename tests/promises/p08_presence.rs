//! P8, faster than the lease: a process that is gone has closed its subscription, which the server can tell. Whoever
//! wants its slot looks, and the dead one's slots are free within about a second. Nobody who lives is taken for dead.

use std::time::Duration;

use crate::support::*;
use crate::tools::*;
use crate::workers::*;
use fairq::*;

/// Longer than any test waits: what is free sooner is so by what this is about.
const LEASE: Duration = Duration::from_secs(200);

/// A process that holds, or waits, and is known to listen, beside so many others.
fn listening_worker(server: &Server, others: usize, request: &str) -> Worker {
    eventually("the others are known to listen", SOON, || listeners(server, "a") == others);
    let mut worker = Worker::start(&Setup::new(&server.url(), "a", 1, LEASE));
    worker.tell(request);
    eventually("it is known to listen", SOON, || listeners(server, "a") == others + 1);
    worker
}

fn suspected(server: &Server) -> usize {
    let fields: Vec<(String, Vec<u8>)> = run(server, &["HGETALL", &keys("a")[0]]);
    fields.iter().filter(|(field, value)| field.starts_with("l:") && value != b"1").count()
}

#[test]
fn the_slot_of_a_killed_holder_is_free_long_before_its_lease_ends() {
    let server = server();
    let mut worker = listening_worker(&server, 0, "acquire x 1 0");
    worker.wait("granted", "x");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let done = Completions::new();
    line_up(&limiter, &done, 0..2);
    worker.kill();
    drain_in_order(&done, 0..2);
    assert_empty(&server, &limiter);
}

#[test]
fn a_killed_head_of_the_line_holds_nobody_up() {
    let server = server();
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    let mut worker = listening_worker(&server, 1, "acquire x 1 200000");
    wait_status(&limiter, "it waits", |s| s.waiting == 1);
    let done = Completions::new();
    line_up(&limiter, &done, 0..2);
    worker.kill();
    permit.release().expect("release");
    drain_in_order(&done, 0..2);
    assert_empty(&server, &limiter);
}

#[test]
fn who_will_not_wait_finds_the_slot_of_the_dead_as_well() {
    let server = server();
    let mut worker = listening_worker(&server, 0, "acquire x 1 0");
    worker.wait("granted", "x");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    worker.kill();
    let permit = eventually_some("a slot at once", SOON, || limiter.try_acquire(&Request::new()).expect("try"));
    permit.release().expect("release");
}

/// Its sockets are open: nobody but the lease can tell.
#[test]
fn a_stopped_process_is_not_taken_for_dead() {
    let server = server();
    let mut worker = listening_worker(&server, 0, "acquire x 1 0");
    worker.wait("granted", "x");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    worker.stop();
    let_pass(&server, "a", ms(2500));
    worker.resume();
    worker.tell("valid x");
    assert_eq!(worker.wait("valid", "x").words, ["true"]);
    worker.tell("release x");
    assert_eq!(worker.wait("released", "x").words, ["ok"]);
    drain_in_order(&done, [0]);
}

/// Fifty live holders, and one who wants their slots and looks all the time.
#[test]
fn live_ones_whose_subscriptions_are_cut_again_and_again_are_not_taken_for_dead() {
    const HOLDERS: usize = if SLOW { 10 } else { 50 };
    let server = server();
    let open = || open(&server.url(), "a", HOLDERS as u64, LEASE);
    let clients: Vec<(Client, Limiter)> = (0..HOLDERS).map(|_| open()).collect();
    let take_one = |(_, limiter): &(Client, Limiter)| limiter.acquire(&Request::new()).expect("a permit");
    let permits: Vec<Permit> = clients.iter().map(take_one).collect();
    let (_client, waiter) = open();
    let done = Completions::new();
    line_up(&waiter, &done, 0..1);
    eventually("all are known to listen", SOON, || listeners(&server, "a") == HOLDERS + 1);
    for _ in 0..60 {
        let _: usize = raw(&server, "CLIENT KILL TYPE pubsub");
        let_pass(&server, "a", ms(50));
    }
    assert!(done.poll(1, Duration::ZERO).is_empty(), "somebody was taken for dead");
    permits.iter().for_each(assert_kept);
    for permit in permits {
        permit.release().expect("release");
    }
    drain_in_order(&done, [0]);
}

/// It says that it does not listen any more, and is judged by its lease alone.
#[test]
fn a_live_one_that_cannot_subscribe_again_is_not_taken_for_dead() {
    let server = server();
    let proxy = Proxy::to(server.port());
    let (_holder, holder) = open(&proxy.url(), "a", 1, LEASE);
    let permit = holder.acquire(&Request::new()).expect("a permit");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    eventually("both are known to listen", SOON, || listeners(&server, "a") == 2);
    proxy.block_pubsub();
    proxy.kill_pubsub();
    eventually("it has said so", SOON, || listeners(&server, "a") == 1);
    let_pass(&server, "a", ms(2500));
    assert!(done.poll(1, Duration::ZERO).is_empty(), "taken for dead");
    assert_kept(&permit);
    proxy.unblock_pubsub();
    eventually("it listens again", SOON, || listeners(&server, "a") == 2 && suspected(&server) == 0);
    permit.release().expect("release");
    drain_in_order(&done, [0]);
}

#[test]
fn who_never_listens_is_judged_by_its_lease_alone() {
    let server = server();
    let client = Client::builder(&server.url()).subscribe(false).open().unwrap();
    let permit = limiter(&client, "a", 1, LEASE).acquire(&Request::new()).expect("a permit");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    let_pass(&server, "a", ms(2500));
    assert_kept(&permit);
    permit.release().expect("release");
    drain_in_order(&done, [0]);
}
