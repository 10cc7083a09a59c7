//! P2, one exit: by its deadline every ticket has ended, whatever the server does.

use std::net::TcpListener;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use fairq::{Client, Clock, Completions, Error, Limiter, Request, TicketState};

use crate::stores::*;
use crate::support::{Proxy, SOON, Server, eventually};

const WAIT: Duration = Duration::from_millis(300);

fn hasty() -> Request {
    Request::new().max_wait(WAIT)
}

/// A client that gives a connection up soon.
fn brisk(url: &str) -> Client {
    let short = Duration::from_millis(500);
    Client::builder(url).connect_timeout(short).io_timeout(short).open().expect("open")
}

#[track_caller]
fn assert_timed_out(error: &Error) {
    assert!(matches!(error, Error::TimedOut { limiter, .. } if limiter == NAME), "{error:?}");
}

#[track_caller]
fn assert_unavailable(error: &Error) {
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert!(error.is_retryable() && error.retry_after().is_some());
}

#[test]
fn a_wait_of_less_than_a_millisecond_ends_as_timed_out() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let _held = take(&limiter);
        let short = Duration::from_micros(400);
        let completions = Completions::new();
        limiter.acquire_start(&Request::new().max_wait(short), &completions, 1).expect("start");
        world.clock.advance(short);
        assert_timed_out(&next(&completions).result.expect_err("no slot is free"));
        wait_for_line(&limiter, 0);
    });
}

#[test]
fn a_deadline_comes_neither_before_its_time_nor_never() {
    let world = World::memory();
    let limiter = world.limiter(1);
    let _held = take(&limiter);
    let completions = Completions::new();
    limiter.acquire_start(&Request::new().max_wait(Duration::from_secs(60)), &completions, 1).expect("start");
    // A second one, due a moment earlier, shows that the scheduler has looked.
    limiter.acquire_start(&Request::new().max_wait(Duration::from_secs(59)), &completions, 2).expect("start");
    world.clock.advance(Duration::from_secs(59));
    let Err(Error::TimedOut { waited, .. }) = next(&completions).result else { panic!("a timeout") };
    assert_eq!(waited, Duration::from_secs(59));
    assert_none(&completions);
    world.clock.advance(Duration::from_secs(1));
    let Err(Error::TimedOut { waited, .. }) = next(&completions).result else { panic!("a timeout") };
    assert_eq!(waited, Duration::from_secs(60));
}

#[test]
fn a_reconnect_during_a_wait_leaves_the_deadline_where_it_was() {
    let server = Server::start(Server::default_flavor());
    let proxy = Proxy::to(server.port());
    let clock = Clock::manual();
    let client = Client::builder(&proxy.url()).clock(clock.clone()).open().expect("open");
    let limiter = limiter(&client, 1);
    let _held = take(&limiter);
    let completions = Completions::new();
    let ticket = queue_up(&limiter, &completions, 1, &Request::new().max_wait(Duration::from_secs(5)), 0);
    for _ in 0..3 {
        clock.advance(Duration::from_millis(1500));
        let accepted = proxy.accepted();
        proxy.cut();
        eventually("the client has connected again", SOON, || proxy.accepted() > accepted + 1);
        eventually("it may ask again", SOON, || limiter.status().is_ok_and(|status| status.waiting == 1));
        assert_eq!(ticket.state(), TicketState::Pending);
    }
    clock.advance(Duration::from_millis(500));
    let Err(Error::TimedOut { waited, .. }) = next(&completions).result else { panic!("a timeout") };
    assert_eq!(waited, Duration::from_secs(5));
}

#[test]
fn a_stopped_server_does_not_stop_deadlines() {
    let server = Server::start(Server::default_flavor());
    let limiter = limiter(&brisk(&server.url()), 1);
    let held = take(&limiter);
    let completions = Completions::new();
    queue_up(&limiter, &completions, 1, &hasty(), 0);
    server.pause();
    for token in 2..5 {
        limiter.acquire_start(&hasty(), &completions, token).expect("start");
    }
    let results = next_all(&completions, 4);
    assert_timed_out(&results[0].result.as_ref().expect_err("no slot is free").clone());
    assert!(results.iter().all(|completion| completion.result.is_err()));
    assert_unavailable(&limiter.try_acquire(&Request::new()).expect_err("nobody answers"));
    server.resume();
    eventually("it is released", SOON, || limiter.status().is_ok_and(|status| status.waiting == 0));
    held.release().expect("release");
    wait_for_use(&limiter, 0);
}

#[test]
fn a_server_that_was_never_there_makes_a_request_unavailable_at_its_deadline() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        listener.local_addr().expect("address").port()
    };
    let limiter = limiter(&brisk(&format!("redis://127.0.0.1:{port}")), 1);
    assert_unavailable(&limiter.acquire(&hasty()).expect_err("nobody is there"));
    assert_unavailable(&limiter.try_acquire(&Request::new()).expect_err("nobody is there"));
    assert_unavailable(&limiter.status().expect_err("nobody is there"));
}

