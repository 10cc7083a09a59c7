//! Bad input: each accepted or clearly refused, and nothing half-written.

use std::time::Duration;

use fairq::{Change, Client, Completions, Error, Limiter, LimiterBuilder, Request, Revoked};

use crate::stores::*;
use crate::support::{SOON, Server, eventually};

#[track_caller]
fn assert_invalid<T: std::fmt::Debug>(result: Result<T, Error>, argument: &str) {
    let error = result.expect_err("it means nothing");
    assert!(matches!(&error, Error::Invalid { what, .. } if *what == argument), "{error:?}");
    assert!(!error.is_retryable());
}

#[track_caller]
fn assert_impossible<T: std::fmt::Debug>(result: Result<T, Error>, cost: u64, limit: u64) {
    assert_eq!(result.expect_err("it can never fit"), Error::Impossible { cost, limit });
}

/// Names that have bitten others.
fn odd_names() -> Vec<String> {
    let names =
        ["{", "}", "{}", "}{", "a{b}c", "{{a}}", "{}x", "%", "%7B", "a:queue", ".", " ", "a b", "\n", "\0", "*"];
    let mut names: Vec<String> = names.into_iter().map(String::from).collect();
    names.extend(["名前".into(), "é".into(), "🦀".into(), "x".repeat(256)]);
    names
}

#[test]
fn any_name_of_one_to_256_bytes_is_a_limiter_of_its_own() {
    on_both(|world| {
        let client = world.client();
        let mut permits = Vec::new();
        for name in odd_names() {
            let limiter = open(client.limiter(&name).limit(1));
            permits.push(take(&limiter));
            assert!(limiter.try_acquire(&Request::new()).expect("ask").is_none(), "{name:?}");
            assert_eq!(limiter.status().expect("status").name, name);
        }
        let mut names = odd_names();
        names.sort();
        assert_eq!(client.limiters().expect("list"), names);
        permits.into_iter().for_each(|permit| permit.release().expect("release"));
    });
}

#[test]
fn the_keys_of_any_name_hash_into_one_slot() {
    let world = World::redis();
    let mut conn = world.server().expect("a server").conn();
    let cluster = Server::builder(Server::default_flavor()).arg("--cluster-enabled", "yes").start();
    let client = world.client();
    let mut known = Vec::new();
    for name in odd_names() {
        drop(take(&open(client.limiter(&name).limit(1))));
        let mut keys: Vec<String> = redis::cmd("KEYS").arg("fq:*").query(&mut conn).expect("KEYS");
        keys.retain(|key| !known.contains(key));
        assert_eq!(keys.len(), 4, "{keys:?}");
        let slot = |key: &String| -> u16 {
            redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).query(&mut cluster.conn()).expect("CLUSTER KEYSLOT")
        };
        let mut slots: Vec<u16> = keys.iter().map(slot).collect();
        slots.dedup();
        assert_eq!(slots.len(), 1, "{keys:?}");
        known.append(&mut keys);
    }
}

