//! The command `fairq`: shows what a fair limit does, runs commands under a permit, looks at limiters and changes
//! them, examines a server and measures.
//!
//! One file (or folder) for each subcommand; `exit`, `site`, `connect`, `signals`, `term`, `clock` and `audit` serve several.

mod audit;
mod bench;
mod clock;
mod connect;
mod demo;
mod doctor;
mod exit;
mod operate;
mod run;
mod server;
mod show;
mod signals;
mod site;
mod soak;
mod term;
mod workers;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use crate::exit::Outcome;
use crate::site::{Flags, Site};

const AFTER_HELP: &str = "\
Examples:
  fairq demo                                        see it work, without a server
  export FAIRQ_URL=redis://localhost                what all the others need
  fairq run --name gpu --limit 4 -- ./train.sh      at most four at once, over all machines
  fairq status gpu                                  who holds, who waits, how long
  fairq limit gpu 8                                 admit more, without a restart
  fairq doctor                                      is this server fit for it?

Exit statuses: 0 done; 1 the answer is no (a promise broken, something to change, no such ticket);
64 wrong usage; 69 the server cannot be reached; 70 a fault inside fairq; 130 interrupted.
`fairq run` has more: see `fairq run --help`.

FAIRQ_LOG=error|warn|info|debug|trace sets what is logged to stderr.";

/// A cluster-wide limit on how many run at once, first come, first served.
#[derive(Parser)]
#[command(name = "fairq", version, about, after_help = AFTER_HELP, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    site: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// See the fair limit at work in under 15 seconds, in memory or with real processes on Redis
    Demo(demo::Args),
    /// Run a command as soon as a permit is free, and give the permit back when it ends
    Run(run::Args),
    /// Show one limiter: its limit, who holds and waits, how long a newcomer would wait
    Status(show::StatusArgs),
    /// List the limiters on the server
    List(show::ListArgs),
    /// Show who holds permits, in the order of their fences
    Holders(show::EntriesArgs),
    /// Show who waits, in the order of the line
    Waiters(show::EntriesArgs),
    /// Change a limit while it is in use, above what the services declare
    Limit(operate::LimitArgs),
    /// Admit nobody until `resume`; who waits keeps the place in line
    Pause(operate::NameArgs),
    /// Admit requests again after `pause`
    Resume(operate::NameArgs),
    /// Take back a permit, or a place in line
    Revoke(operate::RevokeArgs),
    /// Examine a server, and say what to change
    Doctor(doctor::Args),
    /// Measure what the limit costs here, beside the floors of this machine
    Bench(bench::Args),
    /// Work and break things at random for as long as you like, and check the promises all the time
    Soak(soak::Args),
    /// One process of `demo`.
    #[command(hide = true)]
    DemoWorker(demo::WorkerArgs),
    /// One process of `bench`.
    #[command(hide = true)]
    BenchWorker(bench::WorkerArgs),
    /// One process of `soak`.
    #[command(hide = true)]
    SoakWorker(soak::WorkerArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(problem) => return exit::usage(&problem),
    };
    log_to_stderr(&cli.command);
    match dispatch(cli) {
        Ok(status) => status,
        Err(failure) => failure.report(),
    }
}

fn dispatch(cli: Cli) -> Outcome {
    let site = &Site::given(cli.site);
    match cli.command {
        Command::Demo(args) => demo::run(site, &args),
        Command::Run(args) => run::run(site, &args),
        Command::Status(args) => show::status(site, &args),
        Command::List(args) => show::list(site, &args),
        Command::Holders(args) => show::holders(site, &args),
        Command::Waiters(args) => show::waiters(site, &args),
        Command::Limit(args) => operate::limit(site, &args),
        Command::Pause(args) => operate::pause(site, &args),
        Command::Resume(args) => operate::resume(site, &args),
        Command::Revoke(args) => operate::revoke(site, &args),
        Command::Doctor(args) => doctor::run(site, &args),
        Command::Bench(args) => bench::run(site, &args),
        Command::Soak(args) => soak::run(site, &args),
        Command::DemoWorker(args) => demo::work(site, &args),
        Command::BenchWorker(args) => bench::work(site, &args),
        Command::SoakWorker(args) => soak::work(site, &args),
    }
}

/// The library's warnings (a lost connection, another limit declared elsewhere) go to stderr. Some subcommands have
/// their own way to tell what becomes of permits, and keep to errors.
fn log_to_stderr(command: &Command) {
    let usual = match command {
        Command::Demo(_) | Command::DemoWorker(_) | Command::BenchWorker(_) | Command::Run(_) => LevelFilter::ERROR,
        Command::Soak(_) | Command::SoakWorker(_) => LevelFilter::OFF,
        _ => LevelFilter::WARN,
    };
    let level = std::env::var("FAIRQ_LOG").ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let subscriber = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr);
    let subscriber = subscriber.with_target(false).without_time().with_ansi(std::io::stderr().is_terminal());
    // Only a second subscriber would make this fail; there is none.
    let _ = subscriber.try_init();
}
