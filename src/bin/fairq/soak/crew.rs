//! The worker processes: some die and are replaced, some are stopped for a while.

use std::collections::HashSet;

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::ledger::{Broken, Ledger};
use crate::exit::Failure;
use crate::site::Site;
use crate::workers::{Said, Team, Worker};

pub struct Crew {
    team: Team,
    /// The number of the process at each place; a new process has a new number.
    numbers: Vec<usize>,
    stopped: HashSet<usize>,
    done: HashSet<usize>,
    pub said: Receiver<Said>,
    sender: Sender<Said>,
    site: Site,
    seed: u64,
    name: String,
    started: usize,
}

impl Crew {
    pub fn start(site: &Site, processes: u64, seed: u64, name: &str) -> Result<Crew, Failure> {
        let (sender, said) = unbounded();
        let (team, numbers, done) = (Team(Vec::new()), Vec::new(), HashSet::new());
        let (site, name, stopped) = (site.clone(), name.to_owned(), HashSet::new());
        let mut crew = Crew { team, numbers, stopped, done, said, sender, site, seed, name, started: 0 };
        for _ in 0..processes {
            let worker = crew.hire()?;
            crew.team.0.push(worker);
            crew.numbers.push(crew.started);
        }
        Ok(crew)
    }

    /// Every process asks for other things, the same in every run of a seed.
    fn hire(&mut self) -> Result<Worker, Failure> {
        self.started += 1;
        let seed = self.seed.wrapping_mul(10_007).wrapping_add(self.started as u64) % 1_000_000_007;
        let arguments = ["soak-worker".to_owned(), self.name.clone(), seed.to_string()];
        Worker::start(self.started, &self.site, &arguments, self.sender.clone())
    }

    /// The outer error ends the run, the inner one is a promise.
    pub fn hear(&mut self, said: Said, ledger: &mut Ledger) -> Result<Result<(), Broken>, Failure> {
        let Said { worker, line } = said;
        Ok(match line.as_deref() {
            Some("done") => {
                self.done.insert(worker);
                Ok(())
            }
            Some(line) => ledger.note(worker, line),
            None if !self.numbers.contains(&worker) => {
                ledger.buried(worker);
                Ok(())
            }
            None if self.done.contains(&worker) => Ok(()),
            None => Err(ledger.broken(0, format!("process {worker} ended by itself"))),
        })
    }

    /// kill -9, and another process takes its place.
    pub fn replace(&mut self, place: usize, ledger: &mut Ledger) -> Result<(), Failure> {
        let fresh = self.hire()?;
        let number = std::mem::replace(&mut self.numbers[place], self.started);
        self.stopped.remove(&place);
        let mut killed = std::mem::replace(&mut self.team.0[place], fresh);
        ledger.silenced(number);
        killed.kill()
    }

    pub fn halt(&mut self, place: usize, ledger: &mut Ledger) -> Result<(), Failure> {
        if self.stopped.insert(place) {
            ledger.silenced(self.numbers[place]);
            self.team.0[place].signal(libc::SIGSTOP)?;
        }
        Ok(())
    }

    pub fn resume(&mut self, place: usize, ledger: &mut Ledger) -> Result<(), Failure> {
        if self.stopped.remove(&place) {
            self.team.0[place].signal(libc::SIGCONT)?;
            ledger.resumed(self.numbers[place]);
        }
        Ok(())
    }

    pub fn size(&self) -> usize {
        self.numbers.len()
    }

    pub fn stop(&mut self) {
        self.team.0.iter_mut().for_each(|worker| worker.tell("stop"));
    }

    pub fn all_done(&self) -> bool {
        self.numbers.iter().all(|number| self.done.contains(number))
    }
}

impl Drop for Crew {
    /// Whoever stands still could not hear that it is to end.
    fn drop(&mut self) {
        for place in self.stopped.drain() {
            let _ = self.team.0[place].signal(libc::SIGCONT);
        }
    }
}
