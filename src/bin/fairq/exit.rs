//! How the command ends: its exit statuses, and errors with a hint what to do.

use std::fmt::Display;
use std::process::ExitCode;

use fairq::{Error, format_duration};

/// What a subcommand returns.
pub type Outcome = Result<ExitCode, Failure>;

/// The answer is no: a promise was broken, something must be changed, there is no such ticket.
pub const NO: u8 = 1;
/// The command line or the configuration is wrong (EX_USAGE).
pub const USAGE: u8 = 64;
/// The server cannot be reached, or refuses (EX_UNAVAILABLE).
pub const UNAVAILABLE: u8 = 69;
/// A fault inside fairq (EX_SOFTWARE).
pub const SOFTWARE: u8 = 70;
/// Waited as long as allowed (EX_TEMPFAIL).
pub const TIMED_OUT: u8 = 75;
/// The line is full.
pub const QUEUE_FULL: u8 = 76;
/// The permit was lost while the command ran, or the place in line was revoked.
pub const LOST: u8 = 77;
/// The command exists but cannot be run, as in a shell.
pub const CANNOT_RUN: u8 = 126;
/// The command was not found, as in a shell.
pub const NOT_FOUND: u8 = 127;

/// An error as the user sees it.
#[derive(Debug)]
pub struct Failure {
    pub status: u8,
    what: String,
    hint: Option<String>,
}

impl Failure {
    pub fn new(status: u8, what: impl Display) -> Failure {
        Failure { status, what: what.to_string(), hint: None }
    }

    /// Adds what the user can do about it.
    pub fn hint(mut self, hint: impl Display) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }

    /// The end by a signal, said the shell's way; it needs no message.
    pub fn signalled(signal: i32) -> Failure {
        Failure::new(by_signal(signal), "")
    }

    /// Writes the error to stderr and gives the status to exit with.
    pub fn report(&self) -> ExitCode {
        if !self.what.is_empty() {
            eprintln!("fairq: {}", self.what);
        }
        if let Some(hint) = &self.hint {
            eprintln!("fairq: hint: {hint}");
        }
        ExitCode::from(self.status)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

/// 128 + n, as shells report a command that ended by signal n.
pub fn by_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Prints clap's message. `--help` is no mistake; everything else is wrong usage, and said by 64 instead of clap's 2,
/// which commands under `fairq run` use for their own purposes.
pub fn usage(problem: &clap::Error) -> ExitCode {
    // A closed stdout is no reason to complain.
    let _ = problem.print();
    if problem.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let failure = Failure::new(status_of(&error), &error);
        match hint_for(&error) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<redis::RedisError> for Failure {
    fn from(error: redis::RedisError) -> Failure {
        Failure::new(UNAVAILABLE, format_args!("Redis: {error}"))
            .hint("`fairq doctor` examines the server and says what to change")
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::new(SOFTWARE, error)
    }
}

fn status_of(error: &Error) -> u8 {
    match error {
        Error::TimedOut { .. } => TIMED_OUT,
        Error::QueueFull { .. } => QUEUE_FULL,
        Error::Revoked | Error::PermitLost(_) | Error::Stale => LOST,
        Error::Impossible { .. } | Error::Invalid { .. } | Error::Config { .. } | Error::NoSuchLimiter { .. } => USAGE,
        Error::Cancelled => by_signal(libc::SIGINT),
        Error::Forked | Error::Internal { .. } => SOFTWARE,
        // Closed, Unavailable, Overloaded, Server, and whatever is added to the enum.
        _ => UNAVAILABLE,
    }
}

fn hint_for(error: &Error) -> Option<String> {
    Some(match error {
        Error::TimedOut { .. } => "wait longer (--max-wait), or raise the limit (`fairq limit NAME K`)".into(),
        Error::QueueFull { retry_after: Some(after), .. } => format!("try again in {}", format_duration(*after)),
        Error::QueueFull { .. } => "try again later, or raise the limit (`fairq limit NAME K`)".into(),
        Error::Impossible { limit, .. } => format!("ask for a cost of at most {limit}, or raise the limit"),
        Error::NoSuchLimiter { .. } => {
            "`fairq list` shows the limiters there are; the first open with a limit makes one".into()
        }
        Error::Unavailable { .. } => {
            "is the server up, and the address (--url or FAIRQ_URL) right? `fairq doctor` examines it".into()
        }
        Error::Server { .. } | Error::Overloaded { .. } => {
            "`fairq doctor` examines the server and says what to change".into()
        }
        Error::Internal { .. } => "this is a bug in fairq; FAIRQ_LOG=debug shows more".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_told_as_shells_do() {
        assert_eq!(by_signal(libc::SIGINT), 130);
        assert_eq!(by_signal(libc::SIGKILL), 137);
    }

    #[test]
    fn a_full_line_says_when_to_come_back() {
        let error = Error::QueueFull { waiting: 5, max_queue: 5, retry_after: Some(std::time::Duration::from_secs(3)) };
        let failure = Failure::from(error);
        assert_eq!(failure.status, QUEUE_FULL);
        assert_eq!(failure.hint.as_deref(), Some("try again in 3s"));
    }
}
