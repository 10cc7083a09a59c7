//! `fairq limit`, `pause`, `resume` and `revoke`: the operator's hand on a limiter, while it runs.

use std::process::ExitCode;

use fairq::{Change, Revoked};

use crate::connect;
use crate::exit::{Failure, NO, Outcome};
use crate::site::Site;
use crate::{show, term};

/// The arguments of `limit`.
#[derive(clap::Args)]
#[command(after_help = "\
A lowered limit takes nothing back: nobody is admitted until enough has been released.
`reset` forgets everything that operators set for this limiter (a pause too); what the services declare counts again.

Examples:
  fairq limit gpu 8
  fairq limit gpu reset")]
pub struct LimitArgs {
    /// The limiter's name
    name: String,
    /// The new limit, or `reset`
    #[arg(value_parser = new_limit)]
    limit: NewLimit,
}

/// The arguments of `pause` and `resume`.
#[derive(clap::Args)]
#[command(after_help = "Whoever holds a permit keeps it; waiting requests still time out as they would.")]
pub struct NameArgs {
    /// The limiter's name
    name: String,
}

/// The arguments of `revoke`.
#[derive(clap::Args)]
#[command(after_help = "\
The holder is told that its permit was lost; whether it stops is its own affair (see `fairq run --on-lost`).
Exit status 1 when there is no such ticket (any more).

Example:
  fairq holders gpu
  fairq revoke gpu 3f9a1c…-7")]
pub struct RevokeArgs {
    /// The limiter's name
    name: String,
    /// The ticket, as `fairq holders NAME` and `fairq waiters NAME` show it
    ticket: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewLimit {
    To(u64),
    Reset,
}

fn new_limit(text: &str) -> Result<NewLimit, String> {
    match text {
        "reset" => Ok(NewLimit::Reset),
        number => number.parse().map(NewLimit::To).map_err(|_| "a number, or `reset`, is expected".into()),
    }
}

pub fn limit(site: &Site, args: &LimitArgs) -> Outcome {
    let change = match args.limit {
        NewLimit::To(limit) => Change::new().limit(limit),
        NewLimit::Reset => Change::new().reset(),
    };
    configure(site, &args.name, &change)
}

pub fn pause(site: &Site, args: &NameArgs) -> Outcome {
    configure(site, &args.name, &Change::new().pause())
}

pub fn resume(site: &Site, args: &NameArgs) -> Outcome {
    configure(site, &args.name, &Change::new().resume())
}

pub fn revoke(site: &Site, args: &RevokeArgs) -> Outcome {
    let (client, limiter) = connect::existing(site, &args.name)?;
    let revoked = limiter.revoke(&args.ticket)?;
    connect::goodbye(&client);
    let what = match revoked {
        Revoked::Held => "the permit was taken back\n",
        Revoked::Waiting => "the request was taken out of the line\n",
        Revoked::Unknown => return Err(no_such_ticket(args)),
    };
    term::print(what)?;
    Ok(ExitCode::SUCCESS)
}

fn configure(site: &Site, name: &str, change: &Change) -> Outcome {
    let (client, limiter) = connect::existing(site, name)?;
    let status = limiter.configure(change)?;
    connect::goodbye(&client);
    term::print(&show::describe(&status))?;
    Ok(ExitCode::SUCCESS)
}

fn no_such_ticket(args: &RevokeArgs) -> Failure {
    Failure::new(NO, format_args!("{:?} neither holds a permit of {:?} nor waits for one", args.ticket, args.name))
        .hint(format_args!("it may have ended; see `fairq holders {0}` and `fairq waiters {0}`", args.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_reset() {
        assert_eq!(new_limit("8"), Ok(NewLimit::To(8)));
        assert_eq!(new_limit("reset"), Ok(NewLimit::Reset));
        assert!(new_limit("-1").is_err() && new_limit("lots").is_err());
    }
}
