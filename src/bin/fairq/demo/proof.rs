//! The end of the demo: what was promised against what was seen.

use std::time::Duration;

use fairq::format_duration;

use super::LEASE;
use super::plan::{Ending, LIMIT, MAX_QUEUE, Plan};
use super::record::Record;
use crate::audit;
use crate::server;
use crate::term::{Paint, Table, nanos};

/// Beyond the lease: the poll that notices, and a machine that is busy.
const SLACK: Duration = Duration::from_millis(1_000);

pub struct Proof {
    lines: Vec<Line>,
    waits: String,
}

struct Line {
    promise: String,
    expected: String,
    seen: String,
    kept: bool,
}

pub fn judge(plan: &Plan, record: &Record) -> Proof {
    let mut lines = safety(plan, record);
    lines.extend(endings(plan, record));
    lines.extend(recovery(plan, record));
    lines.push(nothing_left(record));
    Proof { lines, waits: waits(record) }
}

impl Proof {
    pub fn holds(&self) -> bool {
        self.lines.iter().all(|line| line.kept)
    }

    pub fn render(&self, paint: Paint) -> String {
        let mut table = Table::new(&["promise", "expected", "seen", ""]);
        for line in &self.lines {
            let verdict = if line.kept { paint.good("kept") } else { paint.bad("BROKEN") };
            table.row(vec![line.promise.clone(), line.expected.clone(), line.seen.clone(), verdict]);
        }
        let verdict = if self.holds() {
            paint.good("every promise was kept")
        } else {
            paint.bad("a promise was broken: please report this")
        };
        format!("\n{}\n  {}\n  {verdict}\n", table.render(2), self.waits)
    }
}

impl Line {
    fn equal<T: PartialEq + ToString>(promise: &str, expected: T, seen: T) -> Line {
        let (kept, expected, seen) = (expected == seen, expected.to_string(), seen.to_string());
        Line { promise: promise.into(), expected, seen, kept }
    }
}

fn safety(plan: &Plan, record: &Record) -> Vec<Line> {
    let grants = record.grants(plan);
    let limits: Vec<String> = record.limits.iter().map(|change| change.limit.to_string()).collect();
    let highest = record.limits.iter().map(|change| change.limit).max().unwrap_or(LIMIT);
    let most = audit::most_at_once(&grants);
    vec![
        Line {
            promise: "most held at once".into(),
            expected: format!("at most {highest} (the limit was {})", limits.join(", then ")),
            seen: most.to_string(),
            kept: most <= highest,
        },
        Line::equal("admitted above the limit of the moment", 0, audit::over_limit(&grants, &record.limits)),
        Line::equal("overtakings", 0, audit::overtaken(&grants)),
        Line::equal("fences given twice", 0, audit::repeated_fences(&grants)),
        Line {
            promise: "most in line".into(),
            expected: format!("at most {MAX_QUEUE}"),
            seen: record.most_waiting.to_string(),
            kept: record.most_waiting <= MAX_QUEUE,
        },
    ]
}

fn endings(plan: &Plan, record: &Record) -> Vec<Line> {
    let once = record.lives.iter().filter(|life| life.ends.len() == 1).count();
    let as_meant = plan.requests.iter().filter(|r| record.life(r.id).end().map(|end| end.1) == Some(r.expected));
    let mut lines = vec![
        Line::equal("requests that ended exactly once", plan.requests.len(), once),
        Line::equal("requests that ended as meant", plan.requests.len(), as_meant.count()),
    ];
    for ending in Ending::ALL {
        let expected = plan.requests.iter().filter(|request| request.expected == ending).count();
        let seen = record.lives.iter().filter(|life| life.end().is_some_and(|end| end.1 == ending)).count();
        if expected + seen > 0 {
            lines.push(Line::equal(&format!("- {}", ending.title()), expected, seen));
        }
    }
    lines
}

fn recovery(plan: &Plan, record: &Record) -> Vec<Line> {
    let (promise, bound) = match plan.kills() {
        true => ("permit of the killed process free after", LEASE + SLACK),
        false => ("revoked permit free after", SLACK),
    };
    let seen = record.freed_after;
    vec![Line {
        promise: promise.into(),
        expected: if plan.kills() { format!("about the lease, {}", format_duration(LEASE)) } else { "at once".into() },
        seen: seen
            .map_or_else(|| "never".into(), |time| format_duration(Duration::from_millis(time.as_millis() as u64))),
        kept: seen.is_some_and(|time| time <= bound),
    }]
}

fn nothing_left(record: &Record) -> Line {
    let seen =
        record.left_over.map_or_else(|| "unknown".into(), |(held, waiting)| format!("{held} held, {waiting} waiting"));
    Line::equal("left over at the end", "0 held, 0 waiting".to_string(), seen)
}

fn waits(record: &Record) -> String {
    let mut times = server::histogram();
    for time in record.lives.iter().filter_map(|life| life.waited()) {
        times.saturating_record(time.as_nanos() as u64);
    }
    let [p50, p99] = [0.5, 0.99].map(|q| nanos(times.value_at_quantile(q)));
    format!("time in line of the {} granted: p50 {p50}, p99 {p99}", times.len())
}
