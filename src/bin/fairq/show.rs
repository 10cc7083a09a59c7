//! `fairq status`, `list`, `holders` and `waiters`: what there is, for people and (`--json`) for programs.

use std::process::ExitCode;
use std::time::Duration;

use fairq::{Entry, Status, format_duration};
use serde::Serialize;

use crate::connect;
use crate::exit::Outcome;
use crate::site::Site;
use crate::term::{self, Paint, Table, or_dash, plain};

/// The arguments of `status`.
#[derive(clap::Args)]
pub struct StatusArgs {
    /// The limiter's name
    name: String,
    /// One JSON object; durations in milliseconds, null for "no bound" and "unknown"
    #[arg(long)]
    json: bool,
}

/// The arguments of `list`.
#[derive(clap::Args)]
pub struct ListArgs {
    /// One JSON array of objects as `status --json` prints them
    #[arg(long)]
    json: bool,
}

/// The arguments of `holders` and `waiters`.
#[derive(clap::Args)]
#[command(after_help = "The first column is the ticket, as `fairq revoke NAME TICKET` takes it.")]
pub struct EntriesArgs {
    /// The limiter's name
    name: String,
    /// One JSON array
    #[arg(long)]
    json: bool,
}

pub fn status(site: &Site, args: &StatusArgs) -> Outcome {
    let (client, limiter) = connect::existing(site, &args.name)?;
    let status = limiter.status()?;
    connect::goodbye(&client);
    if args.json {
        return term::print_json(&StatusJson::from(&status));
    }
    term::print(&describe(&status))?;
    Ok(ExitCode::SUCCESS)
}

