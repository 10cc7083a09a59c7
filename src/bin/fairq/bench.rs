//! `fairq bench`: what the limit costs on this machine with this server, beside what the server alone can do.
//!
//! Absolute times say more about the machine than about fairq. So every figure with a target is a ratio to a floor
//! measured in the same run: the same server, the same load, the same minute.

mod fleet;
mod floors;
mod handoff;
mod idle;
mod load;
mod report;
mod worker;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use crossbeam_channel::Receiver;
use fairq::{Client, Limiter, parse_duration};

use crate::connect;
use crate::exit::{Failure, NO, Outcome, USAGE};
use crate::server::Server;
use crate::signals::{self, Signal};
use crate::site::Site;
use crate::term;

pub use worker::{Args as WorkerArgs, work};

/// The arguments of `bench`.
#[derive(clap::Args, Clone)]
#[command(after_help = "\
Starts real processes against a real server; best one that nobody else is using, since the
server's own counters are read.

Exit status 1 when the limit was exceeded or somebody was overtaken. A missed cost target is
shown, but is no error: it depends on the machine.

Examples:
  fairq bench --url redis://localhost
  fairq bench --url redis://localhost --processes 4 --waiters 10000 --seconds 10
  fairq bench --url redis://localhost --json > bench.json")]
pub struct Args {
    /// Processes that compete
    #[arg(long, value_name = "P", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=200))]
    processes: u64,
    /// Requests kept waiting, in all
    #[arg(long, value_name = "W", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    waiters: u64,
    /// The limit that they compete for
    #[arg(long, value_name = "L", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Length of the main measurement
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds)]
    seconds: f64,
    /// How long each permit is held
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = parse_duration)]
    hold: Duration,
    /// Requests waiting in the measurement of idle ones
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// What every phase needs.
struct Bench<'a> {
    site: &'a Site,
    client: &'a Client,
    server: Server,
    args: &'a Args,
    signals: &'a Receiver<Signal>,
}

pub fn run(site: &Site, args: &Args) -> Outcome {
    let site = site.must_be_shared()?;
    if args.waiters < args.processes {
        return Err(Failure::new(
            USAGE,
            "--waiters must be at least --processes: each process keeps one or more waiting",
        ));
    }
    let signals = signals::catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
    let client = connect::client(site)?;
    let outcome = measure(site, &client, args, &signals);
    connect::goodbye(&client);
    let report = outcome?;
    if args.json {
        term::print_json(&report)?;
    } else {
        term::print(&report.render(term::Paint::stdout()))?;
    }
    Ok(ExitCode::from(if report.promises_kept() { 0 } else { NO }))
}

fn measure(site: &Site, client: &Client, args: &Args, signals: &Receiver<Signal>) -> Result<report::Report, Failure> {
    let server_info = client.check()?;
    let server = Server::connect(site)?;
    let mut bench = Bench { site, client, server, args, signals };
    let floors = bench.phase("floors: what this server does without fairq", floors::measure)?;
    let uncontended = bench.phase("one thread, nobody else", floors::uncontended)?;
    let handoff = bench.phase("hand-off between two processes", handoff::measure)?;
    let load = bench.phase("saturated limiter", load::measure)?;
    let idle = bench.phase("idle waiters", idle::measure)?;
    let server = format!("{} {}", server_info.kind, server_info.version);
    Ok(report::Report::new(server, args, floors, uncontended, handoff, load, idle))
}

impl Bench<'_> {
    fn phase<T>(&mut self, what: &str, phase: fn(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        if std::io::stderr().is_terminal() {
            eprintln!("measuring: {what}");
        }
        phase(self)
    }

    /// A limiter of this run's own.
    fn limiter(&self, phase: &str, limit: u64) -> Result<Limiter, Failure> {
        open(self.client, &self.name(phase), limit)
    }

    fn name(&self, phase: &str) -> String {
        format!("bench-{}-{phase}", std::process::id())
    }

    fn sleep(&self, duration: Duration) -> Result<(), Failure> {
        signals::sleep(self.signals, duration)
    }

    /// The length of a side measurement: a short run is short in all its parts.
    fn seconds_up_to(&self, most: f64) -> Duration {
        Duration::from_secs_f64(self.args.seconds.min(most))
    }

    /// Waits until so many stand in line.
    fn await_waiting(&self, limiter: &Limiter, n: u64) -> Result<(), Failure> {
        for _ in 0..3_000 {
            if limiter.status()?.waiting >= n {
                return Ok(());
            }
            self.sleep(Duration::from_millis(20))?;
        }
        Err(Failure::new(crate::exit::SOFTWARE, format_args!("{n} requests did not get into line within a minute")))
    }
}

/// Opens a limiter of the bench, the same way in every process.
fn open(client: &Client, name: &str, limit: u64) -> Result<Limiter, Failure> {
    Ok(client.limiter(name).limit(limit).max_queue(10_000_000).lease(Duration::from_secs(10)).open()?)
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number of seconds is expected".to_string())?;
    if value > 0.0 && value <= 3600.0 { Ok(value) } else { Err("expected: above 0, up to 3600".into()) }
}
