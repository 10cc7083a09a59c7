//! What the workers said, held against the promises.

use std::collections::{HashMap, VecDeque};
use std::fmt::{self, Display};
use std::time::Duration;

use super::LEASE;
use super::script::LONGEST_WAIT;
use crate::audit::{self, Grant};
use crate::clock;

/// A grant is judged when every line that bears on it has long arrived.
const SETTLED_NS: u64 = 3_000_000_000;
/// Longer than anybody waits: what is older can have been overtaken by nobody who is not in the ledger.
const MEMORY_NS: u64 = 90_000_000_000;
/// After its deadline, on a busy machine, in a process that may have been stopped.
const SLACK_NS: u64 = 30_000_000_000;
/// Of each limiter so many lines are kept to be shown.
const LAST: usize = 60;

/// A promise that was broken, and what happened before.
#[derive(Debug)]
pub struct Broken {
    what: String,
    last: Vec<String>,
}

pub struct Ledger {
    limits: Vec<u64>,
    books: Vec<Book>,
    open: HashMap<(usize, u64), Request>,
    processes: HashMap<usize, Process>,
    asked: u64,
    granted: u64,
    lost: u64,
}

/// What is known of a limiter.
#[derive(Default)]
struct Book {
    grants: Vec<Entry>,
    last: VecDeque<String>,
}

struct Entry {
    grant: Grant,
    /// Its process was stopped while it waited, for so long that it may have lost its place.
    displaced: bool,
}

/// One that has not come to its end; a permit ends with its hold.
struct Request {
    limiter: usize,
    asked_ns: u64,
    wait: Duration,
    cancels: bool,
    /// Of its grant.
    fence: Option<u64>,
}

#[derive(Default)]
struct Process {
    /// Since when it is dead, or stands still.
    silent_since: Option<u64>,
    /// Who asked before had to queue anew.
    displaced_until: u64,
}

impl Ledger {
    pub fn new(limits: &[u64]) -> Ledger {
        Ledger {
            limits: limits.to_vec(),
            books: limits.iter().map(|_| Book::default()).collect(),
            open: HashMap::new(),
            processes: HashMap::new(),
            asked: 0,
            granted: 0,
            lost: 0,
        }
    }

    pub fn counts(&self) -> String {
        let Ledger { asked, granted, lost, .. } = self;
        format!("{asked} asked, {granted} granted, {lost} permits lost to faults")
    }

    /// A process stands still, or is dead, from about now on: whether what it held then is still held, nobody can say.
    pub fn silenced(&mut self, process: usize) {
        let record = self.processes.entry(process).or_default();
        let silent = *record.silent_since.get_or_insert_with(clock::now_ns);
        for book in &mut self.books {
            let open = book.grants.iter_mut().filter(|e| e.grant.process == process && e.grant.end_ns == u64::MAX);
            open.for_each(|entry| entry.grant.end_ns = silent.max(entry.grant.start_ns));
        }
    }

    /// The last words of a dead process have been heard. What it still wanted has no end.
    pub fn buried(&mut self, process: usize) {
        self.open.retain(|(owner, _), _| *owner != process);
        self.processes.remove(&process);
    }

    pub fn resumed(&mut self, process: usize) {
        let now = clock::now_ns();
        let record = self.processes.entry(process).or_default();
        let stood_ns = record.silent_since.take().map_or(0, |since| now - since);
        if stood_ns > LEASE.as_nanos() as u64 / 2 {
            record.displaced_until = now;
        }
    }

