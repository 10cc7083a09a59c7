//! `fairq demo`: a burst of long requests with every kind of outcome, shown as it happens and proven at the end.
//!
//! `plan` says who asks what and when; `worker` does it (in threads, or in processes of its own); `stage` runs the plan
//! and keeps the `record`; `view` shows it; `proof` judges it.

mod plan;
mod proof;
mod record;
mod stage;
mod view;
mod worker;

use std::process::ExitCode;
use std::time::Duration;

use fairq::{Client, Limiter};

use crate::connect;
use crate::exit::{Failure, NO, Outcome, USAGE};
use crate::signals;
use crate::site::Site;
use crate::term;

pub use worker::{Args as WorkerArgs, work};

/// Short, so that the permit of a killed process is free again before the audience has left.
const LEASE: Duration = Duration::from_secs(2);
/// Processes on Redis when not told otherwise.
const PROCESSES: usize = 3;

/// The arguments of `demo`.
#[derive(clap::Args)]
#[command(after_help = "\
Requests are granted in order, cancelled, timed out, rejected; a holder is killed (kill -9, on
Redis with two or more processes) or its permit revoked (in memory, where nothing can be killed
on its own); the limit is lowered and raised meanwhile. The table at the end holds what happened
against what was promised. Exit status 1 if a promise was broken.

Examples:
  fairq demo
  fairq demo --url redis://localhost --processes 4")]
pub struct Args {
    /// How many real processes; needs a Redis server [default: 3 on Redis]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=32))]
    processes: Option<u64>,
    /// One line for each event, also on a terminal
    #[arg(long)]
    plain: bool,
}

pub fn run(site: &Site, args: &Args) -> Outcome {
    let processes = processes(site, args)?;
    let signals = signals::catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
    let client = connect::client(site)?;
    let outcome = perform(&client, site, processes, args, &signals);
    connect::goodbye(&client);
    outcome
}

fn perform(
    client: &Client,
    site: &Site,
    processes: usize,
    args: &Args,
    signals: &crossbeam_channel::Receiver<signals::Signal>,
) -> Outcome {
    let name = format!("demo-{}", std::process::id());
    let limiter = open(client, &name)?;
    let plan = plan::plan(processes);
    term::print(&introduction(client, &name, processes))?;
    let view = view::View::new(&plan, args.plain);
    let crew = stage::Crew::assemble(site, &limiter, processes)?;
    let record = stage::Stage::new(&limiter, &plan, crew, view, signals).run()?;
    let proof = proof::judge(&plan, &record);
    term::print(&proof.render(term::Paint::stdout()))?;
    Ok(ExitCode::from(if proof.holds() { 0 } else { NO }))
}

/// How many processes; 0 stands for threads of this one.
fn processes(site: &Site, args: &Args) -> Result<usize, Failure> {
    match (site.is_memory(), args.processes) {
        (true, Some(_)) => Err(Failure::new(USAGE, "several processes cannot share limiters in memory")
            .hint("give a Redis server by --url redis://HOST, or leave --processes out")),
        (true, None) => Ok(0),
        (false, given) => Ok(given.map_or(PROCESSES, |n| n as usize)),
    }
}

/// Opens the demo's limiter, the same way in every process.
fn open(client: &Client, name: &str) -> Result<Limiter, Failure> {
    let builder = client.limiter(name).limit(plan::LIMIT).max_queue(plan::MAX_QUEUE).lease(LEASE);
    Ok(builder.poll(Duration::from_millis(200)).open()?)
}

fn introduction(client: &Client, name: &str, processes: usize) -> String {
    let place = match processes {
        0 => "the memory of this process".into(),
        1 => format!("{}, one process", client.url()),
        n => format!("{}, {n} processes", client.url()),
    };
    let instead = match processes {
        0 | 1 => {
            "No process can be killed here without ending the demo: an operator revokes a permit instead.\n\
                  With --url redis://HOST --processes 3 one is killed (kill -9).\n\n"
        }
        _ => "",
    };
    format!(
        "Limiter {name} in {place}: limit {}, at most {} in line, lease {}.\n\n{instead}",
        plan::LIMIT,
        plan::MAX_QUEUE,
        fairq::format_duration(LEASE)
    )
}
