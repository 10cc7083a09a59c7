//! The demo as it happens: a moving timeline on a terminal, one line for each event elsewhere.

use std::time::Duration;

use fairq::format_duration;

use super::plan::{Ending, Plan, Request};
use super::record::{Life, Record};
use super::worker::{Event, What};
use crate::clock;
use crate::exit::Failure;
use crate::term::{self, Paint, pad};

/// What stands left and right of the bars.
const LEFT: usize = 10;
const RIGHT: usize = 24;
/// Time that a column stands for, at least.
const COLUMN_NS: u64 = 100_000_000;

pub struct View<'a> {
    plan: &'a Plan,
    paint: Paint,
    /// Columns for the bars; `None` for plain lines.
    columns: Option<usize>,
    drawn: usize,
    news: String,
}

impl<'a> View<'a> {
    pub fn new(plan: &'a Plan, plain: bool) -> View<'a> {
        let fits = term::size()
            .filter(|&(width, height)| !plain && width >= LEFT + RIGHT + 30 && height > plan.requests.len() + 4);
        let columns = fits.map(|(width, _)| (width - LEFT - RIGHT - 1).min(80));
        View { plan, paint: Paint::stdout(), columns, drawn: 0, news: String::new() }
    }

    /// Something happened to a request.
    pub fn tell(&mut self, record: &Record, event: &Event) -> Result<(), Failure> {
        let request = self.plan.request(event.id);
        match describe(request, record.life(event.id), &event.what) {
            Some(text) => self.line(record, event.at_ns, &text),
            None => Ok(()),
        }
    }

    /// The operator, or death, did something.
    pub fn say(&mut self, record: &Record, text: &str) -> Result<(), Failure> {
        self.line(record, clock::now_ns(), &format!("---  {text}"))
    }

    /// Moves the picture on.
    pub fn draw(&mut self, record: &Record) -> Result<(), Failure> {
        let Some(columns) = self.columns else { return Ok(()) };
        let now_ns = clock::now_ns();
        let scale = Scale::new(record.start_ns, now_ns, columns);
        let mut lines = vec![format!("{}{}", pad("limit", LEFT), limit_row(record, &scale, now_ns))];
        lines.extend(
            self.plan.requests.iter().map(|request| self.row(request, record.life(request.id), &scale, now_ns)),
        );
        lines.push(String::new());
        lines.push(format!("{}{}", pad("", LEFT), self.news));
        let up = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        self.drawn = lines.len();
        let body: String = lines.iter().map(|line| format!("\r\x1b[K{line}\n")).collect();
        term::print(&(up + &body))
    }

    /// Leaves the last picture standing.
    pub fn finish(&mut self, record: &Record) -> Result<(), Failure> {
        self.news = "waiting ░  holding █".into();
        self.draw(record)
    }

    fn line(&mut self, record: &Record, at_ns: u64, text: &str) -> Result<(), Failure> {
        let line = format!("{:6.2}s  {text}", clock::seconds(record.start_ns, at_ns));
        if self.columns.is_none() {
            return term::print(&(line + "\n"));
        }
        self.news = line;
        self.draw(record)
    }

    fn row(&self, request: &Request, life: &Life, scale: &Scale, now_ns: u64) -> String {
        let name = format!("r{:02} p{}", request.id, request.process + 1);
        let name = if request.cost > 1 { format!("{name} x{}", request.cost) } else { name };
        let Some(asked_ns) = life.asked_ns else { return self.paint.dim(&name) };
        let end_ns = life.end().map_or(now_ns, |end| end.0);
        let granted_ns = life.granted.as_ref().map_or(end_ns, |granted| granted.at_ns);
        let wait = scale.between(asked_ns, granted_ns);
        let hold = if life.granted.is_some() { scale.between(granted_ns, end_ns).max(1) } else { 0 };
        let lead = " ".repeat(scale.column(asked_ns));
        let bar = format!("{lead}{}{}", self.paint.dim(&"░".repeat(wait)), self.paint.good(&"█".repeat(hold)));
        format!("{}{} {}", pad(&name, LEFT), pad(&bar, scale.columns), self.ending(life))
    }

    fn ending(&self, life: &Life) -> String {
        let waited = life.waited().map(|time| format!(" ({} in line)", format_duration(round(time))));
        match life.end() {
            None if life.granted.is_some() => self.paint.good("holds"),
            None => self.paint.dim("waits"),
            Some((_, Ending::Finished)) => format!("finished{}", waited.unwrap_or_default()),
            Some((_, ending @ (Ending::Failed | Ending::KilledHolding | Ending::KilledWaiting))) => {
                self.paint.bad(ending.short())
            }
            Some((_, ending)) => self.paint.warn(ending.short()),
        }
    }
}

/// From moments to columns.
struct Scale {
    start_ns: u64,
    column_ns: u64,
    columns: usize,
}

impl Scale {
    fn new(start_ns: u64, now_ns: u64, columns: usize) -> Scale {
        let needed = now_ns.saturating_sub(start_ns) / columns as u64 + 1;
        Scale { start_ns, column_ns: needed.max(COLUMN_NS), columns }
    }

    fn column(&self, at_ns: u64) -> usize {
        (at_ns.saturating_sub(self.start_ns) / self.column_ns) as usize
    }

    fn between(&self, from_ns: u64, to_ns: u64) -> usize {
        self.column(to_ns).saturating_sub(self.column(from_ns))
    }
}

/// `3·····2········4··`: the limit, where it changes.
fn limit_row(record: &Record, scale: &Scale, now_ns: u64) -> String {
    let mut row = vec!['·'; scale.column(now_ns) + 1];
    for change in &record.limits {
        let column = scale.column(change.done_ns);
        let text: Vec<char> = change.limit.to_string().chars().collect();
        row.splice(column..(column + text.len()).min(row.len()), text);
    }
    row.into_iter().take(scale.columns).collect()
}

fn describe(request: &Request, life: &Life, what: &What) -> Option<String> {
    let name = format!("r{:02}  p{}", request.id, request.process + 1);
    let text = match what {
        What::Asked => return None,
        What::Granted { .. } => {
            let cost = if request.cost > 1 { format!(", cost {}", request.cost) } else { String::new() };
            format!("granted after {}{cost}", format_duration(round(life.waited()?)))
        }
        What::Ended(ending) => ending.short().into(),
    };
    Some(format!("{name}  {text}"))
}

/// People read no microseconds.
fn round(time: Duration) -> Duration {
    Duration::from_millis(time.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_widens_when_time_runs_long() {
        let scale = Scale::new(0, 10 * COLUMN_NS, 5);
        assert!(scale.column(10 * COLUMN_NS) < 5);
        let scale = Scale::new(0, COLUMN_NS, 5);
        assert_eq!(scale.column(COLUMN_NS), 1);
    }
}
