//! Redis away: what the outage policies do with who waits, and that everybody goes on when it is back.

use std::time::{Duration, Instant};

use fairq::{Client, Completions, Error, Limiter, LimiterBuilder, Outage, Permit, Request};

use crate::stores::*;
use crate::support::{SOON, Server, eventually, eventually_some, tickets_in};

const TIMEOUT: Duration = Duration::from_millis(300);
const LEASE: Duration = Duration::from_secs(2);

fn brisk(url: &str) -> Client {
    Client::builder(url).connect_timeout(TIMEOUT).io_timeout(TIMEOUT).open().expect("open")
}

fn builder(server: &Server, limit: u64, outage: Outage) -> LimiterBuilder {
    brisk(&server.url()).limiter(NAME).limit(limit).lease(LEASE).outage(outage)
}

fn start() -> Server {
    Server::start(Server::default_flavor())
}

/// Kills the server and waits until the client has noticed.
fn kill(server: &Server, limiter: &Limiter) {
    server.kill();
    eventually("it is away", SOON, || matches!(limiter.status(), Err(Error::Unavailable { .. })));
}

/// A permit, however long the grace after a restart is.
fn soon(limiter: &Limiter) -> Permit {
    eventually_some("a permit", SOON, || limiter.try_acquire(&Request::new()).ok().flatten())
}

#[test]
fn policy_wait_keeps_the_line_over_a_restart() {
    let server = start();
    let limiters = [open(builder(&server, 1, Outage::Wait)), open(builder(&server, 1, Outage::Wait))];
    let held = take(&limiters[0]);
    let completions = Completions::new();
    for token in 0..6 {
        queue_up(&limiters[token as usize % 2], &completions, token, &patient(), token);
    }
    kill(&server, &limiters[0]);
    assert_none(&completions);
    server.restart();
    wait_for_line(&limiters[0], 6);
    held.release().expect("it was brought back");
    for token in 0..6 {
        granted(&completions, token).release().expect("release");
    }
}

#[test]
fn an_outage_three_times_longer_than_every_time_limit_ends_with_everybody_at_work() {
    let server = start();
    let limiter = open(builder(&server, 2, Outage::Wait).poll(Duration::from_millis(100)));
    let (held, completions) = (take(&limiter), Completions::new());
    limiter.acquire_start(&patient().cost(2), &completions, 0).expect("start");
    wait_for_line(&limiter, 1);
    server.kill();
    let (start, longest) = (Instant::now(), LEASE.max(2 * TIMEOUT));
    for token in 1..4 {
        limiter.acquire_start(&patient(), &completions, token).expect("start");
    }
    eventually("three times the longest has passed", SOON, || start.elapsed() > 3 * longest);
    assert_none(&completions);
    server.restart();
    let release = held.release();
    assert!(matches!(release, Ok(()) | Err(Error::Stale | Error::Unavailable { .. } | Error::PermitLost(_))));
    drop(granted(&completions, 0));
    for _ in 1..4 {
        next(&completions).result.expect("a permit").release().expect("release");
    }
    wait_for_use(&limiter, 0);
}

#[test]
fn policy_fail_answers_unavailable_at_once() {
    let server = start();
    let limiter = open(builder(&server, 1, Outage::Fail));
    let held = take(&limiter);
    let completions = Completions::new();
    queue_up(&limiter, &completions, 1, &patient(), 0);
    kill(&server, &limiter);
    let error = next(&completions).result.expect_err("who waits is told");
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    let error = limiter.acquire(&patient()).expect_err("who comes is told");
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    server.restart();
    // What was held comes back, and who was told has left the line.
    wait_for_use(&limiter, 1);
    wait_for_line(&limiter, 0);
    drop(held);
    soon(&limiter).release().expect("release");
}

/// Nobody holds or waits, so only the client itself can notice the end of the outage.
#[test]
fn a_client_that_refuses_everybody_notices_that_redis_is_back() {
    for outage in [Outage::Fail, Outage::Local { limit: 0 }] {
        let server = start();
        server.kill();
        let limiter = open(builder(&server, 1, outage)); // has nothing to clean up there either
        let brief = Request::new().max_wait(TIMEOUT);
        let refused = || matches!(limiter.acquire(&brief), Err(Error::Unavailable { .. }));
        eventually("it refuses", SOON, refused);
        assert!(refused(), "and goes on refusing");
        server.restart();
        eventually("it serves again", SOON, || limiter.acquire(&brief).is_ok());
    }
}

#[test]
fn policy_local_admits_up_to_its_own_limit_in_order() {
    let server = start();
    let limiter = open(builder(&server, 1, Outage::Local { limit: 3 }));
    let held = take(&limiter);
    let completions = Completions::new();
    for token in 0..4 {
        queue_up(&limiter, &completions, token, &patient(), token);
    }
    kill(&server, &limiter);
    let local = next_all(&completions, 2); // one is held from before
    assert_eq!(tokens(&local), [0, 1]);
    assert!(local.iter().all(|completion| completion.result.as_ref().is_ok_and(|permit| permit.fence() == 0)));
    assert_none(&completions);
    drop(held);
    let third = granted(&completions, 2);
    drop((local, third));
    let _last = granted(&completions, 3);
}

