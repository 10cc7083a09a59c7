//! The line, from short to very long: what each verb costs the server while so many wait. A simulated crowd, since a million
//! requests do not fit the processes of one machine as well.

use std::time::Instant;

use fairq::bench_support::{Crowd, Deed};
use serde::Serialize;

use super::Bench;
use crate::exit::Failure;
use crate::server::patient;
use crate::term::Table;

const INSTANCES: usize = 10;
const LIMIT: u64 = 100;
/// Each figure is the median of so many rounds of so many calls: the server counts the moments in which it had no core, and
/// few rounds have many of them. Between rounds the line becomes as long as it was.
const ROUNDS: f64 = 25.0;
const ROUND: u64 = 200;

#[derive(Serialize)]
pub struct Line {
    rows: Vec<Row>,
}

/// Microseconds of the server for a call, by its own count.
#[derive(Serialize)]
struct Row {
    waiting: u64,
    enqueue_us: f64,
    release_us: f64,
    cancel_us: f64,
    position_us: f64,
    sync_us: f64,
    /// A release that grants the first in line, and an enqueue in its place: what a grant costs the server.
    grant_us: f64,
    grants_per_s_pipelined: f64,
    /// Of long lines only: in short ones other things are in the way.
    redis_bytes_per_waiter: Option<f64>,
}

pub fn measure(bench: &mut Bench) -> Result<Line, Failure> {
    let lengths = [10, 100, 1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|n| *n <= bench.args.longest);
    let lengths: Vec<u64> = lengths.collect();
    let mut crowd = Crowd::open(&patient(bench.site)?, INSTANCES, LIMIT)?;
    let empty = bench.server.used_memory()?;
    let rows = lengths.into_iter().map(|waiting| row(bench, &mut crowd, waiting, empty));
    Ok(Line { rows: rows.collect::<Result<_, _>>()? })
}

fn row(bench: &mut Bench, crowd: &mut Crowd, waiting: u64, empty: u64) -> Result<Row, Failure> {
    crowd.grow_to(waiting)?;
    let bytes = bench.server.used_memory()?.saturating_sub(empty) as f64 / waiting as f64;
    let redis_bytes_per_waiter = (waiting >= 1000).then_some(bytes);
    let mut each = |deed| cost(bench, crowd, deed, waiting);
    let (enqueue_us, cancel_us) = (each(Deed::Enqueue)?, each(Deed::Cancel)?);
    let (release_us, position_us, sync_us) = (each(Deed::HandOver)?, each(Deed::Position)?, each(Deed::Sync)?);
    crowd.grow_to(waiting)?;
    let (grant_us, grants_per_s_pipelined) = (grant(bench, crowd)?, rate(bench, crowd)?);
    Ok(Row {
        waiting,
        enqueue_us,
        release_us,
        cancel_us,
        position_us,
        sync_us,
        grant_us,
        grants_per_s_pipelined,
        redis_bytes_per_waiter,
    })
}

fn cost(bench: &mut Bench, crowd: &mut Crowd, deed: Deed, waiting: u64) -> Result<f64, Failure> {
    let most = if deed == Deed::HandOver { LIMIT } else { ROUND };
    let round = (waiting / 2).min(most).max(1);
    median(bench, |bench| {
        crowd.grow_to(waiting)?;
        let before = bench.server.scripts()?;
        crowd.pipelined(deed, round)?;
        let used = bench.server.scripts()?.since(before);
        if deed == Deed::Enqueue {
            crowd.pipelined(Deed::Cancel, round)?;
        }
        Ok(used.usec_per_call())
    })
}

fn grant(bench: &mut Bench, crowd: &mut Crowd) -> Result<f64, Failure> {
    median(bench, |bench| {
        let before = bench.server.scripts()?;
        crowd.turn()?;
        Ok(bench.server.scripts()?.since(before).usec as f64 / LIMIT as f64)
    })
}

/// Of as many rounds as there is time for: a short run is short in all its parts.
fn median(bench: &mut Bench, mut round: impl FnMut(&mut Bench) -> Result<f64, Failure>) -> Result<f64, Failure> {
    let rounds = (ROUNDS * bench.seconds_up_to(1.0).as_secs_f64()).ceil() as usize;
    let mut all = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        bench.interrupted()?;
        all.push(round(bench)?);
    }
    all.sort_by(f64::total_cmp);
    Ok(all[rounds / 2])
}

/// Grants per second, as fast as the server can.
fn rate(bench: &mut Bench, crowd: &mut Crowd) -> Result<f64, Failure> {
    let (start, duration) = (Instant::now(), bench.seconds_up_to(2.0));
    let mut grants = 0;
    while start.elapsed() < duration {
        bench.interrupted()?;
        crowd.turn()?;
        grants += LIMIT;
    }
    Ok(grants as f64 / start.elapsed().as_secs_f64())
}

impl Line {
    pub fn table(&self) -> Table {
        let head = ["waiting", "enqueue", "release", "cancel", "position", "sync", "a grant", "grants/s", "bytes each"];
        let mut table = Table::new(&head);
        for row in &self.rows {
            let times = [row.enqueue_us, row.release_us, row.cancel_us, row.position_us, row.sync_us, row.grant_us];
            let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.0}"));
            let rest = [Some(row.grants_per_s_pipelined), row.redis_bytes_per_waiter].map(number);
            table.row([row.waiting.to_string()].into_iter().chain(times.map(super::us)).chain(rest).collect());
        }
        table
    }
}
