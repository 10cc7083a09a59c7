//! Processes at work on a server, what is done to them, and the history that comes of it.

use std::fmt;
use std::time::Duration;

use super::RECORD;
use super::entry::Entry;
use super::oracle::Oracle;
use super::replay::Replay;
use crate::store::conformance::{State, state_of};
use crate::store::redis::test_access::keys;
use crate::support::*;
use crate::workers::{Report, Setup, Worker, end_all, grants, now};

const NAME: &str = "history";
const LIMIT: u64 = 4;
const LEASE: Duration = Duration::from_secs(2);
const PROCESSES: usize = 3;
const THREADS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Faults {
    None,
    All,
}

pub(super) struct Scene {
    server: Server,
    /// Of all scripts: none, or `FROM=>TO`.
    mistake: String,
    workers: Vec<Worker>,
    killed: Vec<Worker>,
    /// Who has asked for a permit of a higher cost, and as what.
    wide: Vec<(u32, String)>,
    rows: Vec<Entry>,
}

/// What came of it.
pub(super) struct History {
    pub rows: Vec<Entry>,
    /// On the server, when everything had ended.
    left: Option<State>,
    /// What each process said, and whether it was killed.
    reports: Vec<(Vec<Report>, bool)>,
}

impl Scene {
    pub(super) fn start(flavor: Flavor, mistake: &str) -> Scene {
        let server = Server::start(flavor);
        let mistake = mistake.to_owned();
        let (workers, killed, wide, rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut scene = Scene { server, mistake, workers, killed, wide, rows };
        (0..PROCESSES).for_each(|_| scene.join());
        scene
    }

    fn join(&mut self) {
        let setup = Setup::new(&self.server.url(), NAME, LIMIT, LEASE);
        let mut worker = Worker::start_with(&setup, &[(RECORD, &self.mistake)]);
        worker.tell(&format!("mix {THREADS} 3 {}", self.workers.len() + self.killed.len()));
        self.workers.push(worker);
    }

    /// Works for about so long, and ends.
    pub(super) fn run(mut self, time: Duration, faults: Faults) -> History {
        let until = now() + time.as_nanos() as u64;
        for turn in 0.. {
            if faults == Faults::All {
                self.harm(turn);
            }
            self.ask_wide(turn);
            self.wait_grants(30);
            self.collect(&[], &[]);
            if now() >= until {
                break;
            }
        }
        self.end()
    }

    /// One more request for most of the limit.
    fn ask_wide(&mut self, turn: usize) {
        let (worker, label) = (&mut self.workers[turn % PROCESSES], format!("w{turn}"));
        worker.tell(&format!("acquire {label} {} 60000", LIMIT - 1));
        self.wide.push((worker.pid(), label));
    }

    /// Releases those that were granted, since nobody else would.
    fn release_wide(&mut self) {
        let workers = &mut self.workers;
        self.wide.retain(|(pid, label)| {
            let Some(worker) = workers.iter_mut().find(|worker| worker.pid() == *pid) else { return false };
            let is_granted = worker.reports().iter().any(|report| report.what == "granted" && report.label == *label);
            if is_granted {
                worker.tell(&format!("release {label}"));
            }
            !is_granted
        });
    }

    fn wait_grants(&mut self, more: usize) {
        let goal = grants(&self.workers) + more;
        eventually("the workers are granted permits", SOON, || {
            self.release_wide();
            grants(&self.workers) >= goal
        });
    }

    fn harm(&mut self, turn: usize) {
        match turn % 10 {
            0 => {
                let mut victim = self.workers.remove(turn / 10 % PROCESSES);
                victim.kill();
                self.killed.push(victim);
                self.join();
            }
            1 => self.command("CLIENT KILL TYPE normal SKIPME yes"),
            2 => self.command("CLIENT KILL TYPE pubsub"),
            3 => {
                self.server.pause();
                std::thread::sleep(LEASE / 4 * (turn as u32 / 10 % 4)); // the fault: it stands still for so long
                self.server.resume();
            }
            4 => self.command("SCRIPT FLUSH"),
            5 => self.collect(&["FLUSHALL"], &["script", "-flush"]),
            6 => self.workers[0].tell("order revoke"),
            7 => self.command("CLIENT KILL TYPE normal SKIPME yes"),
            8 => {
                let place = 1 + turn / 10 % 4;
                let key = keys(NAME)[place - 1].clone();
                self.collect(&["DEL", &key], &["script", "-delete", "a", &place.to_string()]);
            }
            _ => self.workers[1].tell("order configure"),
        }
    }

    fn command(&self, command: &str) {
        let (verb, args) = command.split_once(' ').expect("a command with arguments");
        let args: Vec<&str> = args.split(' ').collect();
        redis::cmd(verb).arg(args).exec(&mut self.server.conn()).unwrap_or_else(|error| panic!("{command}: {error}"));
    }

    /// Takes what was recorded, and gives a command in the same step, which `row` tells of in the history.
    fn collect(&mut self, command: &[&str], row: &[&str]) {
        let mut steps = redis::pipe();
        steps.atomic().cmd("XRANGE").arg("history").arg("-").arg("+");
        steps.cmd("DEL").arg("history").ignore();
        if let Some((verb, args)) = command.split_first() {
            steps.cmd(verb).arg(args).ignore();
        }
        let (recorded,): (Vec<(String, Vec<String>)>,) = steps.query(&mut self.server.conn()).expect("the history");
        self.rows.extend(recorded.iter().map(|(_, words)| Entry::of(words)));
        if !row.is_empty() {
            self.rows.push(Entry::of(&row.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()));
        }
    }

    fn end(mut self) -> History {
        let instances = |at_most: usize| {
            let are = || redis::cmd("ZCARD").arg(&keys(NAME)[3]).query::<usize>(&mut self.server.conn());
            // One more is the permanent member.
            eventually("those who are gone have left", SOON, || are().expect("a sorted set") <= at_most + 1);
        };
        instances(self.workers.len()); // the dead are for the living to notice
        end_all(&mut self.workers);
        for left in (0..self.workers.len()).rev() {
            self.workers[left].tell("order leave"); // takes along whatever it has
            instances(left);
        }
        self.collect(&[], &[]);
        let left = state_of(&self.server, NAME);
        let living = self.workers.iter().map(|worker| (worker.reports(), false));
        let killed = self.killed.iter().map(|worker| (worker.reports(), true));
        History { left, reports: living.chain(killed).collect(), rows: self.rows }
    }
}

impl History {
    /// `Err`: what the model would have done otherwise.
    pub(super) fn replay(&self) -> Result<(), String> {
        let (mut oracle, mut replay) = (Oracle::new(LIMIT), Replay::new());
        self.each(|entry| {
            replay.step(entry, &oracle)?;
            // What it finds wrong is told by `judge`.
            let _ = oracle.step(entry);
            Ok(())
        })?;
        match self.left == replay.state() {
            true => Ok(()),
            false => Err(format!("in the end the server had\n{:?}\nand the model\n{:?}", self.left, replay.state())),
        }
    }