pub fn list(site: &Site, args: &ListArgs) -> Outcome {
    let client = connect::client(site.must_be_shared()?)?;
    let mut found = Vec::new();
    for name in client.limiters()? {
        // One that expired since the names were read is no longer there to be listed.
        match client.limiter(&name).open().and_then(|limiter| limiter.status()) {
            Ok(status) => found.push(status),
            Err(fairq::Error::NoSuchLimiter { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    connect::goodbye(&client);
    if args.json {
        return term::print_json(&found.iter().map(StatusJson::from).collect::<Vec<_>>());
    }
    term::print(&listing(&found))?;
    Ok(ExitCode::SUCCESS)
}

pub fn holders(site: &Site, args: &EntriesArgs) -> Outcome {
    let (client, limiter) = connect::existing(site, &args.name)?;
    let entries = limiter.holders()?;
    connect::goodbye(&client);
    show_entries(&entries, args.json, "held for")
}

pub fn waiters(site: &Site, args: &EntriesArgs) -> Outcome {
    let (client, limiter) = connect::existing(site, &args.name)?;
    let entries = limiter.waiters()?;
    connect::goodbye(&client);
    show_entries(&entries, args.json, "waiting for")
}

/// The status as lines of text; also what a change is answered with.
pub fn describe(status: &Status) -> String {
    let state = if status.paused { " (paused: nobody is admitted)" } else { "" };
    let overridden = if status.overridden.is_empty() { "-".into() } else { status.overridden.join(", ") };
    let mut table = Table::new(&["limiter", &format!("{}{state}", plain(&status.name))]);
    let mut line = |name: &str, value: String| table.row(vec![name.into(), value]);
    line("held", format!("{} of {} by {} permits", status.used, status.limit, status.holders));
    line("waiting", format!("{} of {}", status.waiting, unlimited(status.max_queue)));
    line(
        "a newcomer waits",
        status.estimate.map_or_else(|| "unknown".into(), |e| format!("about {}", format_duration(e))),
    );
    line("typical hold", or_dash(status.typical_hold));
    line("max wait", format_duration(status.max_wait));
    line("lease", format_duration(status.lease));
    line("max hold", status.max_hold.map_or_else(|| "forever".into(), format_duration));
    line("set by operator", overridden);
    if status.used > status.limit {
        line("over the limit", format!("by {}: nobody is admitted before it is below", status.used - status.limit));
    }
    if status.overshoot_total > 0 {
        line("came back over it", format!("{} so far, after losses of state", status.overshoot_total));
    }
    line("granted so far", status.granted_total.to_string());
    line("instances", status.instances.to_string());
    line("epoch", status.epoch.to_string());
    if !status.grace.is_zero() {
        line(
            "grace",
            format!("{} left: holders re-register before anybody is admitted", format_duration(status.grace)),
        );
    }
    table.render(0)
}

fn listing(found: &[Status]) -> String {
    if found.is_empty() {
        return "no limiters\n".into();
    }
    let paint = Paint::stdout();
    let mut table = Table::new(&["name", "held", "limit", "waiting", "estimate", "instances", ""]);
    for status in found {
        table.row(vec![
            plain(&status.name),
            status.used.to_string(),
            status.limit.to_string(),
            status.waiting.to_string(),
            or_dash(status.estimate),
            status.instances.to_string(),
            if status.paused { paint.warn("paused") } else { String::new() },
        ]);
    }
    table.render(0)
}

fn show_entries(entries: &[Entry], json: bool, since: &str) -> Outcome {
    if json {
        return term::print_json(&entries.iter().map(EntryJson::from).collect::<Vec<_>>());
    }
    let mut table = Table::new(&["ticket", since, "cost", "label", "from", "order", "fence"]);
    for entry in entries {
        table.row(vec![
            plain(&entry.ticket),
            format_duration(entry.age),
            entry.cost.to_string(),
            if entry.label.is_empty() { "-".into() } else { plain(&entry.label) },
            plain(&entry.description),
            entry.order.to_string(),
            entry.fence.map_or_else(|| "-".into(), |fence| fence.to_string()),
        ]);
    }
    term::print(&if entries.is_empty() { "none\n".into() } else { table.render(0) })?;
    Ok(ExitCode::SUCCESS)
}

fn unlimited(max_queue: u64) -> String {
    if max_queue == u64::MAX { "any number".into() } else { format!("at most {max_queue}") }
}

/// Milliseconds, as far as JSON numbers go; `None` stands for "for ever".
fn millis(duration: Duration) -> Option<u64> {
    u64::try_from(duration.as_millis()).ok().filter(|_| duration != Duration::MAX)
}

/// `fairq::Status` with names that say their unit.
#[derive(Serialize)]
struct StatusJson<'a> {
    name: &'a str,
    limit: u64,
    used: u64,
    holders: u64,
    waiting: u64,
    paused: bool,
    max_queue: Option<u64>,
    max_wait_ms: Option<u64>,
    lease_ms: Option<u64>,
    max_hold_ms: Option<u64>,
    overridden: &'a [&'static str],
    granted_total: u64,
    instances: u64,
    epoch: u64,
    grace_ms: Option<u64>,
    typical_hold_ms: Option<u64>,
    estimate_ms: Option<u64>,
    overshoot_total: u64,
}

impl<'a> From<&'a Status> for StatusJson<'a> {
    fn from(status: &'a Status) -> Self {
        StatusJson {
            name: &status.name,
            limit: status.limit,
            used: status.used,
            holders: status.holders,
            waiting: status.waiting,
            paused: status.paused,
            max_queue: Some(status.max_queue).filter(|&n| n != u64::MAX),
            max_wait_ms: millis(status.max_wait),
            lease_ms: millis(status.lease),
            max_hold_ms: status.max_hold.and_then(millis),
            overridden: &status.overridden,
            granted_total: status.granted_total,
            instances: status.instances,
            epoch: status.epoch,
            grace_ms: millis(status.grace),
            typical_hold_ms: status.typical_hold.and_then(millis),
            estimate_ms: status.estimate.and_then(millis),
            overshoot_total: status.overshoot_total,
        }
    }
}

/// `fairq::Entry` with names that say their unit. Order and fence exceed what JavaScript counts exactly (2^53) only
/// in the year 2255.
#[derive(Serialize)]
struct EntryJson<'a> {
    ticket: &'a str,
    instance: &'a str,
    description: &'a str,
    label: &'a str,
    cost: u64,
    order: u64,
    fence: Option<u64>,
    age_ms: Option<u64>,
}

impl<'a> From<&'a Entry> for EntryJson<'a> {
    fn from(entry: &'a Entry) -> Self {
        EntryJson {
            ticket: &entry.ticket,
            instance: &entry.instance,
            description: &entry.description,
            label: &entry.label,
            cost: entry.cost,
            order: entry.order,
            fence: entry.fence,
            age_ms: millis(entry.age),
        }
    }
}