#[test]
fn names_that_are_empty_or_too_long_are_refused() {
    let client = World::memory().client();
    for name in ["".to_owned(), "x".repeat(257), "é".repeat(129)] {
        assert_invalid(client.limiter(&name).limit(1).open(), "name");
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let client = World::memory().client();
    let builder = || client.limiter(NAME).limit(1);
    let day = Duration::from_secs(86_400);
    let bad: Vec<(LimiterBuilder, &str)> = vec![
        (client.limiter(NAME).limit(u64::MAX), "limit"),
        (client.limiter(NAME).lease(Duration::from_secs(5)), "limit"),
        (builder().lease(Duration::ZERO), "lease"),
        (builder().lease(Duration::from_millis(99)), "lease"),
        (builder().lease(day * 2), "lease"),
        (builder().lease(Duration::MAX), "lease"),
        (builder().poll(Duration::ZERO), "poll"),
        (builder().poll(Duration::MAX), "poll"),
        (builder().idle(Duration::ZERO), "idle"),
    ];
    for (builder, argument) in bad {
        assert_invalid(builder.open(), argument);
    }
}

#[test]
fn changes_that_cannot_work_are_refused_and_change_nothing() {
    on_both(|world| {
        let limiter = world.limiter(3);
        drop(take(&limiter));
        assert_invalid(limiter.configure(&Change::new().limit(u64::MAX)), "limit");
        assert_invalid(limiter.configure(&Change::new().limit(2).lease(Duration::ZERO)), "lease");
        let status = limiter.status().expect("status");
        assert_eq!((status.limit, status.overridden), (3, vec![]));
    });
}

#[test]
fn durations_without_bound_are_accepted_where_they_mean_for_ever() {
    on_both(|world| {
        let builder = || world.client().limiter(NAME).limit(1).max_wait(Duration::MAX);
        let limiter = open(builder().max_hold(Duration::MAX).idle(Duration::MAX).max_queue(u64::MAX));
        let permit = take(&limiter);
        let status = limiter.status().expect("status");
        assert_eq!((status.max_wait, status.max_queue), (Duration::MAX, u64::MAX));
        let completions = Completions::new();
        queue_up(&limiter, &completions, 1, &Request::new(), 0);
        permit.release().expect("release");
        granted(&completions, 1).release().expect("release");
        configure(&limiter, Change::new().max_hold(Duration::MAX).max_wait(Duration::MAX).max_queue(u64::MAX));
        take(&limiter).release().expect("release");
    });
}

#[test]
fn time_limits_of_a_client_are_bounded_on_both_sides() {
    for timeout in [Duration::ZERO, Duration::from_millis(9), Duration::MAX] {
        assert_invalid(Client::builder("memory:").io_timeout(timeout).open(), "timeout");
        assert_invalid(Client::builder("memory:").connect_timeout(timeout).open(), "timeout");
    }
}

#[test]
fn a_lease_that_an_operator_sets_never_outlives_the_keys() {
    let world = World::redis();
    let limiter = world.limiter(1);
    let _held = take(&limiter);
    let hour = Duration::from_secs(3600);
    configure(&limiter, Change::new().lease(hour));
    drop(limiter.try_acquire(&Request::new()).expect("ask"));
    let mut conn = world.server().expect("a server").conn();
    let left: i64 = redis::cmd("PTTL").arg(format!("fq:{{{NAME}}}")).query(&mut conn).expect("PTTL");
    assert!(left > hour.as_millis() as i64, "the keys expire in {left} ms, the lease is an hour");
}

#[test]
fn requests_that_mean_nothing_are_refused() {
    on_both(|world| {
        let limiter = world.limiter(5);
        let completions = Completions::new();
        let bad = [
            (Request::new().cost(0), "cost"),
            (Request::new().cost(u64::MAX), "cost"),
            (Request::new().label("two\nlines"), "label"),
            (Request::new().label("x".repeat(257)), "label"),
        ];
        for (request, argument) in bad {
            assert_invalid(limiter.acquire(&request), argument);
            assert_invalid(limiter.acquire_start(&request, &completions, 1), argument);
        }
        assert_none(&completions);
        let odd = take_labelled(&limiter, " 1 2 |{}%\t'\"é");
        assert_eq!(limiter.holders().expect("holders")[0].label, " 1 2 |{}%\t'\"é");
        odd.release().expect("release");
    });
}

#[track_caller]
fn take_labelled(limiter: &Limiter, label: &str) -> fairq::Permit {
    limiter.acquire(&Request::new().label(label)).expect("a permit")
}

#[test]
fn a_ticket_of_another_limiter_is_refused() {
    let client = World::memory().client();
    let (one, other) = (open(client.limiter("one").limit(1)), open(client.limiter("other").limit(1)));
    assert_invalid(one.acquire_with(&other.ticket(), &Request::new()), "ticket");
}

#[test]
fn a_cost_above_the_limit_is_impossible_at_once() {
    on_both(|world| {
        let limiter = world.limiter(3);
        assert_impossible(limiter.acquire(&patient().cost(4)), 4, 3);
        assert_impossible(limiter.try_acquire(&Request::new().cost(4)), 4, 3);
        let _held = take_cost(&limiter, 3);
        assert_impossible(limiter.acquire(&patient().cost(4)), 4, 3);
        wait_for_line(&limiter, 0);
    });
}

#[test]
fn a_lowered_limit_ends_what_can_never_fit_however_deep_it_waits() {
    on_both(|world| {
        let limiter = open(world.client().limiter(NAME).limit(3).poll(Duration::from_millis(50)));
        let held = take(&limiter);
        let (small, big) = (Completions::new(), Completions::new());
        limiter.acquire_start(&patient().cost(3), &big, 0).expect("start");
        for token in 1..=300 {
            let (to, cost) = if token == 290 { (&big, 3) } else { (&small, 1) };
            limiter.acquire_start(&patient().cost(cost), to, token).expect("start");
        }
        wait_for_line(&limiter, 301);
        configure(&limiter, Change::new().limit(1));
        let mut ended = Vec::new();
        eventually("both of cost 3 have ended", SOON, || {
            world.clock.advance(Duration::from_millis(50));
            ended.extend(big.poll(2, Duration::from_millis(1)));
            ended.len() == 2
        });
        for completion in ended {
            assert_impossible(completion.result, 3, 1);
        }
        assert_none(&small);
        assert_eq!(limiter.status().expect("status").waiting, 299);
        held.release().expect("release");
        let _first = granted(&small, 1);
    });
}

#[test]
fn a_full_line_rejects_with_numbers_and_a_time_to_come_back() {
    on_both(|world| {
        let limiter = open(world.client().limiter(NAME).limit(1).max_queue(2));
        let permit = take(&limiter);
        world.clock.advance(Duration::from_millis(20));
        permit.release().expect("release");
        let _held = take(&limiter);
        let completions = Completions::new();
        for token in 0..2 {
            queue_up(&limiter, &completions, token, &patient(), token);
        }
        let error = limiter.acquire(&patient()).expect_err("the line is full");
        let Error::QueueFull { waiting: 2, max_queue: 2, retry_after: Some(_) } = error else { panic!("{error:?}") };
        assert!(error.is_retryable() && error.retry_after().is_some());
        assert_eq!(limiter.status().expect("status").waiting, 2);
    });
}

#[test]
fn a_line_of_length_zero_admits_whoever_fits_at_once() {
    on_both(|world| {
        let limiter = open(world.client().limiter(NAME).limit(1).max_queue(0));
        let permit = limiter.acquire(&patient()).expect("a free slot");
        let error = limiter.acquire(&patient()).expect_err("nobody may wait");
        assert!(matches!(error, Error::QueueFull { waiting: 0, max_queue: 0, .. }), "{error:?}");
        permit.release().expect("release");
        limiter.acquire(&patient()).expect("a free slot").release().expect("release");
    });
}

#[test]
fn revoking_what_is_no_ticket_changes_nothing() {
    on_both(|world| {
        let limiter = world.limiter(2);
        let _held = take(&limiter);
        for nonsense in [".", "", ":", ":1", "x:1", "{}", "limit", "fq:{promise}", "a:b:c", "1"] {
            assert_eq!(limiter.revoke(nonsense).expect("revoke"), Revoked::Unknown, "{nonsense:?}");
        }
        let status = limiter.status().expect("status");
        assert_eq!((status.used, status.holders), (1, 1));
        assert_eq!(status.grace, Duration::ZERO);
        let _second = take(&limiter);
        assert!(limiter.try_acquire(&Request::new()).expect("ask").is_none());
    });
}

#[test]
fn a_limiter_that_nobody_declared_is_named() {
    on_both(|world| {
        let limiter = open(world.client().limiter("unheard of"));
        let expected = Error::NoSuchLimiter { name: "unheard of".into() };
        assert_eq!(limiter.acquire(&patient()).expect_err("no limit"), expected);
        assert_eq!(limiter.status().expect_err("no limit"), expected);
        assert_eq!(limiter.configure(&Change::new().limit(1)).expect_err("no limit"), expected);
        assert_eq!(limiter.revoke("x:1").expect_err("no limit"), expected);
        assert_eq!(world.client().limiters().expect("list"), Vec::<String>::new());
    });
}