    /// `Err`: which promise was broken, whatever the model says.
    pub(super) fn judge(&self) -> Result<(), String> {
        let mut oracle = Oracle::new(LIMIT);
        self.each(|entry| oracle.step(entry))?;
        if !oracle.is_empty() {
            return Err("P3: something is left".into());
        }
        self.reports.iter().try_for_each(|(reports, killed)| check_reports(reports, *killed, &oracle))
    }

    fn each(&self, mut step: impl FnMut(&Entry) -> Result<(), String>) -> Result<(), String> {
        let place = |at: usize, entry| format!("row {at} of {}: {entry:?}", self.rows.len());
        let mut rows = self.rows.iter().enumerate();
        rows.try_for_each(|(at, entry)| step(entry).map_err(|wrong| format!("{wrong}\n{}", place(at, entry))))
    }
}

/// What a process was told is what the server did.
fn check_reports(reports: &[Report], killed: bool, oracle: &Oracle) -> Result<(), String> {
    crate::workers::mix::check_one_exit(reports, killed);
    for report in reports.iter().filter(|report| report.what == "granted") {
        let [order, fence] = [0, 1].map(|i| super::entry::number(&report.words[i]));
        let label = report.label.trim_end_matches('\''); // put back, a ticket keeps its own
        let right = |grant: &super::oracle::Grant| grant.label == label && grant.order == order;
        if !oracle.grants.get(&fence).is_some_and(right) {
            return Err(format!("the server has not given {report:?}, but {:?}", oracle.grants.get(&fence)));
        }
    }
    Ok(())
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut calls: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
        self.rows.iter().for_each(|row| *calls.entry(&row.script).or_default() += 1);
        write!(f, "{} rows: {calls:?}", self.rows.len())
    }
}
