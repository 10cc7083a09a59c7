//! P7, no lost wakeup: a free slot with a live waiter is filled, whatever becomes of the messages; and by the message
//! alone when Pub/Sub works.

use std::time::Duration;

use crate::support::*;
use crate::tools::*;
use crate::workers::{Setup, Worker};
use fairq::*;

const LEASE: Duration = Duration::from_secs(1);

/// Hands one slot down a line in which two clients alternate, so that every release frees it for the other one.
/// `before` runs before each release.
fn relay(first: &Limiter, second: &Limiter, steps: u64, before: impl Fn()) {
    let done = Completions::new();
    let permit = first.acquire(&Request::new()).expect("the first permit");
    for step in 0..steps {
        let limiter = if step % 2 == 0 { second } else { first };
        line_up(limiter, &done, step..step + 1);
    }
    before();
    permit.release().expect("release");
    for step in 0..steps {
        let (token, permit) = take(&done);
        assert_eq!(token, step, "overtaken");
        before();
        permit.release().expect("release");
    }
    wait_status(first, "all have ended", |s| s.used == 0 && s.waiting == 0);
}

fn without_messages(server: &Server) -> Client {
    Client::builder(&server.url()).subscribe(false).open().expect("open a client")
}

#[test]
fn without_pubsub_the_poll_fills_every_free_slot() {
    for flavor in Flavor::available() {
        let server = Server::start(flavor);
        let (one, two) = (without_messages(&server), without_messages(&server));
        relay(&limiter(&one, "a", 1, LEASE), &limiter(&two, "a", 1, LEASE), 6, || ());
        assert_eq!(server.calls("subscribe"), 0);
    }
}

#[test]
fn when_subscribers_hear_nothing_the_poll_fills_every_free_slot() {
    let server = server();
    let proxy = Proxy::to(server.port());
    proxy.block_pubsub();
    let (_one, first) = open(&proxy.url(), "a", 1, LEASE);
    let (_two, second) = open(&proxy.url(), "a", 1, LEASE);
    relay(&first, &second, 10, || ());
}

#[test]
fn a_subscription_killed_before_every_release_loses_no_slot() {
    let server = server();
    let proxy = Proxy::to(server.port());
    let (_one, first) = open(&proxy.url(), "a", 1, LEASE);
    let (_two, second) = open(&proxy.url(), "a", 1, LEASE);
    relay(&first, &second, 16, || proxy.kill_pubsub());
}

#[test]
fn a_message_alone_fills_a_free_slot() {
    let server = server();
    let (one, two) = (Client::open(&server.url()).unwrap(), Client::open(&server.url()).unwrap());
    // The next poll would be in a minute.
    relay(&patient_limiter(&one, "a", 1), &patient_limiter(&two, "a", 1), 200, || ());
}

/// S9
#[test]
fn two_slots_freed_at_once_go_to_two_waiters_of_one_client() {
    let server = server();
    let (one, two) = (Client::open(&server.url()).unwrap(), Client::open(&server.url()).unwrap());
    let (holder, waiter) = (patient_limiter(&one, "a", 2), patient_limiter(&two, "a", 2));
    for round in 0..30 {
        let permits = [(); 2].map(|()| holder.acquire(&Request::new()).expect("a permit"));
        let done = Completions::new();
        line_up(&waiter, &done, round..round + 2);
        std::thread::scope(|scope| {
            for permit in permits {
                scope.spawn(|| permit.release().expect("release"));
            }
        });
        let (first, second) = (take(&done), take(&done));
        assert_kept(&first.1);
        assert_kept(&second.1);
    }
}

/// S2
#[test]
fn after_a_hundred_failed_subscribe_attempts_all_clients_subscribe_and_go_on() {
    const CLIENTS: u64 = 25;
    let server = server();
    let proxy = Proxy::to(server.port());
    let direct = Client::open(&server.url()).unwrap();
    let permit = patient_limiter(&direct, "a", 1).acquire(&Request::new()).expect("a permit");
    proxy.refuse();
    let (before, done) = (proxy.accepted(), Completions::new());
    let clients: Vec<Client> = (0..CLIENTS).map(|_| Client::open(&proxy.url()).unwrap()).collect();
    for (token, client) in (0..).zip(&clients) {
        let request = Request::new().wait_forever();
        patient_limiter(client, "a", 1).acquire_start(&request, &done, token).expect("start a request");
    }
    // Each client tries to connect for commands and to subscribe, at the same pace.
    eventually("200 attempts failed", SOON, || proxy.accepted() >= before + 200);
    proxy.heal();
    eventually("all are subscribed", SOON, || proxy.subscribers() == CLIENTS as usize);
    wait_status(&patient_limiter(&direct, "a", 1), "all wait", |s| s.waiting == CLIENTS);
    permit.release().expect("release");
    for _ in 0..CLIENTS {
        take(&done).1.release().expect("release");
    }
}

