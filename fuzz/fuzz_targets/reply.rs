//! Whatever a server answers is read as an answer to each verb, or refused in a few words.
#![no_main]

use fairq_fuzz::Input;
use fairq_fuzz::reply::{any_value, reply};
use libfuzzer_sys::fuzz_target;

/// A complaint is shown to people: it does not repeat a reply of megabytes.
const LONGEST_COMPLAINT: usize = 1000;
fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let value = match input.choose(8) {
        // As it comes from the network.
        0 => match redis::parse_redis_value(input.rest()) {
            Ok(value) => value,
            Err(_) => return,
        },
        1 => any_value(&mut input, 4),
        _ => reply(&mut input, usize::MAX),
    };
    let (_, longest) = fairq::fuzzing::read_reply(&value);
    assert!(longest <= LONGEST_COMPLAINT, "a complaint of {longest} bytes");
});
