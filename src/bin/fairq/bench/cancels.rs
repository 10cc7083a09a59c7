//! A storm of cancels: all who wait leave at once, from several threads, and a bystander has another limiter meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairq::{Completions, Limiter, Request, Ticket};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::Bench;
use super::floors::micros;
use super::usage::{PerGrant, Usage};
use crate::connect;
use crate::exit::{Failure, SOFTWARE};
use crate::server;
use crate::term::Table;

const THREADS: usize = 4;
const BATCH: usize = 1024;
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Serialize)]
pub struct Cancels {
    cancels: u64,
    /// Until every one of them has ended, and until the server knows.
    ended_ms: f64,
    gone_ms: f64,
    script_calls_per_cancel: f64,
    redis_us_per_cancel: f64,
    each: PerGrant,
    /// Acquire and release of another client on another limiter, before and during the storm.
    bystander_before_p99_us: f64,
    bystander_during_p99_us: f64,
    bystander_during_max_us: f64,
}

pub fn measure(bench: &mut Bench) -> Result<Cancels, Failure> {
    let client = connect::client(bench.site)?;
    let limiter = super::open(&client, &bench.name("cancels"), 1)?;
    let held = limiter.acquire(&Request::new())?;
    let completions = Completions::new();
    let count = bench.args.idle;
    let start = |token| limiter.acquire_start(&Request::new().wait_forever(), &completions, token);
    let tickets = (0..count).map(start).collect::<Result<Vec<Ticket>, _>>()?;
    bench.await_waiting(&limiter, count)?;
    let aside = bench.limiter("bystander", 10)?;
    let calm = bystander(&aside, || bench.sleep(bench.seconds_up_to(1.0)))?;
    let (before, usage) = (bench.server.scripts()?, Usage::now());
    let mut times = (Duration::ZERO, Duration::ZERO);
    let storm = bystander(&aside, || storm(bench, &limiter, &tickets, &completions).map(|found| times = found))?;
    let scripts = bench.server.scripts()?.since(before);
    let used = Usage::now() - usage;
    held.release()?;
    connect::goodbye(&client);
    // The bystander's calls are in the same count.
    let calls = scripts.calls.saturating_sub(2 * storm.len());
    Ok(Cancels {
        cancels: count,
        ended_ms: times.0.as_secs_f64() * 1e3,
        gone_ms: times.1.as_secs_f64() * 1e3,
        script_calls_per_cancel: calls as f64 / count as f64,
        redis_us_per_cancel: scripts.usec_per_call() * calls as f64 / count as f64,
        each: used.per(count as f64),
        bystander_before_p99_us: micros(&calm, 0.99),
        bystander_during_p99_us: micros(&storm, 0.99),
        bystander_during_max_us: storm.max() as f64 / 1e3,
    })
}

/// The time of each pair while `then` is under way.
fn bystander(limiter: &Limiter, then: impl FnOnce() -> Result<(), Failure>) -> Result<Histogram<u64>, Failure> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let pairs = scope.spawn(|| {
            let mut taken = server::histogram();
            while !over.load(Ordering::Relaxed) {
                let pair = || Ok(limiter.acquire(&Request::new())?.release()?);
                taken += server::time_calls(1, pair)?;
                thread::sleep(Duration::from_millis(1));
            }
            Ok(taken)
        });
        let result = then();
        over.store(true, Ordering::Relaxed);
        let taken = pairs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.and(taken)
    })
}

fn storm(
    bench: &Bench,
    limiter: &Limiter,
    tickets: &[Ticket],
    completions: &Completions,
) -> Result<(Duration, Duration), Failure> {
    let start = Instant::now();
    thread::scope(|scope| {
        for some in tickets.chunks(tickets.len().div_ceil(THREADS)) {
            scope.spawn(|| some.iter().filter(|ticket| ticket.cancel()).count());
        }
    });
    let mut left = tickets.len();
    while left > 0 {
        let some = completions.poll(BATCH, Duration::from_millis(100));
        left -= some.len();
        if start.elapsed() > PATIENCE {
            return Err(Failure::new(SOFTWARE, format_args!("{left} cancelled requests did not end within a minute")));
        }
    }
    let ended = start.elapsed();
    while limiter.status()?.waiting > 0 {
        bench.sleep(Duration::from_millis(1))?;
    }
    Ok((ended, start.elapsed()))
}

impl Cancels {
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["measured", ""]);
        let mut row = |name: &str, value: String| table.row(vec![name.into(), value]);
        row("cancelled at once", self.cancels.to_string());
        row("- all have ended after", format!("{:.1}ms", self.ended_ms));
        row("- the server knows after", format!("{:.1}ms", self.gone_ms));
        row("script calls per cancel", format!("{:.2}", self.script_calls_per_cancel));
        row("server time per cancel", super::us(self.redis_us_per_cancel));
        row("client CPU per cancel", super::us(self.each.cpu_us));
        row("a bystander's pair, p99 before", super::us(self.bystander_before_p99_us));
        let during = [self.bystander_during_p99_us, self.bystander_during_max_us].map(super::us);
        row("- during, p99 and longest", during.join(", "));
        table
    }
}
