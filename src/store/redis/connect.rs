//! From an address to a connection that is fit for use.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{Connection, ConnectionInfo, RedisError, Value};

use super::access::{Access, Admission, Whom};
use super::cluster;
use super::fault;
use super::greeting;
use super::keys::{channel_of, keys_of};
use super::script::SELFTEST;
use super::tls;
use super::url::{Address, Layout, Target, moved_to};
use crate::Error;
use crate::status::ServerInfo;
use crate::store::StoreError;

const OLDEST: (u32, u32) = (6, 2);
/// No time at all would mean no bound.
const LEAST: Duration = Duration::from_millis(1);

/// Where and how to connect.
#[derive(Clone)]
pub(crate) struct RedisOptions {
    pub(super) target: Target,
    access: Access,
    /// Of the servers, and of the sentinels.
    admissions: Arc<[Admission; 2]>,
    pub connect_timeout: Duration,
    pub io_timeout: Duration,
    pub subscribe: bool,
}

impl RedisOptions {
    /// Judges a URL, and how to be let in there, without connecting.
    pub(crate) fn parse(
        url: &str,
        access: Access,
        (connect_timeout, io_timeout): (Duration, Duration),
        subscribe: bool,
    ) -> Result<Self, Error> {
        tls::install_crypto();
        let mut target = Target::parse(url)?;
        access.check(&target)?;
        target.template = tuned(target.template, io_timeout);
        let admissions = Arc::default();
        Ok(RedisOptions { target, access, admissions, connect_timeout, io_timeout, subscribe })
    }

    pub(crate) fn shown_url(&self) -> String {
        self.target.shown.clone()
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.target.layout
    }

    /// A connection with all time-outs set.
    pub(super) fn connect(&self, address: &Address) -> Result<Connection, StoreError> {
        self.open(Whom::Server, address, (self.connect_timeout, self.io_timeout)).map_err(|error| at(address, error))
    }

    /// One for a question that must not take long: it and its answer have `patience`.
    pub(super) fn connect_briefly(
        &self,
        whom: Whom,
        address: &Address,
        patience: Duration,
    ) -> Result<Connection, StoreError> {
        self.open(whom, address, (patience, patience))
    }

    fn open(&self, whom: Whom, address: &Address, patience: (Duration, Duration)) -> Result<Connection, StoreError> {
        let admission = &self.admissions[usize::from(whom == Whom::Sentinel)];
        match self.try_open(whom, address, patience) {
            Ok(connection) => {
                admission.grant(address);
                Ok(connection)
            }
            Err(NotOpen::Refused(error)) => Err(admission.refuse(address, error)),
            Err(NotOpen::Failed(error)) => Err(error),
        }
    }

    fn try_open(
        &self,
        whom: Whom,
        address: &Address,
        (connect, io): (Duration, Duration),
    ) -> Result<Connection, NotOpen> {
        let template = moved_to(&self.target.template, address);
        let login = match self.layout() {
            Layout::Sentinel { login, .. } if whom == Whom::Sentinel => login,
            _ => template.redis_settings(),
        };
        let login = self.access.login(whom, login).map_err(NotOpen::Refused)?;
        let info = template.set_redis_settings(greeting::left_to_the_crate(&login));
        let client = tls::client(info, &self.access)?;
        let end = Instant::now() + connect;
        let opened = client.get_connection_with_timeout(connect).and_then(|mut connection| {
            // Connecting clears them.
            set_timeouts(&connection, end.saturating_duration_since(Instant::now()).max(LEAST))?;
            greeting::exchange(&mut connection, &login)?;
            set_timeouts(&connection, io)?;
            Ok(connection)
        });
        opened.map_err(|error| self.why_not_open(whom, client.get_connection_info(), &error))
    }

    fn why_not_open(&self, whom: Whom, info: &ConnectionInfo, error: &RedisError) -> NotOpen {
        if greeting::refuses_login(error) {
            let whence = self.access.whence(whom);
            let detail = format!("the server does not take the login ({error}); the password is from {whence}");
            let error = Error::Config { detail };
            return match self.access.rotates(whom) {
                true => NotOpen::Refused(error),
                false => NotOpen::Failed(StoreError::Fatal(error)), // nobody can mend it while we run
            };
        }
        tls::explain(info, error, &self.access).unwrap_or_else(|| NotOpen::Failed(fault::of_connect(error)))
    }
}

