//! What costs time without a network: `cargo bench --bench local`; `cargo bench --bench local -- ticket` for one part.

#![allow(missing_docs)] // criterion writes functions of its own

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use fairq::{Client, Completions, Limiter, Permit, Request};

// The two small machines that races are decided by: whole files, which need nothing else.
#[allow(dead_code, unused_imports, reason = "the library, and its tests, use more of it")]
#[path = "../src/coalescer.rs"]
mod coalescer;
#[allow(dead_code, unused_imports, reason = "the library, and its tests, use more of it")]
#[path = "../src/ticket.rs"]
mod ticket;

use coalescer::Coalescer;
use ticket::{Ticket, TicketState};

const PATIENCE: Duration = Duration::from_secs(5);

fn limiter(world: &str, limit: u64) -> Limiter {
    let client = Client::builder(&format!("memory:bench-{world}")).max_tickets(u64::MAX);
    let client = client.open().expect("memory is always there");
    client.limiter("x").limit(limit).max_queue(u64::MAX).open().expect("a valid limiter")
}

fn machines(c: &mut Criterion) {
    c.bench_function("ticket: granted and released", |b| {
        b.iter(|| {
            let ticket = Ticket::new();
            black_box(ticket.grant(black_box(7)) && ticket.end(TicketState::Released))
        });
    });
    c.bench_function("ticket: a grant that comes too late", |b| {
        let ticket = Ticket::new();
        ticket.settle(TicketState::Cancelled);
        b.iter(|| black_box(&ticket).grant(black_box(7)));
    });
    c.bench_function("coalescer: a sweep nobody disturbs", |b| {
        let coalescer = Coalescer::new();
        b.iter(|| black_box(coalescer.notify() && !coalescer.finish()));
    });
    c.bench_function("coalescer: a notification during a sweep", |b| {
        let coalescer = Coalescer::new();
        coalescer.notify();
        b.iter(|| black_box(coalescer.notify()));
    });
}

fn uncontended(c: &mut Criterion) {
    let limiter = limiter("uncontended", 1);
    let request = Request::new();
    c.bench_function("memory: acquire + release, uncontended", |b| {
        b.iter(|| limiter.acquire(black_box(&request)).expect("a permit").release());
    });
}

/// Threads of one client with permits to spare. Whoever comes first hands over what the others decide meanwhile, so this is
/// what the table, its outbox and the store cost together when several want them. The time is of one pair of one thread.
fn threads(c: &mut Criterion) {
    let mut group = c.benchmark_group("memory: acquire + release by N threads");
    for count in [1_u32, 2, 4] {
        let limiter = limiter(&format!("threads-{count}"), 100);
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(count.to_string(), |b| b.iter_custom(|times| together(&limiter, count, times)));
    }
    group.finish();
}

fn together(limiter: &Limiter, threads: u32, times: u64) -> Duration {
    let request = Request::new();
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..times {
                    limiter.acquire(&request).expect("a permit").release().expect("release");
                }
            });
        }
    });
    start.elapsed()
}

/// One slot, with so many in line: each round gives the slot to the head and puts a new one at the end.
fn hand_off(c: &mut Criterion) {
    let mut group = c.benchmark_group("memory: hand-off with N waiting");
    for waiting in [10_u64, 1_000, 100_000] {
        let limiter = limiter(&waiting.to_string(), 1);
        let completions = Completions::new();
        let request = Request::new().wait_forever();
        for token in 0..=waiting {
            limiter.acquire_start(&request, &completions, token).expect("started");
        }
        let mut held = Some(next(&completions));
        group.bench_function(waiting.to_string(), |b| {
            b.iter(|| {
                limiter.acquire_start(&request, &completions, 0).expect("started");
                drop(held.take());
                held = Some(next(&completions));
            });
        });
    }
    group.finish();
}

fn next(completions: &Completions) -> Permit {
    completions.poll(1, PATIENCE).pop().expect("a grant").result.expect("a permit")
}

/// With so many in line, one more comes and goes: what the outbox and the store do for a cancel.
fn cancel(c: &mut Criterion) {
    let limiter = limiter("cancel", 1);
    let completions = Completions::new();
    let request = Request::new().wait_forever();
    let start = |token| limiter.acquire_start(&request, &completions, token).expect("started");
    (0..=1_000).for_each(|token| drop(start(token)));
    let _held = next(&completions);
    c.bench_function("memory: start + cancel, 1,000 waiting", |b| {
        b.iter(|| {
            start(0).cancel();
            completions.poll(1, PATIENCE)
        });
    });
}

/// The queue alone: completions that are there already are taken from it, one by one or many at once, and by a host that
/// does so while another thread fills it.
fn queue(c: &mut Criterion) {
    const COUNT: u64 = 1_000;
    let mut group = c.benchmark_group("completions: 1,000 taken");
    group.throughput(Throughput::Elements(COUNT));
    let limiter = limiter("queue", u64::from(u32::MAX) / 8);
    let request = Request::new();
    let filled = || {
        let completions = Completions::new();
        for token in 0..COUNT {
            limiter.acquire_start(&request, &completions, token).expect("started");
        }
        completions
    };
    for batch in [1, 64, 1_000] {
        let take = |completions: Completions| {
            let mut permits = Vec::with_capacity(COUNT as usize);
            while permits.len() < COUNT as usize {
                permits.extend(completions.poll(batch, PATIENCE));
            }
            permits // given back outside the time
        };
        group.bench_function(format!("{batch} at a time"), |b| b.iter_batched(filled, take, BatchSize::PerIteration));
    }
    group.finish();
    crossing(c, &limiter);
}

fn crossing(c: &mut Criterion, limiter: &Limiter) {
    let completions = Completions::new();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                drop(completions.poll(64, Duration::from_millis(10)));
            }
        });
        let request = Request::new();
        c.bench_function("completions: started here, taken by another thread", |b| {
            b.iter(|| limiter.acquire_start(&request, &completions, 0).expect("started"));
        });
        over.store(true, Ordering::Relaxed);
    });
}

fn settings() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2))
}

criterion_group! { name = benches; config = settings(); targets = machines, uncontended, threads, hand_off, cancel, queue }
criterion_main!(benches);