/// S10
#[test]
fn hundreds_of_limiters_of_one_client_survive_two_quick_cuts() {
    const LIMITERS: u64 = 300;
    let server = server();
    let proxy = Proxy::to(server.port());
    let (holder, waiter) = (Client::open(&server.url()).unwrap(), Client::open(&proxy.url()).unwrap());
    let name = |i: u64| format!("limiter {i}");
    let (held, done) = (Completions::new(), Completions::new());
    for i in 0..LIMITERS {
        patient_limiter(&holder, &name(i), 1).acquire_start(&Request::new(), &held, i).expect("start a request");
    }
    let permits: Vec<Permit> = (0..LIMITERS).map(|_| take(&held).1).collect();
    let request = Request::new().wait_forever();
    let start = |i| patient_limiter(&waiter, &name(i), 1).acquire_start(&request, &done, i).expect("start a request");
    let tickets: Vec<Ticket> = (0..LIMITERS).map(start).collect();
    eventually("all wait", SOON, || tickets.iter().all(|ticket| ticket.last_position().is_some()));
    for _ in 0..2 {
        eventually("it is subscribed", SOON, || proxy.subscribers() == 1);
        proxy.cut();
    }
    drop(permits);
    let mut tokens: Vec<u64> = (0..LIMITERS).map(|_| take(&done).0).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (0..LIMITERS).collect::<Vec<_>>());
}

/// S7
#[test]
fn an_application_that_does_not_look_for_long_finds_every_grant() {
    const WAITERS: u64 = 2000;
    let server = server();
    let (_one, holder) = open(&server.url(), "a", WAITERS, LEASE);
    let (_two, waiter) = open(&server.url(), "a", WAITERS, LEASE);
    let permit = holder.acquire(&Request::new().cost(WAITERS)).expect("everything");
    let done = Completions::new();
    line_up(&waiter, &done, 0..WAITERS);
    permit.release().expect("release");
    // Not asked by status(), which would lend a hand.
    let used = || Record::read(&server, "a").map_or(0.0, |record| record.number(USED));
    eventually("all are granted, and nobody has looked", SOON, || used() == WAITERS as f64);
    let_pass(&server, "a", 3 * LEASE);
    let mut granted: Vec<(u64, Permit)> = (0..WAITERS).map(|_| take(&done)).collect();
    granted.sort_by_key(|(_, permit)| permit.fence()); // at one moment, and told by more than one thread
    assert!(granted.iter().map(|(token, _)| *token).eq(0..WAITERS), "the grants are in line order");
    granted.iter().for_each(|(_, permit)| assert_kept(permit));
    drop(granted);
    assert_empty(&server, &holder);
}

/// Messages are no more than hints.
#[test]
fn thousands_of_senseless_messages_grant_nothing_and_break_nothing() {
    let server = server();
    let (one, first) = open(&server.url(), "a", 1, LEASE);
    let (_two, second) = open(&server.url(), "a", 1, LEASE);
    let permit = second.acquire(&Request::new()).expect("a permit");
    let done = Completions::new();
    let ticket = line_up(&first, &done, 0..1).remove(0);
    let no = ticket.id().rsplit_once(':').unwrap().1.to_owned();
    let channel = format!("fq:{}", one.instance());
    let mut conn = server.conn();
    let hash = &keys("a")[0];
    for text in ["", "x", "0 g", "0 g,,,", "1 q,1", "18446744073709551616 g,1,2,3", &format!("7 g,{no},1,1|{hash}")] {
        let mut pipeline = redis::pipe();
        for _ in 0..1000 {
            pipeline.cmd("PUBLISH").arg(&channel).arg(text).ignore();
        }
        pipeline.exec(&mut conn).expect("publish");
    }
    let_pass(&server, "a", LEASE);
    assert_eq!(ticket.state(), TicketState::Pending);
    permit.release().expect("release");
    drain_in_order(&done, [0]);
    relay(&first, &second, 4, || ());
}

/// A message that comes late, or twice, speaks of a grant that is over.
#[test]
fn an_old_message_about_a_ticket_that_was_put_back_grants_nothing() {
    let server = server();
    let (_one, first) = open(&server.url(), "a", 2, LEASE);
    let (two, second) = open(&server.url(), "a", 2, LEASE);
    let early = first.acquire(&Request::new()).expect("a permit");
    let blocker = first.acquire(&Request::new()).expect("a permit");
    let mut conn = server.conn();
    let mut listener = conn.as_pubsub();
    let channel = format!("fq:{}", two.instance());
    listener.subscribe(&channel).expect("subscribe");
    let done = Completions::new();
    line_up(&second, &done, 0..1);
    blocker.release().expect("release");
    let permit = take(&done).1;
    let mut next = || listener.get_message().expect("a message").get_payload::<String>().expect("text");
    let message = std::iter::repeat_with(&mut next).find(|text| text.contains(" g,")).expect("a grant");
    first.configure(&Change::new().limit(1)).expect("configure");
    std::thread::scope(|scope| {
        let again = scope.spawn(|| permit.put_back(SOON).expect("granted again"));
        wait_status(&first, "it is back in line", |s| s.waiting == 1);
        let heard: u64 = run(&server, &["PUBLISH", &channel, &message]);
        assert_eq!(heard, 2, "the client and the test");
        let_pass(&server, "a", LEASE);
        assert!(!again.is_finished(), "granted by an old message, above the limit");
        early.release().expect("release");
        again.join().expect("no panic").release().expect("release");
    });
    assert_empty(&server, &first);
}

/// S36
#[test]
fn when_a_holder_dies_and_nothing_else_happens_the_head_is_granted_after_the_lease() {
    let server = server();
    let mut worker = Worker::start(&Setup::new(&server.url(), "a", 1, LEASE));
    worker.tell("acquire held 1 0");
    worker.wait("granted", "held");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    worker.kill();
    drain_in_order(&done, [0]);
    assert_empty(&server, &limiter);
}
