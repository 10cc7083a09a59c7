//! P10, clocks: leases run by the server's time in the scripts, which never runs backwards; deadlines by a monotonic
//! local clock. No wall clock that jumps or differs changes anything.
//!
//! The scripts' time is TIME plus a skew that they keep. To change the skew behind their back is to them what a server
//! sees whose clock is set.

use std::time::Duration;

use crate::support::*;
use crate::tools::*;
use crate::workers::{Setup, Worker};
use fairq::*;

const LEASE: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn set_clock(server: &Server, by_micros: f64) {
    Record::patch(server, "a", SKEW, by_micros);
}

fn hour() -> f64 {
    HOUR.as_micros() as f64
}

/// One client's permit, and another one's three waiters behind it.
struct Scene {
    holder: (Client, Limiter),
    waiter: (Client, Limiter),
    permit: Permit,
    done: Completions,
}

impl Scene {
    fn set(server: &Server) -> Scene {
        let (holder, waiter) = (open(&server.url(), "a", 1, LEASE), open(&server.url(), "a", 1, LEASE));
        let permit = holder.1.acquire(&Request::new()).expect("a permit");
        let done = Completions::new();
        line_up(&waiter.1, &done, 0..3);
        Scene { holder, waiter, permit, done }
    }

    /// Nobody has lost anything, and all goes on in order, with growing numbers.
    #[track_caller]
    fn goes_on(self, server: &Server) {
        let_pass(server, "a", LEASE / 10); // perhaps it was the jump that passed
        let_pass(server, "a", 2 * LEASE);
        assert_kept(&self.permit);
        let status = self.holder.1.status().expect("status");
        assert_eq!((status.holders, status.waiting, status.instances), (1, 3, 2));
        let (fence, order) = (self.permit.fence(), self.permit.order());
        line_up(&self.waiter.1, &self.done, 3..4);
        self.permit.release().expect("release");
        drain_in_order(&self.done, 0..3);
        let (_, last) = take(&self.done);
        assert!(last.fence() > fence && last.order() > order, "numbers that do not grow");
        last.release().expect("release");
        assert_empty(server, &self.holder.1);
    }
}

#[test]
fn when_the_servers_clock_jumps_an_hour_ahead_no_living_one_is_reaped() {
    for flavor in Flavor::available() {
        let server = Server::start(flavor);
        let scene = Scene::set(&server);
        set_clock(&server, hour());
        scene.goes_on(&server);
    }
}

#[test]
fn after_a_quiet_hour_no_living_one_is_reaped() {
    let server = server();
    let scene = Scene::set(&server);
    Record::patch(&server, "a", NOW, -hour()); // the last script seems to have run an hour ago
    scene.goes_on(&server);
}

#[test]
fn when_the_servers_clock_is_set_back_an_hour_orders_and_fences_still_grow() {
    for flavor in Flavor::available() {
        let server = Server::start(flavor);
        let scene = Scene::set(&server);
        let before = Record::read(&server, "a").expect("a limiter").time(NOW);
        set_clock(&server, -hour());
        scene.goes_on(&server);
        let record = Record::read(&server, "a").expect("a limiter");
        assert!(record.time(NOW) > before, "time ran backwards");
        assert!(record.time(NOW) < before + HOUR / 2, "time ran away");
    }
}

#[test]
fn after_the_servers_clock_was_set_back_leases_still_end_in_time() {
    let server = server();
    let mut worker = Worker::start(&Setup::new(&server.url(), "a", 1, LEASE));
    worker.tell("acquire x 1 0");
    worker.wait("granted", "x");
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    set_clock(&server, -hour());
    worker.kill();
    drain_in_order(&done, [0]); // not after an hour
}

#[test]
fn a_clock_that_swings_to_and_fro_loses_nobody() {
    let server = server();
    let scene = Scene::set(&server);
    for swing in 0..6 {
        set_clock(&server, if swing % 2 == 0 { hour() } else { -hour() });
        let_pass(&server, "a", LEASE / 10); // the jump, when it goes ahead
        let_pass(&server, "a", LEASE / 2);
        assert_kept(&scene.permit);
    }
    scene.goes_on(&server);
}

#[test]
fn a_client_whose_clock_jumps_neither_loses_its_permit_nor_shortens_anybodys_lease() {
    let server = server();
    let clock = Clock::manual();
    let jumping = Client::builder(&server.url()).clock(clock.clone()).open().unwrap();
    let (_other, other) = open(&server.url(), "a", 2, Duration::from_secs(60));
    let theirs = other.acquire(&Request::new()).expect("a permit");
    let permit = limiter(&jumping, "a", 2, Duration::from_secs(60)).acquire(&Request::new()).expect("a permit");
    let events = permit.events();
    for _ in 0..3 {
        clock.advance(HOUR);
        // To its clock it was silent for an hour; the server says that it was not.
        assert_eq!(events.recv_timeout(SOON), Ok(PermitEvent::Unconfirmed));
        assert_eq!(events.recv_timeout(SOON), Ok(PermitEvent::Confirmed));
        assert_kept(&permit);
        assert_kept(&theirs);
    }
    assert!(other.try_acquire(&Request::new()).expect("try").is_none());
    permit.release().expect("release");
    theirs.release().expect("release");
    assert_empty(&server, &other);
}

