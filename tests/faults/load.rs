//! What the faults are put upon: three processes at work behind a proxy, one of which holds a permit all the time.

use std::time::Duration;

use fairq::{Client, Limiter};

use crate::support::*;
use crate::tools::{assert_empty, ms, open};
use crate::workers::mix::check_one_exit;
use crate::workers::*;

pub const NAME: &str = "a";
/// One for the permit that is kept, three for those who come and go.
pub const LIMIT: u64 = 4;
pub const LEASE: Duration = Duration::from_secs(2);
const WORKERS: u64 = 3;
/// Nobody needs longer, however busy the machine; who does has been forgotten.
const NEVER: Duration = Duration::from_secs(60);

/// What a fault may cost.
#[derive(Clone, Copy)]
pub struct Price {
    /// Permits may be lost, because a lease may end: then their owners have to be told.
    pub permits: bool,
    /// Patient requests may fail for these reasons (the beginnings of their errors).
    pub failures: &'static [&'static str],
}

/// Nothing is lost and nobody fails.
pub const NOTHING: Price = Price { permits: false, failures: &[] };
pub const PERMITS: Price = Price { permits: true, failures: &[] };

pub struct Load {
    pub server: Server,
    /// Between the workers and the server.
    pub proxy: Proxy,
    pub workers: Vec<Worker>,
    /// Beside the proxy: sees what is true.
    pub observer: Limiter,
    _client: Client,
    /// Workers that were replaced: they were killed.
    dead: Vec<Worker>,
    /// Process ids of those that were stopped for longer than their lease, and so went to the end of the line.
    pub displaced: Vec<u32>,
    losses: Vec<u64>,
    seeds: u64,
}

impl Load {
    pub fn start(server: Server, lease: Duration) -> Load {
        let proxy = Proxy::to(server.port());
        let (client, observer) = open(&server.url(), NAME, LIMIT, lease);
        let setup = Setup { lease, ..setup(&proxy) };
        let workers = start_all(WORKERS as usize, &setup);
        let (dead, displaced, losses) = (Vec::new(), Vec::new(), Vec::new());
        let mut load = Load { server, proxy, workers, observer, _client: client, dead, displaced, losses, seeds: 0 };
        load.workers[0].tell("acquire keep 1 60000");
        load.workers[0].wait("granted", "keep");
        for worker in 0..load.workers.len() {
            load.set_to_work(worker);
        }
        wait_grants(&load.workers, 30);
        load
    }

    fn set_to_work(&mut self, worker: usize) {
        self.seeds += 1;
        self.workers[worker].tell(&format!("mix 3 8 {}", self.seeds));
    }

    /// Waits until each worker has been granted a permit that it was told of after `since`; how long that took.
    #[track_caller]
    pub fn recovered(&self, since: u64) -> Duration {
        let first = |worker: &Worker| {
            let reports = worker.reports();
            let after = reports.iter().find(|report| report.what == "granted" && report.at > since);
            after.map(|report| report.at - since)
        };
        let all = || self.workers.iter().map(first).collect::<Option<Vec<u64>>>();
        let times = eventually_some("every worker is granted permits again", NEVER, all);
        Duration::from_nanos(times.into_iter().max().expect("a worker"))
    }

    /// Waits for grants to some worker: the fault does not keep everybody from working.
    #[track_caller]
    pub fn goes_on(&self, grants: usize) {
        wait_grants(&self.workers, grants);
    }

    /// The server has just lost state. A grant that was lost with it, before its owner knew, is made once more: its
    /// ticket returns to the original place, and comes after others that were granted before the loss. So these are not
    /// compared. Nobody is admitted for most of a lease after it, and what was granted before is known a little later.
    pub fn has_lost_state(&mut self) {
        self.losses.push(now() + ms(300).as_nanos() as u64);
    }

    /// One more process at work, behind a proxy of its own.
    pub fn join(&mut self, setup: &Setup) -> usize {
        self.workers.push(Worker::start(setup));
        self.set_to_work(self.workers.len() - 1);
        self.workers.len() - 1
    }

    pub fn end_work(&mut self, worker: usize) {
        end_all(&mut self.workers[worker..=worker]);
    }

