//! `fairq soak`: random work and random faults for as long as one likes, with the promises checked all the time.
//!
//! `worker` is one process at work; `script` says by the seed what is asked and what is broken when; `crew` keeps the
//! processes; `faults` breaks things, some of them by way of the `proxy`; `ledger` notes what the workers report and
//! judges it; `own_server` starts a server where none was given.

mod crew;
mod faults;
mod ledger;
mod own_server;
mod proxy;
mod script;
mod worker;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, select};
use fairq::{Client, Limiter};

use crate::connect;
use crate::exit::{Failure, NO, Outcome, SOFTWARE, by_signal};
use crate::signals::{self, Signal};
use crate::site::Site;
use crate::term;
use crew::Crew;
use faults::Faults;
use ledger::{Broken, Ledger};
use own_server::OwnServer;
use script::{Dice, LIMITS};

pub use worker::{Args as WorkerArgs, work};

/// Short, so that the dead are replaced and forgotten many times in a run.
const LEASE: Duration = Duration::from_secs(3);
/// How often what was reported is judged, and the progress shown.
const TICK: Duration = Duration::from_secs(1);
/// By when everything must have ended that was told to end. No healthy run comes near it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The arguments of `soak`.
#[derive(clap::Args, Clone)]
#[command(after_help = "\
Worker processes acquire, cancel and release at random, over several limiters. From what each
of them saw, by one monotonic clock, it is checked all the time that no limit is exceeded,
nobody is overtaken, no fence is given twice and every request ends once, in time; at the end,
that nothing is left on the server. The first broken promise ends the run, with the last events
of its limiter.

Without --url a redis-server is started for the run, and faults are made: workers are killed
(kill -9) and stopped (SIGSTOP), their connections are cut, killed on the server (CLIENT KILL),
fall silent, get slow or lose replies. A server that was given is left in peace, unless --faults
allows it. The proxy for these faults understands redis:// only; at other addresses only
processes are disturbed.

The same seed makes the same requests and the same faults; what comes of them depends on the
timing as well.

Exit status 1 when a promise was broken; 130 after Ctrl-C, which ends the run with its summary.

Examples:
  fairq soak --minutes 60
  fairq soak --url redis://localhost --processes 8
  fairq soak --url redis://localhost --faults --seed 4711")]
pub struct Args {
    /// How long
    #[arg(long, value_name = "M", default_value_t = 10.0, value_parser = minutes)]
    minutes: f64,
    /// Worker processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(2..=100))]
    processes: u64,
    /// What is random follows from this number [default: another one each time]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Make faults on the server given by --url, too
    #[arg(long)]
    faults: bool,
}

pub fn run(site: &Site, args: &Args) -> Outcome {
    let signals = signals::catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
    let own = if site.is_memory() { Some(OwnServer::start()?) } else { None };
    let site = own.as_ref().map_or(site, OwnServer::site);
    let client = connect::client(site)?;
    let outcome = soak(&Place { site, client: &client, is_own: own.is_some() }, args, &signals);
    connect::goodbye(&client);
    outcome
}

/// Where it takes place.
struct Place<'a> {
    site: &'a Site,
    client: &'a Client,
    /// Started for this run.
    is_own: bool,
}

/// A run under way.
struct Soak<'a> {
    crew: Crew,
    faults: Option<Faults>,
    ledger: Ledger,
    signals: &'a Receiver<Signal>,
    start: Instant,
}

fn soak(place: &Place, args: &Args, signals: &Receiver<Signal>) -> Outcome {
    place.client.check()?;
    let seed = args.seed.map_or_else(random_seed, Ok)?;
    let name = format!("soak-{}", std::process::id());
    let limiters = limiters(place.client, &name)?;
    let with_faults = place.is_own || args.faults;
    let faults = if with_faults { Some(Faults::new(place.site, Dice::new(seed))?) } else { None };
    let workers_site = faults.as_ref().map_or(place.site, Faults::site);
    term::print(&introduction(place.client, with_faults, seed, args))?;
    let crew = Crew::start(workers_site, args.processes, seed, &name)?;
    let ledger = Ledger::new(&LIMITS);
    let mut soak = Soak { crew, faults, ledger, signals, start: Instant::now() };
    let ended = soak.run(Duration::from_secs_f64(args.minutes * 60.0));
    let ended = ended.and_then(|end| soak.finish(&limiters).map(|broken| broken.map_or(end, End::Broken)));
    soak.summary(ended?, &replay(place, seed, args))
}

/// How a run came to its end.
enum End {
    TimeIsUp,
    Signal(i32),
    Broken(Broken),
}

