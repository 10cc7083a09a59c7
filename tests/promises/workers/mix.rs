//! A loop of requests of every kind, each reported from its beginning to its one end.
//!
//! The first letter of a label says what kind it is: `p` patient, `s` short of patience, `x` cancelled, `b` put back into
//! the line once it was held (its second life has a label of its own, with a `'`), `d` dropped instead of released.
//! `asked` is reported before each, with the longest time it may wait in milliseconds; `late` when it ended much later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairq::*;

use super::inside::{release, report_events, say, say_granted};
use super::{Report, now};

const PATIENT: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(30);
/// How much later than its deadline a request may end on a machine as busy as this one may be.
const SLACK: Duration = Duration::from_secs(5);

pub struct Mixer<'a> {
    limiter: &'a Limiter,
    hold: Duration,
    seed: u64,
    dice: u64,
    count: u64,
}

impl<'a> Mixer<'a> {
    pub fn new(limiter: &'a Limiter, hold: Duration, seed: u64) -> Mixer<'a> {
        Mixer { limiter, hold, seed, dice: seed, count: 0 }
    }

    pub fn run(mut self, over: &AtomicBool) {
        while !over.load(Ordering::SeqCst) {
            match self.roll(10) {
                0 => self.short(),
                1 => self.cancelled(),
                2 => self.put_back(),
                3 => self.dropped(),
                _ => self.patient(),
            }
        }
    }

    fn patient(&mut self) {
        let label = self.label('p');
        if let Some(permit) = self.acquire(&label, PATIENT) {
            thread::sleep(self.hold); // the guarded work
            release(&label, permit);
        }
    }

    fn short(&mut self) {
        let label = self.label('s');
        if let Some(permit) = self.acquire(&label, SHORT) {
            release(&label, permit);
        }
    }

    /// Given up from another thread at some moment: before, during or after the grant.
    fn cancelled(&mut self) {
        let label = self.label('x');
        let (ticket, after) = (self.limiter.ticket(), Duration::from_micros(self.roll(5_000)));
        let permit = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(after);
                ticket.cancel();
            });
            self.watch(&label, PATIENT, |limiter, request| limiter.acquire_with(&ticket, request))
        });
        if let Some(permit) = permit {
            release(&label, permit);
        }
    }

    fn put_back(&mut self) {
        let label = self.label('b');
        let Some(permit) = self.acquire(&label, PATIENT) else { return };
        say("released", now(), &label, "back");
        let again = format!("{label}'");
        let permit = self.watch(&again, PATIENT, |_, _| permit.put_back(PATIENT));
        if let Some(permit) = permit {
            release(&again, permit);
        }
    }

    fn dropped(&mut self) {
        let label = self.label('d');
        if let Some(permit) = self.acquire(&label, PATIENT) {
            say("released", now(), &label, "dropped");
            drop(permit);
        }
    }

    fn acquire(&self, label: &str, wait: Duration) -> Option<Permit> {
        self.watch(label, wait, Limiter::acquire)
    }

    /// Asks, and reports how it ended.
    fn watch(
        &self,
        label: &str,
        wait: Duration,
        ask: impl FnOnce(&Limiter, &Request) -> Result<Permit, Error>,
    ) -> Option<Permit> {
        say("asked", now(), label, wait.as_millis());
        let start = Instant::now();
        let result = ask(self.limiter, &Request::new().max_wait(wait).label(label));
        if start.elapsed() > wait + SLACK {
            say("late", now(), label, start.elapsed().as_millis());
        }
        match result {
            Ok(permit) => {
                say_granted(label, &permit, &[]);
                report_events(label.to_owned(), &permit);
                Some(permit)
            }
            Err(error) => {
                say("failed", now(), label, format!("{error:?}").replace(' ', ""));
                None
            }
        }
    }

    fn label(&mut self, kind: char) -> String {
        self.count += 1;
        format!("{kind}{}.{}", self.seed, self.count)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }
}

/// P2: what was asked has ended once; or never, if its process was killed.
#[track_caller]
pub fn check_one_exit(reports: &[Report], was_killed: bool) {
    let mut ends: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
    for report in reports {
        match report.what.as_str() {
            "asked" => drop(ends.insert(&report.label, 0)),
            "granted" | "failed" => drop(ends.get_mut(report.label.as_str()).map(|count| *count += 1)),
            "late" => panic!("ended long after its deadline: {report:?}"),
            _ => {}
        }
    }
    let wrong = ends.iter().find(|(_, count)| if was_killed { **count > 1 } else { **count != 1 });
    assert!(wrong.is_none(), "(label, exits) {wrong:?}");
}
