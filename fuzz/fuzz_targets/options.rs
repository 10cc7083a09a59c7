//! Options by key and value: taken, or refused in words; and what was taken can be worked with. Durations among them.
#![no_main]

use std::time::Duration;

use fairq::{Change, Client, OPTIONS, Request, format_duration, parse_duration};
use fairq_fuzz::Input;
use libfuzzer_sys::fuzz_target;

const VALUES: [&str; 12] =
    ["none", "unbounded", "forever", "true", "false", "wait", "fail", "local:3", "0", "1", "1.5s", "1h30m"];
const UNITS: [&str; 8] = ["us", "ms", "s", "m", "h", "d", "", ":"];

fuzz_target!(|bytes: &[u8]| {
    fairq::fuzzing::forget_worlds();
    let mut input = Input::new(bytes);
    let mut client = Client::builder("memory:options");
    let mut pairs = Vec::new();
    while !input.is_empty() && pairs.len() < 20 {
        let pair = (key(&mut input), value(&mut input));
        look_at_duration(&pair.1);
        pairs.push(pair);
    }
    for (key, value) in &pairs {
        client = client.clone().option(key, value).unwrap_or(client);
    }
    let Ok(client) = client.open() else { return };
    let mut limiter = client.limiter("x");
    let mut change = Change::new();
    for (key, value) in &pairs {
        let of_limiter = limiter.clone().option(key, value);
        let of_change = change.clone().option(key, value);
        let of_client = Client::builder("memory:").option(key, value);
        let of_any = of_limiter.is_ok() || of_change.is_ok() || of_client.is_ok();
        assert_eq!(fairq::fuzzing::check_option(key, value), of_any, "{key:?}={value:?}");
        limiter = of_limiter.unwrap_or(limiter);
        change = of_change.unwrap_or(change);
    }
    let Ok(limiter) = limiter.open() else { return };
    let _ = limiter.try_acquire(&Request::new());
    let _ = limiter.configure(&change);
    let _ = limiter.try_acquire(&Request::new().label("after"));
    let _ = limiter.status();
    client.close(Duration::ZERO).expect("close");
});

fn key(input: &mut Input<'_>) -> String {
    match input.choose(8) {
        0 => input.text(),
        _ => OPTIONS[input.choose(OPTIONS.len())].key.to_owned(),
    }
}

fn value(input: &mut Input<'_>) -> String {
    match input.choose(4) {
        0 => input.text(),
        1 => input.pick(&VALUES).to_owned(),
        2 => input.number().to_string(),
        _ => format!("{}{}", input.number(), input.pick(&UNITS)),
    }
}

/// What can be read can be written, and read again as about the same.
fn look_at_duration(text: &str) {
    let Ok(duration) = parse_duration(text) else { return };
    let written = format_duration(duration);
    let again = parse_duration(&written).unwrap_or_else(|why| panic!("{text:?} is written {written:?}: {why}"));
    let off = again.as_secs_f64() - duration.as_secs_f64();
    assert!(
        off.abs() <= duration.as_secs_f64() * 0.06 + 1e-6 || duration == Duration::MAX,
        "{text:?} becomes {written:?}"
    );
}