impl Soak<'_> {
    fn run(&mut self, time: Duration) -> Result<End, Failure> {
        let ticks = crossbeam_channel::tick(TICK);
        while self.start.elapsed() < time {
            let next_fault = self.faults.as_ref().map_or(Instant::now() + TICK, Faults::next_at);
            select! {
                recv(self.crew.said) -> said => {
                    let said = said.map_err(|_| Failure::new(SOFTWARE, "all workers fell silent"))?;
                    if let Err(broken) = self.crew.hear(said, &mut self.ledger)? {
                        return Ok(End::Broken(broken));
                    }
                }
                recv(self.signals) -> signal => return Ok(End::Signal(signal.map_or(libc::SIGINT, |s| s.number))),
                recv(ticks) -> _ => {
                    self.progress();
                    if let Err(broken) = self.ledger.judge() {
                        return Ok(End::Broken(broken));
                    }
                }
                recv(crossbeam_channel::at(next_fault)) -> _ => {
                    if let Some(faults) = &mut self.faults {
                        faults.make_due(&mut self.crew, &mut self.ledger)?;
                    }
                }
            }
        }
        Ok(End::TimeIsUp)
    }

    /// Lets everybody end what is under way, and looks whether anything is left.
    fn finish(&mut self, limiters: &[Limiter]) -> Result<Option<Broken>, Failure> {
        if let Some(faults) = &mut self.faults {
            faults.heal(&mut self.crew, &mut self.ledger)?;
        }
        self.crew.stop();
        let deadline = Instant::now() + PATIENCE;
        while !self.crew.all_done() {
            select! {
                recv(self.crew.said) -> said => {
                    let said = said.map_err(|_| Failure::new(SOFTWARE, "all workers fell silent"))?;
                    if let Err(broken) = self.crew.hear(said, &mut self.ledger)? {
                        return Ok(Some(broken));
                    }
                }
                recv(crossbeam_channel::at(deadline)) -> _ => {
                    return Ok(Some(self.ledger.broken(0, "a worker did not end within a minute".into())));
                }
            }
        }
        if let Err(broken) = self.ledger.judge().and_then(|()| self.ledger.judge_exits()) {
            return Ok(Some(broken));
        }
        self.nothing_left(limiters, deadline)
    }

    /// P3: nobody holds or waits, once the leases of the last dead have ended.
    fn nothing_left(&self, limiters: &[Limiter], deadline: Instant) -> Result<Option<Broken>, Failure> {
        for (index, limiter) in limiters.iter().enumerate() {
            loop {
                let status = limiter.status()?;
                if (status.used, status.waiting, status.holders) == (0, 0, 0) {
                    break;
                }
                if Instant::now() > deadline {
                    let what = format!("left behind: use {}, {} in line", status.used, status.waiting);
                    return Ok(Some(self.ledger.broken(index, what)));
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(None)
    }

    fn progress(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K{:>6} s  {}", self.start.elapsed().as_secs(), self.counts());
            let _ = std::io::stderr().flush();
        }
    }

    fn counts(&self) -> String {
        let faults = self.faults.as_ref().map_or_else(String::new, |faults| format!("; faults: {}", faults.counts()));
        format!("{}{faults}", self.ledger.counts())
    }

    fn summary(&self, end: End, replay: &str) -> Outcome {
        let paint = term::Paint::stdout();
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[K");
        }
        let seconds = self.start.elapsed().as_secs();
        let (verdict, status) = match &end {
            End::Broken(broken) => (format!("{}\n{broken}", paint.bad("a promise was broken")), NO),
            End::TimeIsUp => (paint.good("every promise was kept"), 0),
            End::Signal(number) => (paint.good("interrupted; every promise was kept until then"), by_signal(*number)),
        };
        term::print(&format!("{verdict}\n{} after {seconds} s\nagain: {replay}\n", self.counts()))?;
        Ok(ExitCode::from(status))
    }
}

fn introduction(client: &Client, with_faults: bool, seed: u64, args: &Args) -> String {
    let limits = LIMITS.map(|limit| limit.to_string()).join(", ");
    let faults = if with_faults { "with faults" } else { "without faults (--faults allows them)" };
    format!(
        "{} processes, limiters of {limits} on {}, {faults}, for {} minutes; seed {seed}\n",
        args.processes,
        client.url(),
        args.minutes
    )
}

/// Short enough to be typed.
fn random_seed() -> Result<u64, Failure> {
    let number =
        getrandom::u32().map_err(|error| Failure::new(SOFTWARE, format_args!("no random numbers: {error}")))?;
    Ok(u64::from(number) % 1_000_000)
}

/// The command that does the same again. The address is shown as the library shows it: without a password.
fn replay(place: &Place, seed: u64, args: &Args) -> String {
    let place = if place.is_own { String::new() } else { format!(" --url {}", place.client.url()) };
    let faults = if args.faults { " --faults" } else { "" };
    let (minutes, processes) = (args.minutes, args.processes);
    format!("fairq soak{place} --minutes {minutes} --processes {processes} --seed {seed}{faults}")
}

/// Opens the limiters, the same way in every process.
fn limiters(client: &Client, name: &str) -> Result<Vec<Limiter>, Failure> {
    let open = |(index, limit): (usize, &u64)| {
        let builder = client.limiter(&format!("{name}-{index}")).limit(*limit).lease(LEASE);
        Ok(builder.poll(Duration::from_millis(200)).idle(Duration::from_secs(60)).open()?)
    };
    LIMITS.iter().enumerate().map(open).collect()
}

fn minutes(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number of minutes is expected".to_string())?;
    if value > 0.0 && value <= 100_000.0 { Ok(value) } else { Err("expected: above 0".into()) }
}
