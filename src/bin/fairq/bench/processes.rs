//! The saturated limiter with more and more processes, and with requests of different costs.

use serde::Serialize;

use super::Bench;
use super::load::{Crew, Load, Shape};
use crate::exit::Failure;
use crate::term::Table;

const PROCESSES: [u64; 5] = [1, 2, 4, 8, 16];
const COSTS_UP_TO: [u64; 3] = [1, 4, 16];

/// One load for each number of something.
#[derive(Serialize)]
pub struct Loads {
    #[serde(skip)]
    what: &'static str,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    of: u64,
    limit: u64,
    load: Load,
}

pub fn by_processes(bench: &mut Bench) -> Result<Loads, Failure> {
    let shapes = PROCESSES.into_iter().filter(|count| *count <= bench.args.waiters).map(|processes| {
        let usual = Shape::usual(bench, &format!("processes-{processes}"));
        (processes, Shape { processes, clients: processes, ..usual })
    });
    let shapes: Vec<_> = shapes.collect();
    rows(bench, "processes", shapes)
}

/// The limit is such that the dearest always fits.
pub fn by_costs(bench: &mut Bench) -> Result<Loads, Failure> {
    let shapes = COSTS_UP_TO.into_iter().map(|costs_up_to| {
        let usual = Shape::usual(bench, &format!("costs-{costs_up_to}"));
        (costs_up_to, Shape { costs_up_to, limit: bench.args.limit.max(2 * costs_up_to), ..usual })
    });
    let shapes: Vec<_> = shapes.collect();
    rows(bench, "costs up to", shapes)
}

fn rows(bench: &mut Bench, what: &'static str, shapes: Vec<(u64, Shape)>) -> Result<Loads, Failure> {
    let mut loads = Loads { what, rows: Vec::new() };
    for (of, shape) in shapes {
        let limit = shape.limit;
        let shape = Shape { seconds: bench.seconds_up_to(3.0).as_secs_f64(), ..shape };
        let load = Crew::assemble(bench, shape)?.work(bench)?;
        loads.rows.push(Row { of, limit, load });
    }
    Ok(loads)
}

impl Loads {
    pub fn promises_kept(&self) -> bool {
        self.rows.iter().all(|row| row.load.promises_kept(row.limit))
    }

    pub fn table(&self) -> Table {
        let head = ["grants/s", "scripts/grant", "us/script", "server", "client CPU", "switches", "refill p50", "p99"];
        let mut table = Table::new(&[&[self.what, "limit"], &head[..], &["most at once", "overtaken"]].concat());
        for Row { of, limit, load } in &self.rows {
            let mut cells = vec![of.to_string(), limit.to_string()];
            cells.extend(load.cells());
            cells.extend([load.most_at_once.to_string(), load.overtakings.to_string()]);
            table.row(cells);
        }
        table
    }
}

impl Load {
    /// Grants, script calls, server and clients, and how soon a slot is taken.
    pub fn cells(&self) -> [String; 8] {
        let each = &self.client_per_grant;
        [
            format!("{:.0}", self.grants_per_s),
            format!("{:.2}", self.script_calls_per_grant),
            format!("{:.1}", self.redis_us_per_script_call),
            super::percent(self.redis_cpu),
            super::us(each.cpu_us),
            format!("{:.2}", each.switches),
            self.refill_p50_us.map_or_else(|| "-".into(), super::us),
            self.refill_p99_us.map_or_else(|| "-".into(), super::us),
        ]
    }
}