#[test]
fn deadlines_run_by_the_clients_own_clock() {
    for url in [server_url(), ("memory:p10-deadlines".to_owned(), None)] {
        let clock = Clock::manual();
        let client = Client::builder(&url.0).clock(clock.clone()).open().unwrap();
        let limiter = limiter(&client, "a", 1, Duration::from_secs(60));
        let permit = limiter.acquire(&Request::new()).expect("a permit");
        let done = Completions::new();
        let start = |wait, token| limiter.acquire_start(&Request::new().max_wait(wait), &done, token).expect("start");
        let tickets = [start(HOUR, 1), start(HOUR * 2, 2)];
        eventually("both stand in line", SOON, || tickets.iter().all(is_in_line));
        clock.advance(HOUR);
        let ended = done.poll(2, SOON);
        assert_eq!(ended.len(), 1, "the one whose time had come: {ended:?}");
        assert!(matches!(&ended[0].result, Err(Error::TimedOut { waited, .. }) if *waited == HOUR));
        drop(permit);
        let served = eventually_some("the other has its turn", SOON, || {
            clock.advance(ms(1)); // what a slow server has to be asked again is due by this clock, too
            done.poll(1, Duration::ZERO).pop()
        });
        assert!(served.token == 2 && served.result.is_ok(), "{served:?}");
    }
}

fn server_url() -> (String, Option<Server>) {
    let server = server();
    (server.url(), Some(server))
}

#[test]
fn in_memory_leases_end_when_the_clock_says_so_and_not_before() {
    let (clock, stopped) = (Clock::manual(), Clock::manual());
    let open = |clock: &Clock| {
        let client = Client::builder("memory:p10-leases").clock(clock.clone()).open().unwrap();
        limiter(&client, "a", 1, LEASE)
    };
    let silent = open(&stopped).acquire(&Request::new()).expect("a permit");
    let living = open(&clock);
    let done = Completions::new();
    line_up(&living, &done, 0..1);
    for _ in 0..9 {
        clock.advance(LEASE / 10);
        assert_eq!(living.status().expect("status").holders, 1);
    }
    let early = done.poll(1, Duration::ZERO);
    assert!(early.is_empty(), "reaped before its time: {early:?}");
    eventually("its slot is taken over", SOON, || {
        clock.advance(LEASE / 10);
        !done.poll(1, Duration::ZERO).is_empty()
    });
    drop(silent);
}

/// Two outages closer together than a heartbeat: in between one could report and the other could not.
#[test]
fn in_memory_a_live_one_that_could_not_report_between_two_gaps_keeps_its_permit() {
    let (clock, others) = (Clock::manual(), Clock::manual());
    let open = |clock: &Clock| {
        let client = Client::builder("memory:p10-gaps").clock(clock.clone()).open().unwrap();
        limiter(&client, "a", 1, LEASE)
    };
    let permit = open(&clock).acquire(&Request::new()).expect("a permit");
    let other = open(&others);
    for gap in [2 * LEASE, LEASE / 20, 2 * LEASE] {
        others.advance(gap);
        assert!(other.try_acquire(&Request::new()).expect("ask").is_none(), "a live one's slot was given away");
    }
    clock.advance(4 * LEASE); // now it can
    assert_kept(&permit);
    permit.release().expect("it was never lost");
}

/// The same on a server: its clock jumps while one of the two is cut off.
#[test]
fn a_live_one_that_could_not_report_between_two_jumps_of_the_clock_keeps_its_permit() {
    const LONG: Duration = Duration::from_secs(6); // nobody is reaped for 5/12 of it: enough to connect again
    let server = server();
    let proxy = Proxy::to(server.port());
    let (_cut_off, limiter) = open(&proxy.url(), "a", 1, LONG);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    let (_client, other) = open(&server.url(), "a", 1, LONG);
    proxy.refuse();
    proxy.cut();
    for _ in 0..2 {
        set_clock(&server, 2.0 * LONG.as_micros() as f64);
        assert!(other.try_acquire(&Request::new()).expect("ask").is_none(), "a live one's slot was given away");
    }
    proxy.heal();
    assert_kept(&permit);
    permit.release().expect("it was never lost");
    assert_empty(&server, &other);
}

/// After a quiet gap nobody can tell the dead from the cut off, but after some in a row it is plain.
#[test]
fn in_memory_rare_visitors_who_leave_at_once_find_the_slot_of_the_dead_free() {
    let (clock, stopped) = (Clock::manual(), Clock::manual());
    let open = |clock: &Clock| {
        let client = Client::builder("memory:p10-visits").clock(clock.clone()).open().unwrap();
        limiter(&client, "a", 1, LEASE)
    };
    let silent = open(&stopped).acquire(&Request::new()).expect("a permit");
    let visit = || {
        clock.advance(LEASE * 2);
        open(&clock).try_acquire(&Request::new()).expect("ask").is_some()
    };
    // Four are enough, but the holder's first report may still be on its way, and counts it in once more.
    assert!((0..12).any(|_| visit()), "the slot of the dead is held for ever");
    drop(silent);
}

#[test]
fn in_memory_a_clock_that_jumps_an_hour_reaps_no_living_one() {
    let clock = Clock::manual();
    let client = || Client::builder("memory:p10-jump").clock(clock.clone()).open().unwrap();
    let (holder, waiter) = (limiter(&client(), "a", 1, LEASE), limiter(&client(), "a", 1, LEASE));
    let permit = holder.acquire(&Request::new()).expect("a permit");
    let done = Completions::new();
    line_up(&waiter, &done, 0..3);
    for _ in 0..5 {
        clock.advance(HOUR);
        eventually("the holder is confirmed", SOON, || permit.is_valid());
        assert_eq!(waiter.status().expect("status").waiting, 3);
    }
    permit.release().expect("release");
    drain_in_order(&done, 0..3);
}
