//! Input of strangers: names, labels and descriptions that look like something else, and messages that nobody of ours sent.
//! Whatever they say, they are text; nobody is granted, refused or reconfigured by it.

use std::time::Duration;

use fairq::{Change, Client, Completions, Error, Limiter, Request};

use crate::stores::*;
use crate::support::{SOON, eventually};

/// Texts that would be something else in one of the formats in which the stores keep and tell things.
fn hostile_texts() -> Vec<String> {
    let texts = [
        "|",
        "||||",
        "1 2 3 4 5 6 7|9|8 8 8 8 8 8 8|9",
        "-",
        " ",
        "  7  8  ",
        "\t",
        ",",
        "g,1,1,1",
        "h,1,1",
        "x,1,1",
        "7 g,1,9,9|fq:{a}",
        "0",
        "ff",
        "1 2 3",
        "5f 1 label",
        ".",
        ":",
        "a:1",
        "{}",
        "%7B",
        "%",
        "*1",
        "$5",
        "-ERR no",
        "+OK",
        "]]",
        "--[[",
        "\\0",
        "\u{1}",
        "\u{1b}[2J",
        "\u{7f}",
        "\u{202e}",
        "\u{feff}",
        "'\"\\",
        "fq:{promise}:held",
        "é",
        "🦀",
    ];
    let mut texts: Vec<String> = texts.into_iter().map(String::from).collect();
    texts.extend(["x".repeat(256), "|".repeat(256), "é".repeat(128)]);
    texts
}

#[test]
fn a_label_is_told_as_it_was_given_and_is_nothing_else() {
    on_both(|world| {
        let texts = hostile_texts();
        let limiter = world.limiter(texts.len() as u64);
        let labelled = |label: &String| Request::new().wait_forever().label(label.clone());
        let held: Vec<_> = texts.iter().map(|label| limiter.acquire(&labelled(label)).expect("a permit")).collect();
        let done = Completions::new();
        for (at, label) in (0..).zip(&texts) {
            queue_up(&limiter, &done, at, &labelled(label).cost(1 + at % 2), at);
        }
        let holders = limiter.holders().expect("holders");
        let waiters = limiter.waiters().expect("waiters");
        assert!(holders.iter().map(|entry| &entry.label).eq(&texts), "{holders:?}");
        assert!(waiters.iter().map(|entry| &entry.label).eq(&texts), "{waiters:?}");
        for ((permit, holder), (at, waiter)) in held.iter().zip(&holders).zip((0..).zip(&waiters)) {
            assert_eq!((holder.cost, holder.order, holder.fence), (1, permit.order(), Some(permit.fence())));
            assert_eq!((waiter.cost, waiter.fence), (1 + at % 2, None));
        }
        drop(held);
        world.clock.advance(Duration::from_secs(1));
    });
}

#[test]
fn a_description_declares_nothing() {
    on_both(|world| {
        let plain = world.limiter(3);
        drop(take(&plain));
        let before = plain.status().expect("status");
        for text in hostile_texts() {
            let client = world.builder().description(text.clone()).open().expect("open");
            // Attached only, so whatever would be taken for a declaration is the description's.
            let attached = open(client.limiter(NAME));
            let permit = take(&attached);
            let holders = plain.holders().expect("holders");
            assert_eq!(holders.iter().map(|holder| &holder.description).collect::<Vec<_>>(), [&text]);
            permit.release().expect("release");
            let after = plain.status().expect("status");
            assert_eq!((after.limit, after.max_queue, after.lease), (before.limit, before.max_queue, before.lease));
            assert_eq!((after.overridden, after.epoch), (vec![], before.epoch), "{text:?}");
            client.close(Duration::ZERO).expect("close");
        }
    });
}

#[test]
fn a_description_of_several_lines_is_one_and_a_long_one_is_refused() {
    let world = World::memory();
    let client = world.builder().description("a\nb\r\0c").open().expect("open");
    let _held = take(&limiter(&client, 1));
    assert_eq!(limiter(&client, 1).holders().expect("holders")[0].description, "a b  c");
    let error = Client::builder("memory:").description("x".repeat(257)).open().expect_err("too long");
    assert!(matches!(error, Error::Invalid { what: "description", .. }), "{error:?}");
}

#[test]
fn a_label_that_cannot_be_shown_in_a_line_is_refused() {
    on_both(|world| {
        let limiter = world.limiter(1);
        for label in ["a\nb", "a\rb", "\0", "a\0b"].map(String::from).into_iter().chain(["é".repeat(129)]) {
            let error = limiter.acquire(&Request::new().label(label)).expect_err("it means nothing");
            assert!(matches!(error, Error::Invalid { what: "label", .. }), "{error:?}");
        }
        assert_eq!(limiter.try_acquire(&Request::new()).expect("ask").map(|permit| permit.cost()), Some(1));
    });
}

/// The message about a grant names the limiter: by it alone the waiter goes on, whatever the name.
#[test]
fn grants_are_told_whatever_the_limiter_is_called() {
    let world = World::redis();
    let (one, two) = (world.client(), world.client());
    for name in hostile_texts().into_iter().chain(["\n".into(), "\r\n*1\r\n".into(), "\0".into()]) {
        let open_at = |client: &Client| {
            open(client.limiter(&name).limit(1).poll(Duration::from_secs(60)).lease(Duration::from_secs(300)))
        };
        let (holder, waiter) = (open_at(&one), open_at(&two));
        let held = take(&holder);
        let done = Completions::new();
        queue_up(&waiter, &done, 1, &patient(), 0);
        held.release().expect("release");
        granted(&done, 1).release().expect("release");
        assert_eq!(waiter.status().expect("status").name, name);
    }
}

