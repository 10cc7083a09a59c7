//! What costs time without a network: `cargo bench --bench local`.

#![allow(missing_docs)] // criterion writes functions of its own

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use fairq::{Client, Completions, Request};

fn uncontended(c: &mut Criterion) {
    let client = Client::open("memory:bench-uncontended").expect("memory is always there");
    let limiter = client.limiter("x").limit(1).open().expect("a valid limiter");
    let request = Request::new();
    c.bench_function("memory: acquire + release, uncontended", |b| {
        b.iter(|| limiter.acquire(black_box(&request)).expect("a permit").release());
    });
}

/// One slot, with so many in line: each round gives the slot to the head and puts a new one at the end.
fn hand_off(c: &mut Criterion) {
    let mut group = c.benchmark_group("memory: hand-off with N waiting");
    for waiting in [10_u64, 1_000, 100_000] {
        let client = Client::builder(&format!("memory:bench-{waiting}"))
            .max_tickets(u64::MAX)
            .open()
            .expect("memory is always there");
        let limiter = client.limiter("x").limit(1).max_queue(u64::MAX).open().expect("a valid limiter");
        let completions = Completions::new();
        let request = Request::new().wait_forever();
        for token in 0..=waiting {
            limiter.acquire_start(&request, &completions, token).expect("started");
        }
        let next = || completions.poll(1, Duration::from_secs(5)).pop().expect("a grant").result.expect("a permit");
        let mut held = Some(next());
        group.bench_function(waiting.to_string(), |b| {
            b.iter(|| {
                limiter.acquire_start(&request, &completions, 0).expect("started");
                drop(held.take());
                held = Some(next());
            });
        });
    }
    group.finish();
}

fn settings() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2))
}

criterion_group! { name = benches; config = settings(); targets = uncontended, hand_off }
criterion_main!(benches);