fn set_timeouts(connection: &Connection, timeout: Duration) -> redis::RedisResult<()> {
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))
}

/// Why there is no connection.
pub(super) enum NotOpen {
    /// We are not let in, or do not let ourselves be.
    Refused(Error),
    Failed(StoreError),
}

/// Names the server that is meant, where a URL does not say it.
pub(super) fn at(address: &Address, error: StoreError) -> StoreError {
    let Address::At { .. } = address else { return error };
    match error {
        StoreError::Away { detail, down } => StoreError::Away { detail: format!("{address}: {detail}"), down },
        StoreError::Fatal(Error::Config { detail }) => {
            StoreError::Fatal(Error::Config { detail: format!("{address}: {detail}") })
        }
        other => other,
    }
}

/// The crate's defaults have Nagle's delay, no keep-alive, and no bound on unacknowledged data.
fn tuned(info: ConnectionInfo, io_timeout: Duration) -> ConnectionInfo {
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(5));
    let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let tcp = tcp.set_user_timeout(io_timeout.max(Duration::from_secs(5)));
    info.set_tcp_settings(tcp)
}

/// Whether `INFO server` says that it is a node of a cluster. (Valkey calls it `server_mode`.)
fn is_of_cluster(info: &str) -> bool {
    info.lines().any(|line| matches!(line.trim(), "redis_mode:cluster" | "server_mode:cluster"))
}

/// What `INFO` tells of the server.
pub(super) fn server_info(connection: &mut Connection) -> Result<ServerInfo, StoreError> {
    read_info(&ask_info(connection)?)
}

fn ask_info(connection: &mut Connection) -> Result<String, StoreError> {
    redis::cmd("INFO").arg("server").query(connection).map_err(|e| fault::of_connect(&e))
}

/// As [`server_info`], for a URL that names one server: it must not be one of several masters, which would send most
/// limiters away.
pub(super) fn info_of_the_only_one(connection: &mut Connection, shown: &str) -> Result<ServerInfo, StoreError> {
    let text = ask_info(connection)?;
    if is_of_cluster(&text) {
        match cluster::view_of(connection, &Address::AsGiven) {
            Ok(view) if view.parts.len() > 1 => return Err(not_alone(shown)),
            _ => {} // alone with all slots; or it may not be asked, then its first redirection tells
        }
    }
    read_info(&text)
}

/// A server that the URL names alone sends its callers to another node.
pub(super) fn not_alone(shown: &str) -> StoreError {
    let form = "redis-cluster://host:port (rediss-cluster:// for TLS)";
    let detail = format!("{shown} is one of several nodes of a Redis Cluster: give its address as {form}");
    StoreError::Fatal(Error::Config { detail })
}

fn read_info(text: &str) -> Result<ServerInfo, StoreError> {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|v| v.trim().to_owned())
    };
    let valkey = field("valkey_version");
    let kind = if valkey.is_some() { "valkey" } else { "redis" };
    let version = valkey.or_else(|| field("redis_version")).unwrap_or_default();
    check_version(kind, &version)?;
    let run_id = field("run_id").unwrap_or_default();
    Ok(ServerInfo { kind: kind.into(), version, run_id, ..ServerInfo::default() })
}

fn check_version(kind: &str, version: &str) -> Result<(), StoreError> {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= OLDEST {
        return Ok(());
    }
    let detail = format!("{kind} {version} is too old: fairq needs 6.2 or newer");
    Err(StoreError::Fatal(Error::Config { detail }))
}

/// What a self-test came to, when nothing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tested {
    Fit,
    /// The scratch keys live on another node by now.
    NotHere,
}

/// Runs every command that the scripts use once, on the keys of a scratch limiter, so that a missing right is named
/// before anything depends on it.
pub(super) fn self_test(connection: &mut Connection, instance: &str, scratch: &str) -> Result<Tested, StoreError> {
    let keys = keys_of(scratch);
    let mut errors: Vec<String> = Vec::new();
    // By source, which loads it, and by name: these are two rights.
    for (command, script) in [("EVAL", &SELFTEST.source), ("EVALSHA", &SELFTEST.sha)] {
        let mut cmd = redis::cmd(command);
        cmd.arg(script).arg(keys.len()).arg(&keys[..]).arg(instance);
        errors = match cmd.query(connection) {
            Err(error) if error.code() == Some("NOSCRIPT") => errors, // forgotten at once, but not denied
            Err(error) if fault::is_redirect(&error) => return Ok(Tested::NotHere),
            answer => answer.map_err(|e| fault::of_connect(&e))?,
        };
    }
    judge(&errors).map(|()| Tested::Fit)
}