    /// Takes down a line; what makes no sense is a broken promise of the soak itself.
    pub fn note(&mut self, process: usize, line: &str) -> Result<(), Broken> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| words.get(i).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let (id, at) = (number(1), number(2));
        match words[0] {
            "asked" => self.asked(process, id, (at, number(3) as usize), (number(4), number(5) == 1), line),
            "granted" => self.granted(process, id, [at, number(3), number(4), number(5)], line)?,
            "failed" => self.failed(process, id, words.get(3).unwrap_or(&""), line)?,
            "ended" => self.ended(process, id, (at, words.get(3) == Some(&"lost")), line),
            _ => return Err(self.broken(0, format!("process {process} said {line:?}"))),
        }
        Ok(())
    }

    fn asked(
        &mut self,
        process: usize,
        id: u64,
        (at, limiter): (u64, usize),
        (wait, cancels): (u64, bool),
        line: &str,
    ) {
        self.asked += 1;
        let wait = Duration::from_millis(wait);
        self.open.insert((process, id), Request { limiter, asked_ns: at, wait, cancels, fence: None });
        self.keep(limiter, process, line);
    }

    fn granted(
        &mut self,
        process: usize,
        id: u64,
        [at, fence, order, cost]: [u64; 4],
        line: &str,
    ) -> Result<(), Broken> {
        let Some(request) = self.open.get_mut(&(process, id)).filter(|request| request.fence.is_none()) else {
            return Err(self.broken(0, format!("process {process}, request {id} ended twice: {line}")));
        };
        request.fence = Some(fence);
        let (limiter, asked_ns) = (request.limiter, request.asked_ns);
        let record = self.processes.entry(process).or_default();
        let displaced = asked_ns < record.displaced_until || record.silent_since.is_some();
        let end_ns = record.silent_since.map_or(u64::MAX, |since| since.max(at));
        let grant = Grant { fence, order, cost, start_ns: at, end_ns, process };
        self.books[limiter].grants.push(Entry { grant, displaced });
        self.granted += 1;
        self.keep(limiter, process, line);
        Ok(())
    }

    fn failed(&mut self, process: usize, id: u64, error: &str, line: &str) -> Result<(), Broken> {
        let Some(request) = self.open.remove(&(process, id)).filter(|request| request.fence.is_none()) else {
            return Err(self.broken(0, format!("process {process}, request {id} ended twice: {line}")));
        };
        self.keep(request.limiter, process, line);
        let impatient = request.wait < LONGEST_WAIT;
        let out_of_time = ["TimedOut", "Unavailable", "Overloaded"].iter().any(|word| error.starts_with(word));
        if request.cancels && error.starts_with("Cancelled") || impatient && out_of_time {
            return Ok(());
        }
        Err(self.broken(request.limiter, format!("process {process}, request {id} failed: {error}")))
    }

    fn ended(&mut self, process: usize, id: u64, (at, lost): (u64, bool), line: &str) {
        let Some(request) = self.open.remove(&(process, id)) else { return };
        self.lost += u64::from(lost);
        let mut grants = self.books[request.limiter].grants.iter_mut().rev();
        if let Some(entry) = grants.find(|entry| Some(entry.grant.fence) == request.fence) {
            entry.grant.end_ns = at.min(entry.grant.end_ns);
        }
        self.keep(request.limiter, process, line);
    }

    /// Holds all that is settled against P1, P2, P5 and P6, and forgets what is old.
    pub fn judge(&mut self) -> Result<(), Broken> {
        let now = clock::now_ns();
        for limiter in 0..self.books.len() {
            self.books[limiter].grants.retain(|entry| entry.grant.end_ns > now.saturating_sub(MEMORY_NS));
            self.judge_book(limiter, now.saturating_sub(SETTLED_NS))?;
        }
        let overdue = |(key, request): (&(usize, u64), &Request)| {
            let due = request.asked_ns + request.wait.as_nanos() as u64 + SLACK_NS;
            (request.fence.is_none() && due < now).then_some((*key, request.limiter))
        };
        match self.open.iter().find_map(overdue) {
            Some(((process, id), limiter)) => {
                Err(self.broken(limiter, format!("process {process}, request {id} did not end by its deadline")))
            }
            None => Ok(()),
        }
    }

    fn judge_book(&self, limiter: usize, settled: u64) -> Result<(), Broken> {
        let entries = || self.books[limiter].grants.iter().filter(|entry| entry.grant.start_ns < settled);
        let all: Vec<Grant> = entries().map(|entry| entry.grant).collect();
        let in_line: Vec<Grant> = entries().filter(|entry| !entry.displaced).map(|entry| entry.grant).collect();
        let most = audit::most_at_once(&all);
        let findings = [
            (most > self.limits[limiter], format!("{most} held at once, the limit is {}", self.limits[limiter])),
            (audit::overtaken(&in_line) > 0, format!("{} overtaken", audit::overtaken(&in_line))),
            (audit::repeated_fences(&all) > 0, format!("{} fences given twice", audit::repeated_fences(&all))),
        ];
        match findings.into_iter().find(|(is_broken, _)| *is_broken) {
            Some((_, what)) => Err(self.broken(limiter, what)),
            None => Ok(()),
        }
    }

    /// P2, when all workers have said their last word: each request has ended, but for those of the dead.
    pub fn judge_exits(&self) -> Result<(), Broken> {
        let is_dead = |process| self.processes.get(process).is_some_and(|record| record.silent_since.is_some());
        match self.open.iter().find(|((process, _), _)| !is_dead(process)) {
            Some(((process, id), request)) => {
                Err(self.broken(request.limiter, format!("process {process}, request {id} never ended")))
            }
            None => Ok(()),
        }
    }

    /// With the last that happened to the limiter.
    pub fn broken(&self, limiter: usize, what: String) -> Broken {
        Broken { what: format!("limiter {limiter}: {what}"), last: self.books[limiter].last.iter().cloned().collect() }
    }

    fn keep(&mut self, limiter: usize, process: usize, line: &str) {
        let last = &mut self.books[limiter].last;
        last.push_back(format!("process {process}: {line}"));
        if last.len() > LAST {
            last.pop_front();
        }
    }
}

