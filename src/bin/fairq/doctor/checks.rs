//! The single checks of `fairq doctor`.

use std::time::Duration;

use fairq::{Error, ServerInfo, format_duration};
use hdrhistogram::Histogram;

use super::{Finding, Grade};
use crate::clock;
use crate::exit::{Failure, UNAVAILABLE};
use crate::server::{self, Server};
use crate::site::Site;
use crate::term::nanos;

/// The oldest version that the scripts are written for.
const OLDEST: (u64, u64) = (6, 2);
/// The first releases in which no hole is known that a script can break out of Lua by: CVE-2024-31449, CVE-2024-46981,
/// CVE-2025-49844 and, in Valkey, CVE-2025-67733. Kind, branch, patch; newer branches began without them.
const MENDED: [(&str, (u64, u64), u64); 9] = [
    ("redis", (6, 2), 20),
    ("redis", (7, 2), 11),
    ("redis", (7, 4), 6),
    ("redis", (8, 0), 4),
    ("redis", (8, 2), 2),
    ("valkey", (7, 2), 12),
    ("valkey", (8, 0), 7),
    ("valkey", (8, 1), 6),
    ("valkey", (9, 0), 2),
];
/// Above this, a hand-off is felt by users.
const SLOW: Duration = Duration::from_millis(20);
/// How long a message may take before Pub/Sub counts as dead.
const MESSAGE: Duration = Duration::from_secs(2);
const CALLS: usize = 300;
const MESSAGES: usize = 50;

/// The library's own self-test: version, rights, configuration.
pub fn library(checked: Result<ServerInfo, Error>) -> Vec<Finding> {
    let info = match checked {
        Ok(info) => info,
        Err(error) => return vec![self_test_failed(&error)],
    };
    let mut findings = vec![
        version(&info),
        Finding::ok("rights: every script ran on a scratch key"),
        eviction(info.maxmemory_policy.as_deref()),
        persistence(info.persistence.as_deref()),
    ];
    findings.extend(holes(&info));
    let more = info.warnings.into_iter().filter(|text| !said_above(text));
    findings.extend(more.map(|what| Finding { grade: Grade::Warn, what, advice: None }));
    findings
}

/// Turns a check that could not be made into a finding.
pub fn or_left_out(what: &str, result: Result<Vec<Finding>, Failure>) -> Vec<Finding> {
    result.unwrap_or_else(|failure| {
        vec![Finding::warn(format!("{what} could not be examined: {failure}"), "does this user have the right to?")]
    })
}

pub fn reach_advice() -> &'static str {
    "is the server up, the address right, the port open, the password correct? Try: redis-cli -u URL ping"
}

/// Scripts write, which only a master does.
pub fn role(server: &mut Server) -> Result<Vec<Finding>, Failure> {
    let info = server.info("replication")?;
    Ok(match info.get("role").map(String::as_str) {
        Some("slave" | "replica") => {
            vec![Finding::bad("this is a replica: it refuses writes", "give the address of the master")]
        }
        _ => Vec::new(),
    })
}

pub fn memory(server: &mut Server) -> Result<Vec<Finding>, Failure> {
    let info = server.info("memory")?;
    let used = server::number(&info, "used_memory").unwrap_or(0);
    let most = server::number(&info, "maxmemory").unwrap_or(0);
    Ok(vec![memory_finding(used, most)])
}

/// A message to ourselves and back, which is how a waiting process learns of its grant at once. In a cluster it is heard on
/// another master than it is published on.
pub fn pubsub(server: &mut Server, site: &Site, index: usize) -> Result<Vec<Finding>, Failure> {
    let channel = format!("fq:doctor:{}:{}", std::process::id(), clock::now_ns());
    let mut listeners = Server::connect_all(site)?;
    let another = (index + 1).checked_rem(listeners.len()).ok_or_else(|| Failure::new(UNAVAILABLE, "no master"))?;
    let mut listener = listeners.swap_remove(another);
    listener.conn.set_read_timeout(Some(MESSAGE))?;
    let mut subscription = listener.conn.as_pubsub();
    subscription.subscribe(&channel)?;
    let mut taken = server::histogram();
    for _ in 0..MESSAGES {
        let start = clock::now_ns();
        redis::cmd("PUBLISH").arg(&channel).arg("hello").exec(&mut server.conn)?;
        if subscription.get_message().is_err() {
            return Ok(vec![silent()]);
        }
        taken.saturating_record(clock::now_ns() - start);
    }
    Ok(vec![Finding::ok(format!("Pub/Sub round trip: {}", quantiles(&taken)))])
}

pub fn latency(server: &mut Server) -> Result<Vec<Finding>, Failure> {
    let sha = server.load("return 1")?;
    let ping = server::time_calls(CALLS, || server.ping())?;
    let script = server::time_calls(CALLS, || Ok(redis::cmd("EVALSHA").arg(&sha).arg(0).exec(&mut server.conn)?))?;
    Ok(vec![speed("PING", &ping), speed("EVALSHA", &script)])
}

/// The library's messages say themselves what to do, save for this one.
fn self_test_failed(error: &Error) -> Finding {
    let full = matches!(error, Error::Overloaded { .. });
    let advice = full.then(|| "the memory is full: raise maxmemory, or remove other data".to_string());
    Finding { grade: Grade::Bad, what: format!("the self-test failed: {error}"), advice }
}

fn version(info: &ServerInfo) -> Finding {
    let what = format!("{} {}", info.kind, info.version);
    if branch_and_patch(&info.version).0 < OLDEST {
        return Finding::bad(format!("{what} is too old"), "6.2 is the oldest that works");
    }
    Finding::ok(what)
}

