//! The processes of one phase, and what they report.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, select, unbounded};

use super::Bench;
use super::usage::Usage;
use super::worker::Plan;
use crate::audit::Grant;
use crate::exit::{Failure, SOFTWARE};
use crate::signals::Signal;
use crate::workers::{Said, Team, Worker};

pub struct Fleet<'a> {
    workers: Team,
    said: Receiver<Said>,
    signals: &'a Receiver<Signal>,
    /// How long a worker may take for what it was told: asking for many tickets is the longest.
    patience: Duration,
}

impl<'a> Fleet<'a> {
    /// Starts a process for each plan; they are connected when this returns, and wait for `go`.
    pub fn start(bench: &Bench<'a>, plans: &[Plan]) -> Result<Fleet<'a>, Failure> {
        let (sender, said) = unbounded();
        let start = |(index, plan): (usize, &Plan)| Worker::start(index, bench.site, &plan.arguments(), sender.clone());
        let workers = Team(plans.iter().enumerate().map(start).collect::<Result<_, _>>()?);
        let patience = super::patience(plans.iter().map(|plan| plan.tickets).sum());
        let fleet = Fleet { workers, said, signals: bench.signals, patience };
        fleet.hear_from_all("ready")?;
        Ok(fleet)
    }

    /// Sends an order to all, and waits for the word with which each says that it is done.
    pub fn order(&mut self, order: &str, done: &str) -> Result<(), Failure> {
        self.tell(order);
        self.hear_from_all(done)
    }

    /// What the workers use of their machine, all together.
    pub fn usage(&mut self) -> Result<Usage, Failure> {
        self.tell("usage");
        let mut sum = Usage::default();
        for _ in 0..self.workers.0.len() {
            let (_, line) = self.next_line()?;
            let usage: Usage = serde_json::from_str(&line).map_err(std::io::Error::from)?;
            sum = sum + usage;
        }
        Ok(sum)
    }

    /// Stops all and gathers their grants.
    pub fn stop(mut self) -> Result<Vec<Grant>, Failure> {
        self.tell("stop");
        let mut grants = Vec::new();
        let mut done = HashSet::new();
        while done.len() < self.workers.0.len() {
            let Said { worker, line } = self.next_said()?;
            match line.as_deref() {
                Some("done") => {
                    done.insert(worker);
                }
                Some(record) => grants.push(parse_grant(worker, record)?),
                // It may well be gone before another one is done.
                None if done.contains(&worker) => {}
                None => return Err(failed(worker, "ended too early")),
            }
        }
        Ok(grants)
    }

    fn tell(&mut self, order: &str) {
        self.workers.0.iter_mut().for_each(|worker| worker.tell(order));
    }

    fn hear_from_all(&self, word: &str) -> Result<(), Failure> {
        for _ in 0..self.workers.0.len() {
            let (process, line) = self.next_line()?;
            if line != word {
                return Err(failed(process, &format!("said {line:?} instead of {word:?}")));
            }
        }
        Ok(())
    }

    fn next_line(&self) -> Result<(usize, String), Failure> {
        match self.next_said()? {
            Said { worker, line: Some(line) } => Ok((worker, line)),
            Said { worker, line: None } => Err(failed(worker, "ended too early")),
        }
    }

    fn next_said(&self) -> Result<Said, Failure> {
        let deadline = Instant::now() + self.patience;
        select! {
            recv(self.said) -> said => said.map_err(|_| failed(0, "fell silent")),
            recv(self.signals) -> signal => Err(Failure::signalled(signal.map_or(libc::SIGINT, |s| s.number))),
            recv(crossbeam_channel::at(deadline)) -> _ => Err(failed(0, "took too long")),
        }
    }
}

fn parse_grant(process: usize, line: &str) -> Result<Grant, Failure> {
    let numbers: Vec<u64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [fence, order, cost, start_ns, end_ns] => Ok(Grant { fence, order, cost, start_ns, end_ns, process }),
        _ => Err(failed(process, &format!("said {line:?}"))),
    }
}

fn failed(process: usize, what: &str) -> Failure {
    Failure::new(SOFTWARE, format_args!("worker process {process} {what}"))
}
