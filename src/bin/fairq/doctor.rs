//! `fairq doctor`: examines a server and says in plain words what to change.

mod checks;

use std::process::ExitCode;

use fairq::Client;

use crate::connect;
use crate::exit::{Failure, NO, Outcome, UNAVAILABLE};
use crate::server::Server;
use crate::site::Site;
use crate::term::{self, Paint};

/// The arguments of `doctor`.
#[derive(clap::Args)]
#[command(after_help = "\
Each line begins with [ok], [warn] (works; you should know) or [bad] (must change).
Exit status 1 when something must change, 69 when the server cannot be reached.

Of a cluster every master is examined; behind sentinels, the one that is master now.

Examples:
  fairq doctor --url redis://app:secret@redis.internal:6379
  fairq doctor --url redis-cluster://node1:6379,node2:6379
  fairq doctor --url redis-sentinel://sentinel1:26379,sentinel2:26379/mymaster
  fairq doctor --url rediss://redis.internal --username app --password-file /run/secrets/redis --tls-ca-file ca.pem")]
pub struct Args {}

/// What one check found.
pub struct Finding {
    grade: Grade,
    what: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Grade {
    Ok,
    Warn,
    Bad,
}

impl Finding {
    fn ok(what: impl Into<String>) -> Finding {
        Finding { grade: Grade::Ok, what: what.into(), advice: None }
    }

    fn warn(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { grade: Grade::Warn, what: what.into(), advice: Some(advice.into()) }
    }

    fn bad(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding { grade: Grade::Bad, what: what.into(), advice: Some(advice.into()) }
    }

    fn render(&self, paint: Paint) -> String {
        let mark = match self.grade {
            Grade::Ok => paint.good("[ok]  "),
            Grade::Warn => paint.warn("[warn]"),
            Grade::Bad => paint.bad("[bad] "),
        };
        let advice = self.advice.as_ref().map(|advice| format!("         -> {advice}\n"));
        format!("{mark} {}\n{}", self.what, advice.unwrap_or_default())
    }
}

/// Prints findings as they come, and remembers the worst.
struct Report {
    paint: Paint,
    bad: usize,
}

impl Report {
    fn add(&mut self, finding: &Finding) -> Result<(), Failure> {
        self.bad += usize::from(finding.grade == Grade::Bad);
        term::print(&finding.render(self.paint))
    }

    fn add_all(&mut self, findings: Vec<Finding>) -> Result<(), Failure> {
        findings.iter().try_for_each(|finding| self.add(finding))
    }
}

pub fn run(site: &Site, _args: &Args) -> Outcome {
    let site = site.must_be_shared()?;
    let client = connect::client(site)?;
    let mut report = Report { paint: Paint::stdout(), bad: 0 };
    let outcome = examine(&client, site, &mut report);
    connect::goodbye(&client);
    outcome?;
    let summary = match report.bad {
        0 => "\nnothing has to change\n".to_string(),
        1 => "\none thing must change\n".to_string(),
        bad => format!("\n{bad} things must change\n"),
    };
    term::print(&summary)?;
    Ok(ExitCode::from(if report.bad == 0 { 0 } else { NO }))
}

fn examine(client: &Client, site: &Site, report: &mut Report) -> Result<(), Failure> {
    match (client.check(), Server::connect_all(site)) {
        (Err(error), Err(_)) => not_connected(client, &error, report),
        (checked, Ok(mut servers)) => {
            report.add(&Finding::ok(format!("connected to {}", client.url())))?;
            report.add_all(checks::library(checked))?;
            let several = servers.len() > 1;
            servers.iter_mut().enumerate().try_for_each(|(index, server)| {
                if several || client.url().contains("-sentinel:") {
                    report.add(&Finding::ok(format!("master {}", server.address)))?;
                }
                examine_server(server, site, index, report)
            })
        }
        (checked, Err(failure)) => {
            report.add_all(checks::library(checked))?;
            report.add(&Finding::warn(
                format!("a connection for measuring failed ({failure})"),
                "the checks of memory, Pub/Sub and latency were left out",
            ))
        }
    }
}

fn not_connected(client: &Client, error: &fairq::Error, report: &mut Report) -> Result<(), Failure> {
    report.add(&Finding::bad(format!("cannot use {}: {error}", client.url()), checks::reach_advice()))?;
    match error {
        fairq::Error::Unavailable { .. } => Err(Failure::new(UNAVAILABLE, "the server cannot be examined")),
        _ => Ok(()),
    }
}

/// Each check stands alone: one that fails, for want of a right for instance, does not keep the others from running.
fn examine_server(server: &mut Server, site: &Site, index: usize, report: &mut Report) -> Result<(), Failure> {
    report.add_all(checks::or_left_out("role", checks::role(server)))?;
    report.add_all(checks::or_left_out("memory", checks::memory(server)))?;
    report.add_all(checks::or_left_out("Pub/Sub", checks::pubsub(server, site, index)))?;
    report.add_all(checks::or_left_out("latency", checks::latency(server)))
}
