//! Many requests that only wait, in one process: what they cost while nothing happens.

use std::time::Duration;

use fairq::Request;
use serde::Serialize;

use super::Bench;
use super::fleet::Fleet;
use super::worker::Plan;
use crate::clock;
use crate::exit::Failure;

/// Time for buffers and threads to come to rest.
const SETTLE: Duration = Duration::from_secs(1);

#[derive(Serialize)]
pub struct Idle {
    pub waiters: u64,
    pub script_calls_per_s: f64,
    /// Of one core.
    pub process_cpu: f64,
    pub process_bytes_per_waiter: Option<f64>,
    pub process_threads: Option<u64>,
    pub redis_bytes_per_waiter: f64,
}

/// Limit 1, held here; the waiters are all in one other process.
pub fn measure(bench: &mut Bench) -> Result<Idle, Failure> {
    let waiters = bench.args.idle;
    let limiter = bench.limiter("idle", 1)?;
    let permit = limiter.acquire(&Request::new())?;
    let (name, hold) = (bench.name("idle"), Duration::ZERO);
    let plan = Plan { name, limit: 1, tickets: waiters, hold, clients: 1, costs_up_to: 1, background: true };
    let mut fleet = Fleet::start(bench, &[plan])?;
    let (memory_empty, usage_empty) = (bench.server.used_memory()?, fleet.usage()?);
    fleet.order("go", "started")?;
    bench.await_waiting(&limiter, waiters)?;
    bench.sleep(SETTLE)?;
    let (scripts_before, before) = (bench.server.scripts()?, fleet.usage()?);
    bench.sleep(bench.seconds_up_to(3.0))?;
    let (scripts_after, after) = (bench.server.scripts()?, fleet.usage()?);
    let memory_full = bench.server.used_memory()?;
    let seconds = clock::seconds(before.at_ns, after.at_ns);
    // The waiters go before the permit does: nobody is to be granted on the way out.
    fleet.stop()?;
    permit.release()?;
    let rss = after.rss_bytes.zip(usage_empty.rss_bytes);
    Ok(Idle {
        waiters,
        script_calls_per_s: scripts_after.since(scripts_before).calls as f64 / seconds,
        process_cpu: (after.cpu_us - before.cpu_us) as f64 / 1e6 / seconds,
        process_bytes_per_waiter: rss.map(|(full, empty)| full.saturating_sub(empty) as f64 / waiters as f64),
        process_threads: after.threads,
        redis_bytes_per_waiter: memory_full.saturating_sub(memory_empty) as f64 / waiters as f64,
    })
}
