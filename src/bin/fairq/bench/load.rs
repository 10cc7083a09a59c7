//! The saturated limiter: many processes, many waiting, every release is somebody's grant.

use std::time::Duration;

use fairq::Change;
use serde::Serialize;

use super::Bench;
use super::fleet::Fleet;
use super::worker::Plan;
use crate::audit::{self, LimitChange};
use crate::clock;
use crate::exit::Failure;
use crate::server::Server;

/// From the first grant until the measurement starts.
const WARM_UP: Duration = Duration::from_millis(500);

#[derive(Serialize)]
pub struct Load {
    pub grants_per_s: f64,
    pub script_calls_per_grant: f64,
    pub redis_us_per_script_call: f64,
    /// Of one core; 1 means that the server could do no more.
    pub redis_cpu: f64,
    pub most_at_once: u64,
    pub over_limit: u64,
    pub overtakings: u64,
    pub fences_given_twice: u64,
    pub grants_recorded: u64,
}

pub fn measure(bench: &mut Bench) -> Result<Load, Failure> {
    let limiter = bench.limiter("load", bench.args.limit)?;
    // Nobody is admitted until all stand in line, so that the line is full from the first grant on.
    limiter.configure(&Change::new().pause())?;
    let mut fleet = Fleet::start(bench, &plans(bench))?;
    fleet.order("go", "started")?;
    bench.await_waiting(&limiter, bench.args.waiters)?;
    limiter.configure(&Change::new().resume())?;
    bench.sleep(WARM_UP)?;
    let before = Reading::take(&mut bench.server, &limiter)?;
    bench.sleep(Duration::from_secs_f64(bench.args.seconds))?;
    let after = Reading::take(&mut bench.server, &limiter)?;
    let grants = fleet.stop()?;
    let limits = [LimitChange { asked_ns: 0, done_ns: 0, limit: bench.args.limit }];
    let scripts = after.scripts.since(before.scripts);
    let granted = (after.granted - before.granted) as f64;
    let seconds = clock::seconds(before.at_ns, after.at_ns);
    Ok(Load {
        grants_per_s: granted / seconds,
        script_calls_per_grant: scripts.calls as f64 / granted.max(1.0),
        redis_us_per_script_call: scripts.usec_per_call(),
        redis_cpu: (after.cpu_s - before.cpu_s) / seconds,
        most_at_once: audit::most_at_once(&grants),
        over_limit: audit::over_limit(&grants, &limits) as u64,
        overtakings: audit::overtaken(&grants) as u64,
        fences_given_twice: audit::repeated_fences(&grants) as u64,
        grants_recorded: grants.len() as u64,
    })
}

/// The waiters, spread evenly.
fn plans(bench: &Bench) -> Vec<Plan> {
    let args = bench.args;
    let share = |index| args.waiters / args.processes + u64::from(index < args.waiters % args.processes);
    let plan = |index| Plan {
        name: bench.name("load"),
        limit: args.limit,
        tickets: share(index),
        hold: args.hold,
        background: true,
    };
    (0..args.processes).map(plan).collect()
}

/// The counters at one moment.
struct Reading {
    at_ns: u64,
    granted: u64,
    scripts: crate::server::Scripts,
    cpu_s: f64,
}

impl Reading {
    fn take(server: &mut Server, limiter: &fairq::Limiter) -> Result<Reading, Failure> {
        let granted = limiter.status()?.granted_total;
        let at_ns = clock::now_ns();
        Ok(Reading { at_ns, granted, scripts: server.scripts()?, cpu_s: server.cpu_seconds()? })
    }
}
