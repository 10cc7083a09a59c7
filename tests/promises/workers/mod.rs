//! Real processes, to be killed and stopped: the test binary runs itself again as a worker, which opens a client,
//! obeys the lines on its stdin, and reports what happens as lines on its stdout. It ends with its stdin, and so with
//! the test.
//!
//! | command | report |
//! |---|---|
//! | `acquire LABEL COST WAIT_MS` | `granted`, with order, fence and the labels of what else is valid at that moment; or `failed` |
//! | `flood COUNT` | that many requests labelled by number, each reported as above |
//! | `release LABEL` | `leaving`, then `released`, with `ok` or the error |
//! | `valid LABEL` | `valid`, with `true` or `false` |
//! | `churn THREADS HOLD_MS` | acquire and release in a loop, reported as above |
//! | `mix THREADS HOLD_MS SEED` | the same with cancels, short waits, returns to the line and drops among them (see [`mix`]) |
//! | `order VERB` | `configure`, `revoke` (of a permit of its own) or `leave` (closes the client), not reported |
//! | `end` | ends the loops, then `ended` |
//!
//! What happens to a permit is reported as `event`. Every report has the CLOCK_MONOTONIC nanosecond at which it was
//! so: a grant is reported after it arrived, a release at the moment before it was sent.

// The tests of the promises, those of faults and the unit tests compile this for themselves, and use a part of it.
#![allow(dead_code, unused_imports)]

mod checks;
mod inside;
pub mod mix;

pub use checks::{Hold, check_limit, check_order};

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::support::*;
use parking_lot::Mutex;

/// Tells the worker what it is; nobody else has it.
const SETUP: &str = "FAIRQ_TEST_WORKER";

/// What a worker opens.
#[derive(Clone, Debug)]
pub struct Setup {
    pub url: String,
    pub name: String,
    pub limit: u64,
    pub lease: Duration,
    pub max_hold: Duration,
    /// How long the server may take to answer, and to accept a connection.
    pub io_timeout: Duration,
}

impl Setup {
    pub fn new(url: &str, name: &str, limit: u64, lease: Duration) -> Setup {
        Setup {
            url: url.into(),
            name: name.into(),
            limit,
            lease,
            max_hold: Duration::ZERO,
            io_timeout: Duration::from_secs(2),
        }
    }

    fn encode(&self) -> String {
        let [lease, max_hold, io_timeout] = [self.lease, self.max_hold, self.io_timeout].map(|time| time.as_millis());
        format!("{} {} {} {lease} {max_hold} {io_timeout}", self.url, self.name, self.limit)
    }

    fn decode(text: &str) -> Setup {
        let words: Vec<&str> = text.split(' ').collect();
        let number = |i: usize| words[i].parse().expect("a number");
        let millis = |i: usize| Duration::from_millis(number(i));
        Setup { max_hold: millis(4), io_timeout: millis(5), ..Setup::new(words[0], words[1], number(2), millis(3)) }
    }
}

/// A line that a worker has written.
#[derive(Clone, Debug)]
pub struct Report {
    pub what: String,
    pub at: u64,
    pub label: String,
    pub words: Vec<String>,
}

/// A running worker; killed on drop.
pub struct Worker {
    child: Child,
    stdin: ChildStdin,
    log: Arc<Mutex<Vec<Report>>>,
    /// When it was killed or stopped.
    silenced: Vec<u64>,
}

impl Worker {
    /// Starts a worker and waits until it listens.
    pub fn start(setup: &Setup) -> Worker {
        Worker::start_with(setup, &[])
    }

