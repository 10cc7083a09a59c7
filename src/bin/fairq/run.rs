//! `fairq run`: any command under a permit, as `flock` or GNU `sem` do it, but over a cluster and in fair order.

mod command;
mod waiting;

use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use crossbeam_channel::Receiver;
use fairq::{Client, Limiter, Permit, Request, parse_duration};

use crate::connect;
use crate::exit::{CANNOT_RUN, Failure, NOT_FOUND, Outcome};
use crate::signals::{self, Signal};
use crate::site::Site;

const AFTER_HELP: &str = "\
Examples:
  fairq run --name gpu --limit 4 -- ./train.sh --epochs 3
  fairq run --name reports --limit 2 --max-wait 5m --label nightly -- make report
  fairq run --name deploy --limit 1 --on-lost kill -- ./deploy.sh

The command finds FAIRQ_FENCE and FAIRQ_TICKET in its environment. The fence grows with every
permit of this name: pass it on to whatever you write to, and let that refuse a smaller one than
it has seen.

TERM, INT, HUP, QUIT, USR1 and USR2 are forwarded to the command. While waiting in line, the first
four end the wait.

A permit is lost when an operator revokes it, or when the server could not be reached for a lease.
--on-lost warn (the default) says so on stderr; --on-lost kill sends TERM to the command, also when
the server merely cannot confirm the permit any longer, and KILL after 5 s.

Exit statuses: those of the command (128+n when signal n ended it), and
   64 wrong usage, unknown limiter, or a cost above the limit
   69 the server cannot be reached
   75 waited for --max-wait
   76 the line is full
   77 the permit was lost and the command was stopped (--on-lost kill), or the place in line was
      revoked
  126 the command cannot be run
  127 the command was not found
  130 Ctrl-C while waiting (128+n for another signal)";

/// The arguments of `run`.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The limiter: all that use the same name share its permits
    #[arg(long)]
    name: String,
    /// How many permits there are; without it, the limiter must exist already
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// How many permits this command takes
    #[arg(long, value_name = "C", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    cost: u64,
    /// How long to wait in line (`forever`, 30s, 1h30m); the limiter's own maximum when left out
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    max_wait: Option<Duration>,
    /// How soon the permit is free again after this machine died
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    lease: Option<Duration>,
    /// How many may wait in line; a new one is refused (76)
    #[arg(long, value_name = "N")]
    max_queue: Option<u64>,
    /// What operators see beside the ticket
    #[arg(long, default_value = "")]
    label: String,
    /// What to do when the permit is lost while the command runs
    #[arg(long, value_enum, default_value_t = OnLost::Warn)]
    on_lost: OnLost,
    /// The command and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<std::ffi::OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnLost {
    /// Stop the command
    Kill,
    /// Say so and let it finish
    Warn,
}

/// What is passed on to the command, and ends the wait before it.
const FORWARDED: [i32; 6] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

pub fn run(site: &Site, args: &Args) -> Outcome {
    let site = site.must_be_shared()?;
    // Before any other thread starts, so that no signal finds its default disposition.
    let signals = signals::catch(&FORWARDED)?;
    let client = open(site, args)?;
    let outcome = start(&client, args, &signals);
    connect::goodbye(&client);
    outcome
}

fn start(client: &Client, args: &Args, signals: &Receiver<Signal>) -> Outcome {
    // A limiter waits for a server that is away until --max-wait. At the start that would hide a wrong address.
    client.check()?;
    let limiter = limiter(client, args)?;
    under_permit(&limiter, args, signals)
}

fn under_permit(limiter: &Limiter, args: &Args, signals: &Receiver<Signal>) -> Outcome {
    let permit = waiting::for_permit(limiter, &request(args), signals)?;
    let outcome = run_command(args, &permit, signals);
    give_back(permit);
    outcome
}

fn run_command(args: &Args, permit: &Permit, signals: &Receiver<Signal>) -> Outcome {
    let child = command::spawn(&args.command, permit, args.on_lost).map_err(|error| not_started(args, &error))?;
    let status = command::supervise(child, permit, signals, args.on_lost)?;
    Ok(ExitCode::from(status))
}

fn open(site: &Site, args: &Args) -> Result<Client, Failure> {
    let program = args.command[0].to_string_lossy();
    let description = format!("fairq run {program}, pid {} on {}", std::process::id(), host());
    Ok(site.builder()?.description(description).open()?)
}

fn limiter(client: &Client, args: &Args) -> Result<Limiter, Failure> {
    let mut builder = client.limiter(&args.name);
    if let Some(limit) = args.limit {
        builder = builder.limit(limit);
    }
    if let Some(lease) = args.lease {
        builder = builder.lease(lease);
    }
    if let Some(max_queue) = args.max_queue {
        builder = builder.max_queue(max_queue);
    }
    Ok(builder.open()?)
}

fn request(args: &Args) -> Request {
    let request = Request::new().cost(args.cost).label(args.label.as_str());
    match args.max_wait {
        Some(Duration::MAX) => request.wait_forever(),
        Some(max_wait) => request.max_wait(max_wait),
        None => request,
    }
}

/// The command has run; what the server says to the release changes nothing about its exit status.
fn give_back(permit: Permit) {
    match permit.release() {
        // That it was lost has been said when it was.
        Ok(()) | Err(fairq::Error::PermitLost(_)) => {}
        Err(fairq::Error::Stale) => eprintln!("fairq: the permit had been lost before the command ended"),
        Err(error) => eprintln!("fairq: giving the permit back failed; it is free after the lease: {error}"),
    }
}

fn not_started(args: &Args, error: &std::io::Error) -> Failure {
    let program = args.command[0].to_string_lossy();
    match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new(NOT_FOUND, format_args!("{program}: command not found")),
        _ => Failure::new(CANNOT_RUN, format_args!("{program}: {error}")),
    }
}

fn host() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the length passed leaves room for the terminating NUL in the zeroed buffer.
    unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let end = buffer.iter().position(|&byte| byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}
