//! Runs rows and writes the table.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::load::{LEASE, Load, Price};
use crate::support::{Flavor, Server};

/// How long it took to recover, for each time that the fault was made.
pub type Recoveries = Vec<Duration>;

/// A fault.
pub struct Row {
    pub group: &'static str,
    pub name: String,
    /// What is done to whom, and from when to when the recovery is measured.
    pub what: String,
    pub expected: &'static str,
    /// A recovery that takes longer is a failure. A generous multiple of what is measured: it catches "never".
    pub allowed: Duration,
    pub is_quick: bool,
    pub run: Box<dyn Fn(Flavor) -> Recoveries>,
}

impl Row {
    /// A fault that needs a scene of its own.
    pub fn alone(name: &str, what: &str, expected: &'static str, run: impl Fn(Flavor) -> Recoveries + 'static) -> Row {
        let (name, what, run) = (name.to_owned(), what.to_owned(), Box::new(run));
        Row { group: "", name, what, expected, allowed: Duration::from_secs(20), is_quick: false, run }
    }

    /// A fault under load.
    pub fn load(
        name: &str,
        what: &str,
        expected: &'static str,
        price: Price,
        harm: impl Fn(&mut Load) -> Recoveries + 'static,
    ) -> Row {
        Row::load_on(&[], name, what, expected, price, harm)
    }

    /// The same on a server with these options.
    pub fn load_on(
        options: &'static [(&'static str, &'static str)],
        name: &str,
        what: &str,
        expected: &'static str,
        price: Price,
        harm: impl Fn(&mut Load) -> Recoveries + 'static,
    ) -> Row {
        Row::alone(name, what, expected, move |flavor| {
            let server = options.iter().fold(Server::builder(flavor), |server, (name, value)| server.arg(name, value));
            let mut load = Load::start(server.start(), LEASE);
            let recoveries = harm(&mut load);
            load.finish(price);
            recoveries
        })
    }

    /// Part of every run of the tests.
    pub fn quick(mut self) -> Row {
        self.is_quick = true;
        self
    }

    pub fn within(mut self, allowed: Duration) -> Row {
        self.allowed = allowed;
        self
    }
}

/// What became of a row on one server.
type Outcome = Result<Recoveries, String>;

/// Runs all rows on all servers, one after the other; writes what came of it where FAIRQ_FAULTS_REPORT says, and
/// panics if a promise was broken.
pub fn run(rows: impl IntoIterator<Item = Row>, flavors: &[Flavor]) {
    let word = std::env::var("FAIRQ_FAULTS").unwrap_or_default();
    let rows: Vec<Row> = rows.into_iter().filter(|row| row.name.contains(&word)).collect();
    let results: Vec<(Row, Vec<Outcome>)> = rows
        .into_iter()
        .map(|row| {
            let outcomes = try_row(&row, flavors);
            (row, outcomes)
        })
        .collect();
    if let Some(path) = std::env::var_os("FAIRQ_FAULTS_REPORT").filter(|path| !path.is_empty()) {
        std::fs::write(&path, report(&results, flavors)).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    }
    let broken: Vec<&str> =
        results.iter().filter(|(_, outcomes)| outcomes.iter().any(Result::is_err)).map(|(row, _)| &*row.name).collect();
    assert!(broken.is_empty(), "promises broken by {broken:#?}");
}

fn try_row(row: &Row, flavors: &[Flavor]) -> Vec<Outcome> {
    flavors
        .iter()
        .map(|flavor| {
            let start = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| (row.run)(*flavor)));
            let outcome = outcome.map_err(|panic| message(&*panic)).and_then(|times| judge(row, times));
            let seconds = start.elapsed().as_secs_f32();
            eprintln!("{:<55} {flavor:<9} {seconds:5.1} s  {}", row.name, cell(&outcome));
            outcome
        })
        .collect()
}

fn judge(row: &Row, times: Recoveries) -> Outcome {
    let longest = times.iter().max().copied().unwrap_or_default();
    if longest > row.allowed {
        return Err(format!("recovered after {longest:?}, allowed are {:?}", row.allowed));
    }
    Ok(times)
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

fn report(results: &[(Row, Vec<Outcome>)], flavors: &[Flavor]) -> String {
    let servers: Vec<&str> = flavors.iter().map(|flavor| flavor.name()).collect();
    let mut text = HEAD.replace("SERVERS", &servers.join(","));
    let mut group = "";
    for (row, outcomes) in results {
        if row.group != group {
            group = row.group;
            let columns: String = servers.iter().map(|server| format!(" {server} |")).collect();
            let rules = "---|".repeat(4 + servers.len());
            write!(text, "\n## {group}\n\n| fault | what is done | expected | allowed |{columns}\n|{rules}\n").unwrap();
        }
        let cells: String = outcomes.iter().map(|outcome| format!(" {} |", cell(outcome))).collect();
        let allowed = fairq::format_duration(row.allowed);
        writeln!(text, "| {} | {} | {} | {allowed} |{cells}", row.name, row.what, row.expected).unwrap();
    }
    text
}

/// The longest (and the median, where it says something) of how many.
fn cell(outcome: &Outcome) -> String {
    match outcome {
        Err(reason) => format!("**broken**: {}", reason.lines().next().unwrap_or_default().replace('|', "/")),
        Ok(times) if times.is_empty() => "kept".into(),
        Ok(times) => {
            let mut times = times.clone();
            times.sort_unstable();
            let (median, longest) = (seconds(times[times.len() / 2]), seconds(times[times.len() - 1]));
            match times.len() {
                1 => longest,
                count => format!("{longest} (median {median}, {count} times)"),
            }
        }
    }
}

fn seconds(time: Duration) -> String {
    match time.as_millis() {
        0..1000 => format!("{} ms", time.as_millis()),
        _ => format!("{:.1} s", time.as_secs_f32()),
    }
}

const HEAD: &str = "\
# Faults, and what becomes of the promises

Written by

```sh
FAIRQ_TEST_SERVER=SERVERS FAIRQ_FAULTS_REPORT=docs/faults.md \\
    cargo test --all-features --test faults -- --ignored --test-threads=1
```

Each fault is put upon real processes at work: three with three threads each, behind a proxy, limit 4, lease 2 s, poll
100 ms. Their requests are patient or short of patience, get cancelled, are put back into the line, are released or
dropped; one permit is kept through it all. After each fault it was checked, from what the processes themselves
reported by one monotonic clock: never more than the limit at once; every request ended once, by its deadline; grants
in the order of arrival, no fence twice; the kept permit still held, nobody's permit lost, no patient request failed,
unless the row says that it may; and in the end nothing left in the server. (20,000 leases that end at once are in
`tests/promises/p11_cost.rs`, since what matters there is how much each call has to do.)

A cell is the longest time until every process was granted permits again: from the end of the fault, or from its
beginning where the row says so. It says how this machine (two busy cores) fared; what is *allowed* is a
generous multiple that only tells late from never.
";
