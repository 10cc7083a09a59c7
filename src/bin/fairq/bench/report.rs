//! What was measured, as tables and as one JSON object.

use serde::Serialize;

use super::cancels::Cancels;
use super::line::Line;
use super::names::Names;
use super::processes::Loads;
use super::scale::Scale;
use super::targets::Targets;
use super::threads::Threads;
use super::{Args, Bench, Part, cancels, line, names, processes, scale, targets, threads};
use crate::exit::Failure;
use crate::term::{Paint, Table};

#[derive(Serialize)]
pub struct Report {
    server: String,
    processes: u64,
    waiters: u64,
    limit: u64,
    seconds: f64,
    hold_ms: f64,
    cores: usize,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    targets: Option<Targets>,
    #[serde(flatten)]
    parts: Parts,
}

/// What was asked for by `--only`.
#[derive(Serialize)]
struct Parts {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<Threads>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_processes: Option<Loads>,
    #[serde(skip_serializing_if = "Option::is_none")]
    costs: Option<Loads>,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Names>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancels: Option<Cancels>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<Scale>,
}

/// Measures a part if it is wanted.
type Measure<'a, T> = fn(&mut Bench<'a>) -> Result<T, Failure>;

fn part<'a, T>(bench: &mut Bench<'a>, part: Part, what: &str, measure: Measure<'a, T>) -> Result<Option<T>, Failure> {
    let wanted = bench.args.wants(part);
    wanted.then(|| bench.phase(what, measure)).transpose()
}

impl Parts {
    fn measure(bench: &mut Bench) -> Result<Parts, Failure> {
        Ok(Parts {
            line: part(bench, Part::Line, "what verbs cost the server, by the length of the line", line::measure)?,
            threads: part(bench, Part::Threads, "threads of one client", threads::measure)?,
            by_processes: part(bench, Part::Processes, "more and more processes", processes::by_processes)?,
            costs: part(bench, Part::Costs, "costs above 1", processes::by_costs)?,
            names: part(bench, Part::Names, "many limiters on one client", names::measure)?,
            cancels: part(bench, Part::Cancels, "a storm of cancels", cancels::measure)?,
            scale: part(bench, Part::Scale, "many instances", scale::measure)?,
        })
    }

    /// Each with a title.
    fn tables(&self) -> Vec<(String, Table)> {
        let mut all = Vec::new();
        let mut add = |title: String, table: Table| all.push((title, table));
        if let Some(line) = &self.line {
            add("Server time for a call, and for a grant, while so many wait".into(), line.table());
        }
        if let Some(threads) = &self.threads {
            add(threads.title(), threads.table());
        }
        if let Some(loads) = &self.by_processes {
            add("Saturated, by processes".into(), loads.table());
        }
        if let Some(loads) = &self.costs {
            add("Saturated, by the costs of requests".into(), loads.table());
        }
        if let Some(names) = &self.names {
            add("Many limiters on one client".into(), names.table());
        }
        if let Some(cancels) = &self.cancels {
            add("A storm of cancels".into(), cancels.table());
        }
        if let Some(scale) = &self.scale {
            add(scale.title(), scale.table());
        }
        all
    }

    fn promises_kept(&self, limit: u64) -> bool {
        let mut loads = self.by_processes.iter().chain(&self.costs);
        loads.all(Loads::promises_kept) && self.scale.iter().all(|scale| scale.load.promises_kept(limit))
    }
}

impl Report {
    pub fn measure(bench: &mut Bench, server: String) -> Result<Report, Failure> {
        let Args { processes, waiters, limit, seconds, hold, .. } = *bench.args;
        Ok(Report {
            server,
            processes,
            waiters,
            limit,
            seconds,
            hold_ms: hold.as_secs_f64() * 1e3,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            targets: bench.args.wants(Part::Targets).then(|| targets::measure(bench)).transpose()?,
            parts: Parts::measure(bench)?,
        })
    }

    /// Whether the limit held and nobody was overtaken. The rest are costs.
    pub fn promises_kept(&self) -> bool {
        self.targets.iter().all(Targets::promises_kept) && self.parts.promises_kept(self.limit)
    }

    pub fn render(&self, paint: Paint) -> String {
        let mut text = format!(
            "{}, {} cores; {} processes, {} waiters, limit {}, hold {} ms, {} s\n",
            self.server, self.cores, self.processes, self.waiters, self.limit, self.hold_ms, self.seconds
        );
        if let Some(targets) = &self.targets {
            text += &format!("\n{}", targets.render(paint));
        }
        for (title, table) in self.parts.tables() {
            text += &format!("\n{title}\n\n{}", table.render(2));
        }
        text
    }
}
