//! From a URL to a connection that is fit for use.

use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{Client, Connection, ConnectionInfo, IntoConnectionInfo, Value};

use super::fault;
use super::keys::{channel_of, keys_of};
use super::script::SELFTEST;
use crate::status::ServerInfo;
use crate::store::StoreError;
use crate::{Error, jitter};

const OLDEST: (u32, u32) = (6, 2);
const SCHEMES: &str = "memory:, redis://, rediss:// or unix:///path";

/// Where and how to connect.
#[derive(Clone)]
pub(crate) struct RedisOptions {
    client: Client,
    shown: String,
    pub connect_timeout: Duration,
    pub io_timeout: Duration,
    pub subscribe: bool,
}

impl RedisOptions {
    /// Judges a URL without connecting.
    pub(crate) fn parse(
        url: &str,
        connect_timeout: Duration,
        io_timeout: Duration,
        subscribe: bool,
    ) -> Result<Self, Error> {
        let shown = without_password(url);
        let scheme = url.split(':').next().unwrap_or("");
        if !matches!(scheme, "redis" | "rediss" | "valkey" | "valkeys" | "unix" | "redis+unix" | "valkey+unix") {
            return Err(Error::invalid("url", format!("{shown:?} has none of the schemes {SCHEMES}")));
        }
        #[cfg(not(feature = "tls"))]
        if matches!(scheme, "rediss" | "valkeys") {
            return Err(Error::Config { detail: "this build has no TLS: build it with the feature `tls`".into() });
        }
        install_crypto();
        let info = url.into_connection_info().map_err(|e| {
            // It repeats a part of the URL, which is no place for more than `shown` has of it.
            let why = e.detail().filter(|_| !shown.contains(['*', '…'])).unwrap_or("it cannot be read").to_owned();
            Error::invalid("url", format!("{shown:?}: {why}; expected {SCHEMES}"))
        })?;
        let client = Client::open(tuned(info, io_timeout)).map_err(|e| Error::Config { detail: e.to_string() })?;
        Ok(RedisOptions { client, shown, connect_timeout, io_timeout, subscribe })
    }

    pub(crate) fn shown_url(&self) -> String {
        self.shown.clone()
    }

