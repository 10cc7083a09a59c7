//! From a release to the moment at which another process has the permit.

use std::time::Duration;

use serde::Serialize;

use super::Bench;
use super::fleet::Fleet;
use super::floors::micros;
use super::worker::Plan;
use crate::audit;
use crate::exit::Failure;
use crate::server;

/// Long enough that the other process is back in line, and asleep, before the next release; and its core with it. The floor
/// keeps the same pace, since a core that slept takes its time.
pub const HOLD: Duration = Duration::from_millis(2);

#[derive(Serialize)]
pub struct Handoff {
    pub samples: u64,
    pub p50_us: f64,
    pub p99_us: f64,
}

/// Limit 1 and two processes with one request each: they take turns.
pub fn measure(bench: &mut Bench) -> Result<Handoff, Failure> {
    let name = bench.name("handoff");
    let plan = Plan { name, limit: 1, tickets: 1, hold: HOLD, clients: 1, costs_up_to: 1, background: false };
    let mut fleet = Fleet::start(bench, &[plan.clone(), plan])?;
    fleet.order("go", "started")?;
    bench.sleep(bench.seconds_up_to(3.0))?;
    let grants = fleet.stop()?;
    let mut times = server::histogram();
    audit::handoffs_ns(&grants).into_iter().for_each(|ns| times.saturating_record(ns));
    Ok(Handoff { samples: times.len(), p50_us: micros(&times, 0.5), p99_us: micros(&times, 0.99) })
}