#[test]
fn a_link_that_hangs_makes_a_request_end_at_its_deadline() {
    guarded(a_link_that_hangs);
}

fn a_link_that_hangs() {
    let server = Server::start(Server::default_flavor());
    let proxy = Proxy::to(server.port());
    let limiter = limiter(&brisk(&proxy.url()), 1);
    drop(take(&limiter));
    proxy.hang();
    let results: Vec<_> = thread::scope(|scope| {
        let waiters: Vec<_> = (0..4).map(|_| scope.spawn(|| limiter.acquire(&hasty()))).collect();
        waiters.into_iter().map(|waiter| waiter.join().expect("a waiter")).collect()
    });
    assert!(results.iter().all(|result| matches!(result, Err(Error::TimedOut { .. } | Error::Unavailable { .. }))));
    proxy.heal();
    eventually("all is as before", SOON, || limiter.status().is_ok_and(|s| (s.used, s.waiting) == (0, 0)));
    take(&limiter).release().expect("release");
}

#[test]
fn one_failing_call_in_the_middle_costs_no_outcome() {
    let server = Server::start(Server::default_flavor());
    let proxy = Proxy::to(server.port());
    let limiter = limiter(&brisk(&proxy.url()), 2);
    drop(take(&limiter));
    let completions = Completions::new();
    for round in 1..=10 {
        proxy.drop_next_replies(1);
        for token in 0..4 {
            limiter.acquire_start(&Request::new().max_wait(SOON), &completions, token).expect("start");
        }
        for _ in 0..4 {
            next(&completions).result.expect("a permit").release().expect("release");
        }
        eventually("the reply was lost", SOON, || proxy.fired() >= round);
    }
    assert_none(&completions);
    wait_for_use(&limiter, 0);
}

#[test]
fn a_hundred_first_requests_at_once_on_a_cold_client_are_all_answered() {
    on_both(|world| {
        let limiter = world.limiter(10);
        let start = Barrier::new(100);
        thread::scope(|scope| {
            for _ in 0..100 {
                scope.spawn(|| {
                    start.wait();
                    let permit = limiter.acquire(&patient()).expect("a permit");
                    permit.release().expect("release");
                });
            }
        });
        assert_eq!(limiter.status().expect("status").granted_total, 100);
        world.assert_no_ticket_left(&limiter);
    });
}

#[test]
fn a_cancel_before_the_start_is_kept() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let ticket = limiter.ticket();
        assert!(ticket.cancel() && ticket.cancel());
        assert_eq!(limiter.acquire_with(&ticket, &patient()).expect_err("cancelled"), Error::Cancelled);
        let _free = take(&limiter);
    });
}

#[test]
fn a_cancel_from_another_thread_ends_the_wait_and_empties_the_place() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let held = take(&limiter);
        let ticket = limiter.ticket();
        let result = thread::scope(|scope| {
            let waiter = scope.spawn(|| limiter.acquire_with(&ticket, &patient()));
            wait_for_line(&limiter, 1);
            assert!(ticket.cancel());
            waiter.join().expect("the waiter")
        });
        assert_eq!(result.expect_err("cancelled"), Error::Cancelled);
        wait_for_line(&limiter, 0);
        held.release().expect("release");
        assert!(!ticket.cancel() || ticket.state() == TicketState::Cancelled);
    });
}

#[test]
fn a_cancel_after_the_grant_comes_too_late_and_changes_nothing() {
    on_both(|world| {
        let limiter: Limiter = world.limiter(1);
        let ticket = limiter.ticket();
        let permit = limiter.acquire_with(&ticket, &patient()).expect("a permit");
        assert!(!ticket.cancel());
        assert!(permit.is_valid());
        permit.release().expect("release");
        let error = limiter.acquire_with(&ticket, &patient()).expect_err("a ticket is for one request");
        assert!(matches!(error, Error::Invalid { what: "ticket", .. }), "{error:?}");
    });
}

/// Also for the first request after the change, whose process has not heard of it.
#[test]
fn an_operators_max_wait_holds_for_who_waits_and_for_who_comes_next() {
    const SHORT: Duration = Duration::from_millis(50);
    on_both(|world| {
        let (operator, limiter) = (world.limiter(1), world.limiter(1));
        let held = take(&operator);
        let completions = Completions::new();
        queue_up(&limiter, &completions, 1, &Request::new(), 0);
        queue_up(&limiter, &completions, 2, &patient(), 1);
        configure(&operator, fairq::Change::new().max_wait(SHORT));
        limiter.acquire_start(&Request::new(), &completions, 3).expect("start");
        let mut ended = Vec::new();
        eventually("both have timed out", SOON, || {
            world.clock.advance(Duration::from_millis(10));
            ended.extend(completions.poll(3, Duration::from_millis(20)));
            ended.len() == 2
        });
        for done in ended {
            assert!(matches!(done.result, Err(Error::TimedOut { .. })) && done.token != 2, "{done:?}");
        }
        held.release().expect("release");
        granted(&completions, 2).release().expect("release");
    });
}
