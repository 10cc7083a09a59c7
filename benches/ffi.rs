//! What the C ABI adds to a call: `cargo bench --bench ffi`. Both sides run in turns in one process, so that whatever else the
//! machine does meets both; medians are compared.
#![allow(unsafe_code, missing_docs, reason = "it calls C functions")]

use std::ptr::{null, null_mut};
use std::time::Instant;

use fairq::{Client, Limiter, Request, ffi};

const BATCHES: usize = 1001;
const PER_BATCH: u32 = 500;

fn rust_pair(limiter: &Limiter, request: &Request) {
    drop(limiter.acquire(request).expect("a permit"));
}

fn c_pair(limiter: *const ffi::fq_limiter) {
    let mut permit = null_mut();
    // SAFETY: a place for the permit; NULL elsewhere is allowed.
    let status = unsafe { ffi::fq_acquire(limiter, null(), null(), &raw mut permit, null_mut()) };
    assert_eq!(status, ffi::FQ_OK);
    ffi::fq_permit_free(permit);
}

fn open_in_c() -> *const ffi::fq_limiter {
    let (mut config, mut client, mut limiter) = (null_mut(), null_mut(), null_mut());
    let none = null_mut();
    // SAFETY: the texts are as long as said, and each pointer shows to a place of its type.
    let statuses = unsafe {
        [
            ffi::fq_config_new(&raw mut config, none),
            ffi::fq_config_set(config, c"limit".as_ptr(), 5, c"1".as_ptr(), 1, none),
            ffi::fq_client_open(c"memory:bench-c".as_ptr(), 14, null(), &raw mut client, none),
            ffi::fq_limiter_open(client, c"x".as_ptr(), 1, config, &raw mut limiter, none),
        ]
    };
    assert_eq!(statuses, [ffi::FQ_OK; 4]);
    limiter
}

/// Nanoseconds a call.
fn batch(mut call: impl FnMut()) -> u64 {
    let began = Instant::now();
    (0..PER_BATCH).for_each(|_| call());
    (began.elapsed() / PER_BATCH).as_nanos().try_into().unwrap_or(u64::MAX)
}

fn median(mut batches: Vec<u64>) -> u64 {
    batches.sort_unstable();
    batches[batches.len() / 2]
}

fn main() {
    let client = Client::open("memory:bench-rust").expect("memory is always there");
    let limiter = client.limiter("x").limit(1).open().expect("a valid limiter");
    let (request, in_c) = (Request::new(), open_in_c());
    let (mut rust, mut c) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        rust.push(batch(|| rust_pair(&limiter, &request)));
        c.push(batch(|| c_pair(in_c)));
    }
    let (rust, c) = (median(rust), median(c));
    println!("acquire and give back on memory: {rust} ns in Rust, {c} ns in C: {} ns more", c.saturating_sub(rust));
}