    /// The same, in an environment that has these besides.
    pub fn start_with(setup: &Setup, environment: &[(&str, &str)]) -> Worker {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", &entry(), "--nocapture"]).env(SETUP, setup.encode());
        command.envs(environment.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start a worker");
        let log = Arc::new(Mutex::new(Vec::new()));
        read_reports(BufReader::new(child.stdout.take().expect("a pipe")), log.clone());
        let stdin = child.stdin.take().expect("a pipe");
        let worker = Worker { child, stdin, log, silenced: Vec::new() };
        worker.wait("ready", "-");
        worker
    }

    pub fn tell(&mut self, command: &str) {
        writeln!(self.stdin, "{command}").expect("tell the worker");
    }

    pub fn reports(&self) -> Vec<Report> {
        self.log.lock().clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.log.lock().iter().filter(|report| report.what == what).count()
    }

    /// The first report of its kind, once it is there.
    #[track_caller]
    pub fn wait(&self, what: &str, label: &str) -> Report {
        let find = || self.log.lock().iter().find(|r| r.what == what && r.label == label).cloned();
        eventually_some(&format!("the worker reports {what} {label}"), SOON, find)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, also to a stopped one.
    pub fn kill(&mut self) {
        self.silenced.push(now());
        self.child.kill().expect("kill the worker");
        self.child.wait().expect("wait for the killed worker");
        self.silenced.push(now()); // for what it was granted while the signal was on its way
    }

    /// SIGSTOP; returns when all its threads stand still.
    pub fn stop(&mut self) {
        self.silenced.push(now());
        self.signal(libc::SIGSTOP);
        eventually("the worker stands still", SOON, || self.stands_still());
        self.silenced.push(now());
    }

    fn stands_still(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        tasks.map_while(Result::ok).all(|task| {
            // `pid (name) STATE ...`; a thread that has ended meanwhile does nothing either.
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        })
    }

    pub fn resume(&mut self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: i32) {
        // SAFETY: plain system call on a child that has not been waited for.
        let result = unsafe { libc::kill(self.child.id() as i32, signal) };
        assert_eq!(result, 0, "signal {signal} to a worker");
    }

    /// What it held, as it saw it; until it was silenced, for what it held then.
    pub fn holds(&self) -> Vec<Hold> {
        checks::holds(&self.reports(), &self.silenced)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The test that is a worker, by the name that the test binary knows it by.
fn entry() -> String {
    let module = module_path!().split_once("::").expect("a module of the test binary").1;
    format!("{module}::worker_entry")
}

/// Several workers with the same set-up.
pub fn start_all(count: usize, setup: &Setup) -> Vec<Worker> {
    (0..count).map(|_| Worker::start(setup)).collect()
}

/// Ends the loops of all workers and waits for it.
pub fn end_all(workers: &mut [Worker]) {
    workers.iter_mut().for_each(|worker| worker.tell("end"));
    workers.iter().for_each(|worker| drop(worker.wait("ended", "-")));
}

/// How many grants they have reported together.
pub fn grants(workers: &[Worker]) -> usize {
    workers.iter().map(|worker| worker.count("granted")).sum()
}

/// Waits for some more grants.
#[track_caller]
pub fn wait_grants(workers: &[Worker], more: usize) {
    let goal = grants(workers) + more;
    eventually("the workers are granted permits", SOON, || grants(workers) >= goal);
}

fn read_reports(lines: impl BufRead + Send + 'static, log: Arc<Mutex<Vec<Report>>>) {
    std::thread::spawn(move || {
        // The test harness writes to the same pipe.
        for line in lines.lines().map_while(Result::ok) {
            if let Some(at) = line.find('@') {
                log.lock().push(parse(&line[at + 1..]));
            }
        }
    });
}

fn parse(line: &str) -> Report {
    let mut words = line.split(' ').map(str::to_owned);
    let mut next = || words.next().unwrap_or_else(|| panic!("a garbled report: {line}"));
    let (what, at, label) = (next(), next(), next());
    Report { what, at: at.parse().expect("a time"), label, words: words.collect() }
}

/// CLOCK_MONOTONIC, which all processes share.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid and exclusively borrowed.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    assert_eq!(status, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn worker_entry() {
    if let Ok(setup) = std::env::var(SETUP) {
        inside::serve(&Setup::decode(&setup));
        std::process::exit(0);
    }
}