/// As by somebody who may publish, but does not know the limiter's epoch.
#[test]
fn forged_messages_change_nothing_however_long_they_are() {
    let world = World::redis();
    let mut conn = world.server().expect("a server").conn();
    let (client, other) = (world.client(), world.client());
    let (mine, others) = (limiter(&client, 1), open(other.limiter("other").limit(1)));
    let held = take(&mine);
    let foreign = take(&others);
    let done = Completions::new();
    let ticket = queue_up(&mine, &done, 1, &patient(), 0);
    let id = ticket.id();
    let no = id.rsplit_once(':').expect("instance and number").1;
    let told = |notice: &str| format!(" {notice},{no},1,1");
    let each = ["g", "x", "r", "v"].map(told).concat();
    let channel = format!("fq:{}", client.instance());
    let wrong = others.status().expect("status").epoch;
    let mut publish = |text: &str| {
        let heard: u64 = redis::cmd("PUBLISH").arg(&channel).arg(text).query(&mut conn).expect("publish");
        assert_eq!(heard, 1);
    };
    for key in ["fq:{promise}", "fq:{other}", "fq:{nobody's}", "fq:{promise}:queue", "fq:{prom%69se}", ""] {
        publish(&format!("{wrong}{each}|{key}"));
        publish(&format!("1{each}|{key}"));
    }
    publish(&format!("{wrong}{}|fq:{{promise}}", each.repeat(100_000)));
    publish(&format!("{wrong} g,{}|fq:{{promise}}", "9".repeat(1_000_000)));
    publish(&"|".repeat(1_000_000));
    assert_unchanged(&mine, 1, 1);
    assert_unchanged(&others, 1, 0);
    assert!(held.is_valid() && foreign.is_valid());
    assert_none(&done);
    held.release().expect("release");
    granted(&done, 1).release().expect("release");
}

/// And stays so for some polls.
#[track_caller]
fn assert_unchanged(limiter: &Limiter, used: u64, waiting: u64) {
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(50));
        let status = limiter.status().expect("status");
        assert_eq!((status.used, status.waiting, status.limit), (used, waiting, 1));
        assert!(status.overridden.is_empty());
    }
}

#[test]
fn a_line_is_bounded_unless_it_is_declared_not_to_be() {
    let world = World::memory();
    let client = world.client();
    let limiter = limiter(&client, 1);
    let _held = take(&limiter);
    assert_eq!(limiter.status().expect("status").max_queue, 10_000);
    let done = Completions::new();
    for token in 0..10_000 {
        limiter.acquire_start(&patient(), &done, token).expect("start");
    }
    let error = limiter.acquire(&patient()).expect_err("the line is full");
    assert!(matches!(error, Error::QueueFull { waiting: 10_000, max_queue: 10_000, .. }), "{error:?}");
    configure(&limiter, Change::new().option("max_queue", "unbounded").expect("it is a value"));
    let last = limiter.acquire_start(&patient(), &done, 10_000).expect("start");
    eventually("it waits", SOON, || last.last_position().is_some());
}

#[test]
fn a_process_takes_in_so_many_requests_and_permits_whatever_the_store_is_like() {
    on_both(|world| {
        let client = world.builder().max_tickets(3).open().expect("open");
        let limiter = limiter(&client, 1);
        let held = take(&limiter);
        let done = Completions::new();
        let first = queue_up(&limiter, &done, 1, &patient(), 0);
        let _second = queue_up(&limiter, &done, 2, &patient(), 1);
        let error = limiter.acquire(&patient()).expect_err("three are there");
        assert!(matches!(error, Error::Overloaded { .. }) && error.is_retryable(), "{error:?}");
        limiter.acquire_start(&patient(), &done, 3).expect("start");
        assert!(matches!(next(&done).result, Err(Error::Overloaded { .. })));
        assert_eq!(limiter.status().expect("status").waiting, 2);
        assert!(first.cancel());
        assert_eq!(next(&done).token, 1);
        eventually("there is room again", SOON, || {
            let asked = limiter.try_acquire(&Request::new());
            assert!(!matches!(asked, Ok(Some(_))), "somebody waits");
            asked.is_ok()
        });
        held.release().expect("release");
        granted(&done, 2).release().expect("release");
    });
}

/// A number is taken when a ticket is made. A message about it, before the ticket is on its way, once made the ticket vanish.
#[test]
fn a_grant_that_is_forged_before_the_request_is_made_does_not_swallow_it() {
    const ROUNDS: u64 = 300;
    let world = World::redis();
    let client = world.client();
    let limiter = limiter(&client, 1);
    let channel = format!("fq:{}", client.instance());
    let mut conn = world.server().expect("a server").conn();
    let done = Completions::new();
    cancel_something(&limiter); // the server knows the script from now on
    for token in 0..ROUNDS {
        let ticket = limiter.ticket();
        let id = ticket.id();
        let no = id.rsplit_once(':').expect("instance and number").1;
        let forged = format!("1 g,{no},1,1|fq:{{promise}}");
        redis::cmd("PUBLISH").arg(&channel).arg(forged).exec(&mut conn).expect("publish");
        std::thread::sleep(Duration::from_micros(37 * (token % 8))); // the answer to what it causes comes about now
        limiter.acquire_start_with(&ticket, &patient(), &done, token).expect("start");
        granted(&done, token).release().expect("release");
    }
    world.assert_no_ticket_left(&limiter);
}

fn cancel_something(limiter: &Limiter) {
    let held = take(limiter);
    let done = Completions::new();
    assert!(queue_up(limiter, &done, 0, &patient(), 0).cancel());
    wait_for_line(limiter, 0);
    held.release().expect("release");
}