#[test]
fn what_was_admitted_locally_counts_again_when_redis_is_back() {
    let server = start();
    let limiter = open(builder(&server, 2, Outage::Local { limit: 4 }));
    let newcomer = open(builder(&server, 2, Outage::Wait));
    drop(take(&limiter));
    kill(&server, &limiter);
    let mut local: Vec<_> = (0..4).map(|_| limiter.acquire(&patient()).expect("a local permit")).collect();
    server.restart();
    wait_for_use(&newcomer, 4);
    eventually("each has a fence", SOON, || local.iter().all(|permit| permit.fence() > 0));
    let completions = Completions::new();
    newcomer.acquire_start(&patient(), &completions, 1).expect("start");
    wait_for_line(&newcomer, 1);
    for left in [3, 2] {
        local.pop().expect("a permit").release().expect("release");
        wait_for_use(&newcomer, left);
        assert_none(&completions);
    }
    local.pop().expect("a permit").release().expect("release");
    let _newcomer = granted(&completions, 1);
    assert_eq!(newcomer.status().expect("status").used, 2);
}

#[test]
fn a_local_permit_released_during_the_outage_is_never_counted() {
    let server = start();
    let limiter = open(builder(&server, 1, Outage::Local { limit: 1 }));
    drop(take(&limiter));
    kill(&server, &limiter);
    for _ in 0..5 {
        drop(limiter.acquire(&patient()).expect("a local permit"));
    }
    server.restart();
    soon(&limiter).release().expect("release");
    eventually("nothing is left", SOON, || limiter.status().is_ok_and(|s| (s.used, s.waiting) == (0, 0)));
    assert_eq!(tickets_in(&server, NAME), Vec::<String>::new());
}

#[test]
fn waiters_go_on_after_a_server_that_hung_under_them() {
    let server = start();
    let limiter = open(builder(&server, 1, Outage::Wait));
    let (held, completions) = (take(&limiter), Completions::new());
    queue_up(&limiter, &completions, 1, &patient(), 0);
    server.pause();
    eventually("it is away", SOON, || matches!(limiter.status(), Err(Error::Unavailable { .. })));
    server.resume();
    wait_for_line(&limiter, 1);
    drop(held);
    let _permit = granted(&completions, 1);
}

#[test]
fn a_close_during_an_outage_settles_everybody_and_returns() {
    let server = start();
    let client = brisk(&server.url());
    let limiter = limiter(&client, 1);
    let held = take(&limiter);
    let completions = Completions::new();
    queue_up(&limiter, &completions, 1, &patient(), 0);
    kill(&server, &limiter);
    client.close(Duration::ZERO).expect("close");
    assert_eq!(next(&completions).result.expect_err("closed"), Error::Closed);
    assert!(held.release().is_err());
}

#[test]
fn a_password_is_never_shown() {
    let server = Server::builder(Server::default_flavor()).password("s3cret").start();
    let client = brisk(&server.url());
    let limiter = limiter(&client, 1);
    let permit = take(&limiter);
    let mut shown = vec![client.url().to_owned(), format!("{client:?} {limiter:?} {permit:?}")];
    server.kill();
    let mut errors = vec![client.check().map(drop), limiter.status().map(drop), client.limiters().map(drop)];
    errors.push(limiter.acquire(&Request::new().max_wait(Duration::from_millis(100))).map(drop));
    for url in ["redis://:s3cret@host:x", "redis://a:s3cret@", "http://a:s3cret@h", "redis+unix:///s?pass=s3cret"] {
        errors.extend(Client::open(url).err().map(Err));
    }
    shown.extend(errors.into_iter().filter_map(Result::err).map(|error| format!("{error} {error:?}")));
    assert!(shown.len() >= 8, "{shown:?}");
    assert!(!shown.iter().any(|text| text.contains("s3cret")), "{shown:?}");
}

/// S5: the server is demoted under its clients, and promoted again with another's (empty) data.
#[test]
fn a_demoted_server_is_no_server_and_everybody_resumes_when_it_is_a_master_again() {
    let (server, master) = (start(), start());
    let replica_of = |host: &str, port: &str| {
        redis::cmd("REPLICAOF").arg(host).arg(port).exec(&mut server.conn()).expect("REPLICAOF");
    };
    let at_once = ["SET", "repl-diskless-sync-delay", "0"];
    redis::cmd("CONFIG").arg(&at_once).exec(&mut master.conn()).expect("CONFIG SET");
    let limiter = open(builder(&server, 1, Outage::Wait));
    let held = take(&limiter);
    let completions = Completions::new();
    for token in 0..3 {
        queue_up(&limiter, &completions, token, &patient(), token);
    }
    replica_of("127.0.0.1", &master.port().to_string());
    eventually("it does not write", SOON, || matches!(limiter.status(), Err(Error::Unavailable { .. })));
    let size = || redis::cmd("DBSIZE").query::<u64>(&mut server.conn()).unwrap_or(1); // LOADING for a moment
    eventually("it has the other's data", SOON, || size() == 0);
    assert_none(&completions);
    replica_of("NO", "ONE");
    wait_for_use(&limiter, 1);
    wait_for_line(&limiter, 3);
    drop(held);
    for token in 0..3 {
        drop(granted(&completions, token));
    }
}
