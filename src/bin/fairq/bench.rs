//! `fairq bench`: what the limit costs on this machine with this server, beside what the server alone can do.
//!
//! Absolute times say more about the machine than about fairq. So every figure with a target is a ratio to a floor
//! measured in the same run: the same server, the same load, the same minute.

mod cancels;
mod fleet;
mod floors;
mod handoff;
mod idle;
mod line;
mod load;
mod names;
mod processes;
mod report;
mod scale;
mod targets;
mod threads;
mod usage;
mod worker;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

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

Parts, for --only:
  targets    the figures that have targets, beside the floors of this machine (15 s)
  line       server time of each verb with 10 to --longest in line, which is simulated
  threads    1 to 64 threads of one client, and as many clients (40 s)
  processes  1 to 16 processes on the saturated limiter (30 s)
  costs      requests of cost 1, up to 4, up to 16 (15 s)
  names      1, 100, … up to --names limiters on one client, and their heartbeats (40 s)
  cancels    --idle requests that are cancelled at once
  scale      --instances clients with --waiters requests in --processes processes
  all        all of these, one after the other

Examples:
  fairq bench --url redis://localhost
  fairq bench --url redis://localhost --processes 4 --waiters 10000 --seconds 10
  fairq bench --url redis://localhost --only line --longest 1000000
  fairq bench --url redis://localhost --only scale --processes 4 --instances 1000 --waiters 1000000
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
    /// What to measure, of the parts below
    #[arg(
        long,
        value_name = "PART,…",
        value_enum,
        value_delimiter = ',',
        default_value = "targets",
        hide_possible_values = true
    )]
    only: Vec<Part>,
    /// The longest line of the part `line`
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    longest: u64,
    /// The most limiters of the part `names`
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    names: u64,
    /// Clients of the part `scale`, in all processes together
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    instances: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Targets,
    Line,
    Threads,
    Processes,
    Costs,
    Names,
    Cancels,
    Scale,
    All,
}

impl Args {
    fn wants(&self, part: Part) -> bool {
        self.only.contains(&part) || self.only.contains(&Part::All)
    }
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
    report::Report::measure(&mut bench, format!("{} {}", server_info.kind, server_info.version))
}

impl<'a> Bench<'a> {
    fn phase<T>(&mut self, what: &str, phase: fn(&mut Bench<'a>) -> Result<T, Failure>) -> Result<T, Failure> {
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

    /// For what takes long without a sleep.
    fn interrupted(&self) -> Result<(), Failure> {
        self.signals.try_recv().map_or(Ok(()), |signal| Err(Failure::signalled(signal.number)))
    }

    /// The length of a side measurement: a short run is short in all its parts.
    fn seconds_up_to(&self, most: f64) -> Duration {
        Duration::from_secs_f64(self.args.seconds.min(most))
    }

    /// Waits until so many stand in line.
    fn await_waiting(&self, limiter: &Limiter, n: u64) -> Result<(), Failure> {
        let patience = patience(n);
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if limiter.status()?.waiting >= n {
                return Ok(());
            }
            self.sleep(Duration::from_millis(20))?;
        }
        let seconds = patience.as_secs();
        Err(Failure::new(crate::exit::SOFTWARE, format_args!("{n} requests did not get into line within {seconds} s")))
    }
}

/// How long so many may take to get into line.
fn patience(tickets: u64) -> Duration {
    Duration::from_secs(60 + tickets / 1_000)
}

/// Opens a limiter of the bench, the same way in every process.
fn open(client: &Client, name: &str, limit: u64) -> Result<Limiter, Failure> {
    Ok(client.limiter(name).limit(limit).max_queue(10_000_000).lease(Duration::from_secs(10)).open()?)
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number of seconds is expected".to_string())?;
    if value > 0.0 && value <= 3600.0 { Ok(value) } else { Err("expected: above 0, up to 3600".into()) }
}

fn us(value: f64) -> String {
    format!("{value:.1}us")
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn bytes(value: Option<f64>) -> String {
    value.map_or_else(|| "unknown".into(), |value| format!("{value:.0} bytes"))
}

fn or_unknown(value: Option<u64>) -> String {
    value.map_or_else(|| "unknown".into(), |value| value.to_string())
}