impl Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\nthe last that was heard of it:", self.what)?;
        self.last.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What two processes said, with `#` for an early moment that is long settled.
    fn judged(lines: &[(usize, &str)]) -> Result<(), Broken> {
        let mut ledger = Ledger::new(&[1]);
        let base = clock::now_ns() - 2 * SETTLED_NS;
        for (process, line) in lines {
            let (words, at) = (line.split(' ').collect::<Vec<_>>(), base + line_time(line));
            let rest = words[3..].join(" ");
            ledger.note(*process, &format!("{} {} {at} {rest}", words[0], words[1]))?;
        }
        ledger.judge()
    }

    fn line_time(line: &str) -> u64 {
        line.split(' ').nth(2).and_then(|word| word.parse().ok()).expect("a time")
    }

    const ONE: [(usize, &str); 3] = [(1, "asked 1 1 0 60000 0"), (1, "granted 1 2 100 10 1"), (1, "ended 1 5 kept")];

    #[test]
    fn one_after_the_other_is_fine() {
        let other = [(2, "asked 1 1 0 60000 0"), (2, "granted 1 6 101 11 1"), (2, "ended 1 9 kept")];
        judged(&[ONE, other].concat()).unwrap();
    }

    #[test]
    fn two_at_once_are_found() {
        let other = [(2, "asked 1 1 0 60000 0"), (2, "granted 1 4 101 11 1"), (2, "ended 1 9 kept")];
        assert!(judged(&[ONE, other].concat()).unwrap_err().to_string().contains("2 held at once"));
    }

    #[test]
    fn who_was_overtaken_is_found() {
        let other = [(2, "asked 1 1 0 60000 0"), (2, "granted 1 6 101 9 1"), (2, "ended 1 9 kept")];
        assert!(judged(&[ONE, other].concat()).unwrap_err().to_string().contains("overtaken"));
    }

    #[test]
    fn a_second_end_is_found() {
        let again = [(1, "failed 1 7 TimedOut")];
        assert!(judged(&[&ONE[..], &again[..]].concat()).unwrap_err().to_string().contains("ended twice"));
    }

    #[test]
    fn a_patient_one_that_fails_is_found() {
        let failed = [(1, "asked 1 1 0 60000 0"), (1, "failed 1 2 TimedOut")];
        assert!(judged(&failed).unwrap_err().to_string().contains("failed: TimedOut"));
        judged(&[(1, "asked 1 1 0 10 0"), (1, "failed 1 2 TimedOut")]).unwrap();
        judged(&[(1, "asked 1 1 0 60000 1"), (1, "failed 1 2 Cancelled")]).unwrap();
    }
}