fn judge(errors: &[String]) -> Result<(), StoreError> {
    let Some(first) = errors.first() else { return Ok(()) };
    if errors.iter().all(|error| error.contains("OOM")) {
        return Ok(()); // a full server still releases; an acquire will say so
    }
    if errors.iter().any(|error| error.contains("READONLY") || error.contains("read only")) {
        return Err(StoreError::away(format!("this server is a replica ({first})")));
    }
    if errors.iter().any(|error| fault::will_pass(error)) {
        return Err(StoreError::away(format!("the server does not write now ({first})")));
    }
    let (all, hint) = (errors.join("; "), "give the user the rights that the README lists under \"Rights\"");
    Err(StoreError::Fatal(Error::Config { detail: format!("the server denies what fairq needs: {all}; {hint}") }))
}

/// Turns a connection into a subscriber of the instance's channel; it is of no use for commands after that. The crate's
/// own way of subscribing takes a refusal for a success.
pub(super) fn subscribe(connection: &mut Connection, instance: &str) -> Result<(), StoreError> {
    let command = redis::cmd("SUBSCRIBE").arg(channel_of(instance)).get_packed_command();
    connection.send_packed_command(&command).map_err(|e| fault::of_connect(&e))?;
    match connection.recv_response().map_err(|e| fault::of_connect(&e))? {
        Value::ServerError(error) => Err(fault::of_connect(&error.into())),
        _ => Ok(()),
    }
}

/// Adds what an operator should know. What the user may not ask for stays unknown.
pub(super) fn add_advice(connection: &mut Connection, info: &mut ServerInfo) {
    let section = |connection: &mut Connection, name: &str| -> Option<String> {
        redis::cmd("INFO").arg(name).query(connection).ok()
    };
    let memory = section(connection, "memory").unwrap_or_default();
    let persistence = section(connection, "persistence").unwrap_or_default();
    let field = |text: &str, name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|v| v.trim().to_owned())
    };
    info.maxmemory_policy = field(&memory, "maxmemory_policy");
    if let Some(policy) = info.maxmemory_policy.as_deref().filter(|policy| *policy != "noeviction") {
        info.warnings.push(format!(
            "maxmemory-policy is {policy}: the server may throw a limiter's keys away; set it to noeviction"
        ));
    }
    let aof = field(&persistence, "aof_enabled").as_deref() == Some("1");
    let rdb = setting(connection, "save").map(|value| !value.is_empty());
    info.persistence = match (aof, rdb) {
        (true, Some(true)) => Some("rdb+aof".into()),
        (true, _) => Some("aof".into()),
        (false, Some(true)) => Some("rdb".into()),
        (false, Some(false)) => Some("none".into()),
        (false, None) => None,
    };
}

/// Of a master that sentinels watch: cut off from them, it goes on admitting unless it has to have a replica.
pub(super) fn add_advice_on_replicas(connection: &mut Connection, info: &mut ServerInfo) {
    if setting(connection, "min-replicas-to-write").as_deref() == Some("0") {
        let advice = "set it to 1, or a master that is cut off from its sentinels goes on admitting beside the new one";
        info.warnings.push(format!("min-replicas-to-write is 0: {advice}"));
    }
}

/// Of a master of a cluster.
pub(super) fn add_advice_on_coverage(connection: &mut Connection, info: &mut ServerInfo) {
    if setting(connection, "cluster-require-full-coverage").as_deref() == Some("yes") {
        let advice = "set it to no, or all limiters wait while one master has no successor";
        info.warnings.push(format!("cluster-require-full-coverage is yes: {advice}"));
    }
}

/// `None`: the user may not ask.
fn setting(connection: &mut Connection, name: &str) -> Option<String> {
    let pair: Option<Vec<String>> = redis::cmd("CONFIG").arg("GET").arg(name).query(connection).ok();
    pair?.into_iter().nth(1)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(check_version("redis", "6.2.5").is_ok());
        assert!(check_version("redis", "10.0").is_ok());
        assert!(check_version("redis", "6.0.16").is_err());
        assert!(check_version("redis", "").is_err());
    }
}