/// A version's first two numbers, and its third.
fn branch_and_patch(version: &str) -> ((u64, u64), u64) {
    let mut numbers = version.split('.').map_while(|part| part.parse().ok());
    let mut next = || numbers.next().unwrap_or(0);
    ((next(), next()), next())
}

/// fairq's scripts do no harm; but whoever else may run one could take over a server with a known hole in its Lua.
fn holes(info: &ServerInfo) -> Option<Finding> {
    let (branch, patch) = branch_and_patch(&info.version);
    let of_kind = || MENDED.iter().filter(|(kind, ..)| *kind == info.kind);
    let advice = match of_kind().find(|(_, known, _)| *known == branch) {
        Some((.., mended)) if patch >= *mended => return None,
        Some((_, (major, minor), mended)) => format!("upgrade to {major}.{minor}.{mended} or newer"),
        None if of_kind().all(|(_, known, _)| *known < branch) => return None,
        None => "its makers have not mended this branch (your distribution may have): upgrade to a newer one".into(),
    };
    let what = format!("{} {} has known holes in its Lua (CVE-2025-49844 and others)", info.kind, info.version);
    Some(Finding::warn(what, format!("{advice}; until then let nobody but fairq's user run scripts")))
}

fn eviction(policy: Option<&str>) -> Finding {
    match policy {
        Some("noeviction") => Finding::ok("eviction: noeviction"),
        Some(policy) => Finding::bad(
            format!("eviction: {policy} throws limiters away when memory is short"),
            "CONFIG SET maxmemory-policy noeviction, or use a server of its own",
        ),
        None => Finding::warn("eviction: not to be found out", "make sure that maxmemory-policy is noeviction"),
    }
}

fn persistence(kind: Option<&str>) -> Finding {
    match kind {
        Some(kind) if !matches!(kind, "" | "none" | "off") => Finding::ok(format!("persistence: {kind}")),
        Some(_) => Finding::warn(
            "persistence: none",
            "after a restart the running processes put their permits and places back, which takes a few seconds; \
             appendonly yes keeps also what operators have set",
        ),
        None => Finding::warn("persistence: not to be found out", "appendonly yes keeps limits set by operators"),
    }
}

/// The library warns of what has a finding of its own here.
fn said_above(warning: &str) -> bool {
    ["maxmemory", "evict", "persist", "appendonly"].iter().any(|word| warning.contains(word))
}

fn memory_finding(used: u64, most: u64) -> Finding {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    if most == 0 {
        return Finding::warn(
            format!("memory: {} used, without a limit", megabytes(used)),
            "set maxmemory below what the machine has, so that the kernel does not kill the server",
        );
    }
    let what = format!("memory: {} of {} used", megabytes(used), megabytes(most));
    match used.saturating_mul(100) / most {
        0..80 => Finding::ok(what),
        80..95 => Finding::warn(what, "new requests are refused when it is full: raise maxmemory soon"),
        _ => Finding::bad(what, "raise maxmemory, or move other data away: new requests are about to be refused"),
    }
}

fn silent() -> Finding {
    Finding::bad(
        format!("Pub/Sub: a message to ourselves did not come back in {}", format_duration(MESSAGE)),
        "does the user have &fq:* (ACL), and no proxy between that drops Pub/Sub? Without it, waiters poll",
    )
}

fn speed(what: &str, taken: &Histogram<u64>) -> Finding {
    let what = format!("latency of {what}: {}", quantiles(taken));
    if Duration::from_nanos(taken.value_at_quantile(0.99)) < SLOW {
        return Finding::ok(what);
    }
    Finding::warn(what, "is the server far away, busy with slow commands, or swapping? See SLOWLOG GET")
}

fn quantiles(taken: &Histogram<u64>) -> String {
    let [p50, p99] = [0.5, 0.99].map(|q| nanos(taken.value_at_quantile(q)));
    format!("p50 {p50}, p99 {p99}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(version: &str) -> ServerInfo {
        ServerInfo {
            kind: "redis".into(),
            version: version.into(),
            run_id: String::new(),
            maxmemory_policy: None,
            persistence: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn old_servers_are_refused() {
        for (text, good) in [("6.0.16", false), ("6.2.14", true), ("7.0.15", true), ("10.0.1", true), ("?", false)] {
            assert_eq!(version(&info(text)).grade == Grade::Ok, good, "{text}");
        }
    }

    #[test]
    fn servers_with_known_holes_in_their_lua_are_named() {
        for (kind, version, mended) in [
            ("redis", "6.2.19", false),
            ("redis", "6.2.20", true),
            ("redis", "7.0.15", false),
            ("redis", "7.4.5", false),
            ("redis", "7.4.6", true),
            ("redis", "8.2.1", false),
            ("redis", "8.4.0", true),
            ("redis", "10.0.0", true),
            ("valkey", "8.1.4", false),
            ("valkey", "8.1.6", true),
            ("valkey", "9.1.0", true),
            ("memory", "0.1.0", true),
        ] {
            let info = ServerInfo { kind: kind.into(), ..info(version) };
            let finding = holes(&info);
            assert_eq!(finding.is_none(), mended, "{kind} {version}");
            assert!(finding.is_none_or(|finding| finding.grade == Grade::Warn), "it works all the same");
        }
    }

    #[test]
    fn full_memory_is_bad_before_it_is_too_late() {
        assert!(memory_finding(96, 100).grade == Grade::Bad);
        assert!(memory_finding(85, 100).grade == Grade::Warn);
        assert!(memory_finding(10, 100).grade == Grade::Ok);
    }
}