    /// A connection with all time-outs set.
    pub(super) fn connect(&self) -> Result<Connection, StoreError> {
        let connection =
            self.client.get_connection_with_timeout(self.connect_timeout).map_err(|e| fault::of_connect(&e))?;
        let set = |result: redis::RedisResult<()>| result.map_err(|e| fault::of_connect(&e));
        set(connection.set_read_timeout(Some(self.io_timeout)))?; // connecting clears them
        set(connection.set_write_timeout(Some(self.io_timeout)))?;
        Ok(connection)
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

/// rustls panics without one; another that the program has installed is as good.
fn install_crypto() {
    #[cfg(feature = "tls")]
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Better too little of a URL than a password. One that was not escaped stands where nobody would look for it: with a
/// slash in it, say, it is a part of the path.
fn without_password(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(parsed) if url.contains("://") && !parsed[url::Position::BeforePath..].contains('@') => masked(parsed),
        _ => outline(url),
    }
}

fn masked(mut parsed: url::Url) -> String {
    // A name without a password is hardly a name: whoever writes it means the password.
    let _ = match parsed.password() {
        Some(_) => parsed.set_password(Some("***")),
        None if !parsed.username().is_empty() => parsed.set_username("***"),
        None => Ok(()),
    };
    parsed.set_fragment(None);
    let hidden = |key: &str, value: &str| key.contains("pass") || value.contains("pass");
    if parsed.query_pairs().any(|(key, value)| hidden(&key, &value)) {
        let pairs: Vec<(String, String)> = parsed
            .query_pairs()
            .map(|(key, value)| (key.to_string(), if hidden(&key, &value) { "***".into() } else { value.to_string() }))
            .collect();
        parsed.query_pairs_mut().clear().extend_pairs(pairs);
    }
    parsed.to_string()
}

/// What is left of a URL that cannot be read: the scheme and the host, or what looks like them.
fn outline(url: &str) -> String {
    let is_scheme = |text: &&str| text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let scheme = url.split_once("://").map(|(scheme, _)| scheme).filter(is_scheme);
    let host = match url.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None if scheme.is_some() => "…".into(),
        None => url.to_owned(),
    };
    let host = host.split_once('?').map_or(host.as_str(), |(host, _)| host);
    scheme.map_or_else(|| host.to_owned(), |scheme| format!("{scheme}://{host}"))
}

/// What `INFO` tells of the server.
pub(super) fn server_info(connection: &mut Connection) -> Result<ServerInfo, StoreError> {
    let text: String = redis::cmd("INFO").arg("server").query(connection).map_err(|e| fault::of_connect(&e))?;
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

/// Runs every command that the scripts use once, on scratch keys, so that a missing right is named before anything
/// depends on it.
pub(super) fn self_test(connection: &mut Connection, instance: &str) -> Result<(), StoreError> {
    let scratch = format!("selftest:{}", jitter::random_name().map_err(StoreError::Fatal)?);
    let keys = keys_of(&scratch);
    let mut errors: Vec<String> = Vec::new();
    // By source, which loads it, and by name: these are two rights.
    for (command, script) in [("EVAL", &SELFTEST.source), ("EVALSHA", &SELFTEST.sha)] {
        let mut cmd = redis::cmd(command);
        cmd.arg(script).arg(keys.len()).arg(&keys[..]).arg(instance);
        errors = match cmd.query(connection) {
            Err(error) if error.code() == Some("NOSCRIPT") => errors, // forgotten at once, but not denied
            answer => answer.map_err(|e| fault::of_connect(&e))?,
        };
    }
    judge(&errors)
}

fn judge(errors: &[String]) -> Result<(), StoreError> {
    let Some(first) = errors.first() else { return Ok(()) };
    if errors.iter().all(|error| error.contains("OOM")) {
        return Ok(()); // a full server still releases; an acquire will say so
    }
    if errors.iter().any(|error| error.contains("READONLY") || error.contains("read only")) {
        return Err(StoreError::Away { detail: format!("this server is a replica ({first})") });
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
    let save: Option<Vec<String>> = redis::cmd("CONFIG").arg("GET").arg("save").query(connection).ok();
    let rdb = save.as_ref().and_then(|pair| pair.get(1)).map(|value| !value.is_empty());
    info.persistence = match (aof, rdb) {
        (true, Some(true)) => Some("rdb+aof".into()),
        (true, _) => Some("aof".into()),
        (false, Some(true)) => Some("rdb".into()),
        (false, Some(false)) => Some("none".into()),
        (false, None) => None,
    };
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        for url in [
            "redis://u:s3cret@h:1/0",
            "redis://:s3cret@h",
            "redis://s3cret@h",
            "redis://u:12/s3cret@h",
            "redis://u:12#s3cret@h",
            "redis://u:12?s3cret@h",
            "redis://:p@s3cret@h",
            "redis://h?a?pass=s3cret",
            "redis://h?p=a?pass=s3cret",
            "redis://h?%70ass=s3cret",
            "redis+unix:///:s3cret@",
            "rediss://:s3cret@\u{fffd}",
            "unix:///s?user=u&pass=s3cret",
            "unix:s?user=u&pass=s3cret",
            "redis:?pass=s3cret&://@",
            "redis://:s3cret@h:x",
            "u:s3cret@h",
            "redis:u:s3cret@h",
            "redis:/u:s3cret@h",
            "s3cret@h",
        ] {
            assert!(!without_password(url).contains("s3cret"), "{url} -> {}", without_password(url));
        }
    }

    #[test]
    fn the_reason_why_a_url_is_none_repeats_no_password() {
        let second = Duration::from_secs(1);
        let parse = |url: &str| RedisOptions::parse(url, second, second, true).err().expect("none").to_string();
        assert!(!parse("redis+unix:///s?protocol=resp9?pass=s3cret").contains("s3cret"));
        assert!(parse("redis://h?protocol=resp9").contains("resp9"));
    }

    #[test]
    fn what_is_no_password_is_shown() {
        for (url, shown) in [
            ("redis://h:6380/2", "redis://h:6380/2"),
            ("redis://u:s3cret@h:6380/2", "redis://u:***@h:6380/2"),
            ("redis://u:12/s3cret@h:6380/2", "redis://…@h:6380/2"),
            ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
            ("localhost:6379", "localhost:6379"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert!(check_version("redis", "6.2.5").is_ok());
        assert!(check_version("redis", "10.0").is_ok());
        assert!(check_version("redis", "6.0.16").is_err());
        assert!(check_version("redis", "").is_err());
    }
}