    pub fn kill(&mut self, worker: usize) -> u64 {
        let mut killed = self.workers.remove(worker);
        let at = now();
        killed.kill();
        self.dead.push(killed);
        at
    }

    /// Waits until nothing of a killed process is left in the limiter.
    #[track_caller]
    pub fn forgotten(&self, pid: u32) {
        let ours =
            |entries: &[fairq::Entry]| entries.iter().any(|entry| entry.description.ends_with(&format!(":{pid}")));
        let clean = || Some(!ours(&self.observer.holders().ok()?) && !ours(&self.observer.waiters().ok()?));
        eventually("the dead are forgotten", NEVER, || clean() == Some(true));
    }

    /// Ends the work and holds what was reported against the promises.
    #[track_caller]
    pub fn finish(mut self, price: Price) {
        let keeper = &mut self.workers[0];
        keeper.tell("release keep");
        let released = keeper.wait("released", "keep");
        assert!(price.permits || released.words[0] == "ok", "the permit that was kept: {released:?}");
        end_all(&mut self.workers);
        self.dump();
        self.check_safety();
        for worker in &self.workers {
            check_one_exit(&worker.reports(), false);
            check_surprises(worker, price);
        }
        self.dead.iter().for_each(|worker| check_one_exit(&worker.reports(), true));
        assert_empty(&self.server, &self.observer);
    }

    /// All that was reported, in order of time, where FAIRQ_FAULTS_DUMP says: for who looks into a failure.
    fn dump(&self) {
        let Some(path) = std::env::var_os("FAIRQ_FAULTS_DUMP") else { return };
        let all = self.workers.iter().chain(&self.dead).flat_map(|worker| {
            let told = worker.reports().into_iter();
            told.map(|r| format!("{} {} {} {} {}", r.at, worker.pid(), r.what, r.label, r.words.join(" ")))
        });
        let mut lines: Vec<String> = all.collect();
        lines.sort_unstable();
        std::fs::write(path, lines.join("\n")).expect("write the reports");
    }

    fn check_safety(&self) {
        let all: Vec<&Worker> = self.workers.iter().chain(&self.dead).collect();
        check_limit(&all.iter().flat_map(|worker| worker.holds()).collect::<Vec<_>>(), LIMIT as usize);
        let in_line = all.iter().filter(|worker| !self.displaced.contains(&worker.pid()));
        let holds: Vec<Hold> = in_line.flat_map(|worker| worker.holds()).collect();
        // What was put back returns to its old place, with a newer fence.
        let mut comparable: Vec<Hold> = holds.into_iter().filter(|hold| !hold.label.ends_with('\'')).collect();
        comparable.sort_by_key(|hold| hold.from);
        let era = |hold: &Hold| self.losses.partition_point(|loss| *loss <= hold.from);
        comparable.chunk_by(|one, next| era(one) == era(next)).for_each(check_order);
    }
}

/// How a worker of the matrix opens its client.
pub fn setup(proxy: &Proxy) -> Setup {
    Setup { io_timeout: ms(700), ..Setup::new(&proxy.url(), NAME, LIMIT, LEASE) }
}

/// Nobody failed, lost a permit or was told something odd, but for what the fault may cost.
#[track_caller]
fn check_surprises(worker: &Worker, price: Price) {
    for report in worker.reports() {
        let word = report.words.first().map_or("", String::as_str);
        let fine = match report.what.as_str() {
            "failed" => expected_failure(&report.label, word, price),
            "released" => price.permits || !word.starts_with("Stale") && !word.starts_with("PermitLost"),
            "event" => price.permits || !word.starts_with("Lost"),
            _ => true,
        };
        assert!(fine, "{report:?}");
    }
}

fn expected_failure(label: &str, error: &str, price: Price) -> bool {
    let own = match label.chars().next() {
        Some('s') => &["TimedOut", "Unavailable", "Overloaded"][..],
        Some('x') => &["Cancelled"],
        _ => &[],
    };
    own.iter().chain(price.failures).any(|beginning| error.starts_with(beginning))
        || price.permits && label.ends_with('\'') && (error.starts_with("PermitLost") || error.starts_with("Stale"))
}
