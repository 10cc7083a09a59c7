//! What a URL says: which servers, how to log in, and how the limiters are spread over them. Nothing connects here.

use std::fmt;
use std::sync::Arc;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

use crate::Error;

pub(super) const SCHEMES: &str = "memory:, redis://, rediss://, redis-cluster://, redis-sentinel:// or unix:///path";
const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

/// One server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Address {
    /// The one that the URL names, whatever it is (a Unix socket, for instance).
    AsGiven,
    At {
        host: Arc<str>,
        port: u16,
    },
}

impl Address {
    pub(super) fn at(host: &str, port: u16) -> Self {
        Address::At { host: host.into(), port }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::AsGiven => f.write_str("the server"),
            Address::At { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Address::At { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// How the limiters are spread over servers.
#[derive(Clone)]
pub(super) enum Layout {
    /// All on the server that the URL names.
    Single,
    /// By slots, over the masters of a cluster, of which these are some nodes.
    Cluster { seeds: Vec<Address> },
    /// All on the master of the service, which these sentinels know.
    Sentinel { sentinels: Vec<Address>, service: Arc<str>, login: RedisConnectionInfo },
}

/// A URL, read.
#[derive(Clone)]
pub(super) struct Target {
    pub layout: Layout,
    /// For a server of the layout; only its address differs from one to the next.
    pub template: ConnectionInfo,
    /// The URL without its passwords.
    pub shown: String,
}

impl Target {
    /// # Errors
    /// [`Error::Invalid`], with nothing secret in it.
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let scheme = url.split(':').next().unwrap_or("");
        match scheme {
            "redis" | "rediss" | "valkey" | "valkeys" | "unix" | "redis+unix" | "valkey+unix" => single(url),
            _ => match scheme.rsplit_once('-') {
                Some((base @ ("redis" | "rediss" | "valkey" | "valkeys"), kind @ ("cluster" | "sentinel"))) => {
                    several(url, base, kind)
                }
                _ => {
                    let shown = without_password(url);
                    Err(Error::invalid("url", format!("{shown:?} has none of the schemes {SCHEMES}")))
                }
            },
        }
    }
}

fn single(url: &str) -> Result<Target, Error> {
    let shown = without_password(url);
    let template = connection_info(url).map_err(|why| unreadable(&shown, &why))?;
    Ok(Target { layout: Layout::Single, template, shown })
}

fn unreadable(shown: &str, why: &str) -> Error {
    Error::invalid("url", format!("{shown:?}: {why}; expected {SCHEMES}"))
}

fn connection_info(url: &str) -> Result<ConnectionInfo, String> {
    #[cfg(not(feature = "tls"))]
    if url.starts_with("rediss:") || url.starts_with("valkeys:") {
        return Err("this build has no TLS (it is the feature `tls`)".into());
    }
    // The crate's reason repeats a part of the URL, which must not be one with a password in it.
    let may_tell = !url.contains('@') && !url.contains("pass");
    url.into_connection_info()
        .map_err(|error| error.detail().filter(|_| may_tell).unwrap_or("it cannot be read").to_owned())
}

/// `SCHEME://[user:password@]host[:port],…[/path][?key=value&…]`: the form of a cluster and of sentinels. Whatever is
/// wrong with it, nothing of it is shown but the scheme: nobody can say where the password stands.
fn several(url: &str, base: &str, kind: &str) -> Result<Target, Error> {
    let hidden = format!("{base}-{kind}://…");
    parse_several(url, base, kind).map_err(|why| unreadable(&hidden, &why))
}

fn parse_several(url: &str, base: &str, kind: &str) -> Result<Target, String> {
    let (_, rest) = url.split_once("://").ok_or("it has no ://")?;
    let (rest, fragment) = rest.split_once('#').map_or((rest, None), |(rest, fragment)| (rest, Some(fragment)));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, hosts) = authority.rsplit_once('@').map_or((None, authority), |(login, hosts)| (Some(login), hosts));
    let default_port = if kind == "cluster" { REDIS_PORT } else { SENTINEL_PORT };
    let nodes = hosts.split(',').map(|host| node(host, default_port)).collect::<Result<Vec<Address>, String>>()?;
    let options = Options::parse(query)?;
    // One of the nodes stands for all: the crate reads login and database as in any other URL.
    let (service, database) = if kind == "cluster" { ("", path) } else { path.split_once('/').unwrap_or((path, "")) };
    let login = login.map(|login| format!("{login}@")).unwrap_or_default();
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    let template = connection_info(&format!("{base}://{login}{}/{database}{fragment}", nodes[0]))?;
    let layout = match kind {
        "cluster" if template.redis_settings().db() != 0 => return Err("a cluster has only the database 0".into()),
        "cluster" if options.any() => return Err("sentinel_user and sentinel_password are for sentinels".into()),
        "cluster" => Layout::Cluster { seeds: nodes },
        _ if service.is_empty() => {
            return Err("it does not name the service: redis-sentinel://host:26379/SERVICE".into());
        }
        _ => Layout::Sentinel { sentinels: nodes, service: decoded(service)?.into(), login: options.login() },
    };
    let shown = match is_odd(url) {
        true => format!("{base}-{kind}://…"),
        false => shown(base, kind, &template, hosts, path, &options),
    };
    Ok(Target { layout, template, shown })
}

fn node(text: &str, default_port: u16) -> Result<Address, String> {
    let no_host = || "a host is missing, or is none (host:port,host:port,…)".to_owned();
    let parsed = url::Url::parse(&format!("redis://{text}")).map_err(|_| no_host())?;
    let bare = matches!(parsed.path(), "" | "/") && parsed.username().is_empty() && parsed.query().is_none();
    let host = match parsed.host().filter(|_| bare) {
        Some(url::Host::Domain(name)) if !name.is_empty() => name.to_owned(),
        Some(url::Host::Ipv4(ip)) => ip.to_string(),
        Some(url::Host::Ipv6(ip)) => ip.to_string(),
        _ => return Err(no_host()),
    };
    Ok(Address::at(&host, parsed.port().unwrap_or(default_port)))
}

fn decoded(text: &str) -> Result<String, String> {
    // A form's decoding, but for `+`, which stands for itself in a path.
    let pair = format!("x={}", text.replace('+', "%2B"));
    let value = url::form_urlencoded::parse(pair.as_bytes()).next().map(|(_, value)| value.into_owned());
    value.filter(|text| !text.contains(char::REPLACEMENT_CHARACTER)).ok_or_else(|| "its path is not UTF-8".to_owned())
}

/// What may follow the `?`.
#[derive(Default)]
struct Options {
    sentinel_user: Option<String>,
    sentinel_password: Option<String>,
}

impl Options {
    fn parse(query: &str) -> Result<Self, String> {
        let mut options = Options::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*key {
                "sentinel_user" => options.sentinel_user = Some(value.into_owned()),
                "sentinel_password" => options.sentinel_password = Some(value.into_owned()),
                _ => return Err("of options it takes only sentinel_user and sentinel_password".into()),
            }
        }
        Ok(options)
    }

    fn any(&self) -> bool {
        self.sentinel_user.is_some() || self.sentinel_password.is_some()
    }

    fn login(&self) -> RedisConnectionInfo {
        let mut login = RedisConnectionInfo::default();
        if let Some(user) = &self.sentinel_user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.sentinel_password {
            login = login.set_password(password);
        }
        login
    }
}

fn shown(base: &str, kind: &str, template: &ConnectionInfo, hosts: &str, path: &str, options: &Options) -> String {
    let settings = template.redis_settings();
    let user = settings.username().unwrap_or_default();
    let login = match settings.password() {
        Some(_) => format!("{user}:***@"),
        None if user.is_empty() => String::new(),
        None => "***@".into(), // a name without a password is hardly a name
    };
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    let user = options.sentinel_user.as_ref().map(|user| format!("sentinel_user={user}"));
    let password = options.sentinel_password.as_ref().map(|_| "sentinel_password=***".to_owned());
    let query: Vec<String> = user.into_iter().chain(password).collect();
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    format!("{base}-{kind}://{login}{hosts}{path}{query}")
}

/// Better too little of a URL than a password. One that was not escaped stands where nobody would look for it: with a
/// slash in it, say, it is a part of the path.
fn without_password(url: &str) -> String {
    let has_hosts = url.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//"));
    match url::Url::parse(url) {
        Ok(parsed) if has_hosts && !is_odd(url) => masked(parsed),
        _ => outline(url),
    }
}

/// With an @ in what follows the hosts, that is perhaps the rest of a password that was not escaped.
fn is_odd(url: &str) -> bool {
    let after_hosts = url.split_once("://").and_then(|(_, rest)| rest.split_once(['/', '\\', '?', '#']));
    after_hosts.is_some_and(|(_, rest)| rest.contains('@'))
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

/// The same server settings, at another address.
pub(super) fn moved_to(template: &ConnectionInfo, address: &Address) -> ConnectionInfo {
    let Address::At { host, port } = address else { return template.clone() };
    let address = match template.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host: host.to_string(),
            port: *port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host.to_string(), *port),
    };
    template.clone().set_addr(address)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        match Target::parse(url) {
            Ok(target) => target.shown,
            Err(error) => format!("{error} {error:?}"),
        }
    }

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
            "redis+unix:///s?protocol=resp9?pass=s3cret",
            "redis+unix:///:s3cret@",
            "redis+unix:///:s3cret@h/..",
            "rediss://:s3cret@\u{fffd}",
            "unix:///s?user=u&pass=s3cret",
            "unix:s?user=u&pass=s3cret",
            "redis:?pass=s3cret&://@",
            "redis://:s3cret@h:x",
            "u:s3cret@h",
            "redis:u:s3cret@h",
            "redis:u:s3cret@h://i",
            "http://u\\:s3cret@h",
            "redis:/u:s3cret@h",
            "s3cret@h",
            "redis-cluster://u:s3cret@h:1,i:2",
            "redis-cluster://s3cret@h:1,i:2",
            "redis-cluster://:s3cret@h:1,i:2/7",
            "redis-cluster://u:p/s3cret@h:1",
            "redis-cluster://u:1?s3cret@h:1",
            "redis-cluster://u:1#s3cret@h:1",
            "redis-cluster:u:s3cret@h",
            "redis-cluster://h:s3cret",
            "redis-cluster://s3cret@",
            "rediss-sentinel://u:s3cret@h:1,i:2/main",
            "redis-sentinel://h:1,i:2/main?sentinel_user=u&sentinel_password=s3cret",
            "redis-sentinel://h:1/main?sentinel_password=s3cret@i",
            "redis-sentinel://h:1/main?sentinel-password=s3cret",
            "redis-sentinel://h:1?sentinel_password=s3cret",
            "redis-sentinel://u:1/s3cret@h/main",
            "redis-sentinel://u:p@1s3cret/@h/main",
            "redis-sentinel://u:1/s3cret#@h/main",
            "redis-sentinels://u:s3cret@h:1/main",
        ] {
            assert!(!shown(url).contains("s3cret"), "{url} -> {}", shown(url));
        }
        assert_eq!(shown("redis-cluster://u:s3cret@h:1,i:2"), "redis-cluster://u:***@h:1,i:2");
    }

    #[test]
    fn what_is_no_password_is_shown() {
        for (url, expected) in [
            ("redis://h:6380/2", "redis://h:6380/2"),
            ("redis://u:s3cret@h:6380/2", "redis://u:***@h:6380/2"),
            ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ] {
            assert_eq!(shown(url), expected);
        }
        assert!(shown("redis://u:12/s3cret@h:6380/2").contains("redis://…@h:6380/2"));
        assert!(shown("localhost:6379").contains("localhost:6379"));
        assert!(shown("redis://h?protocol=resp9").contains("resp9"), "what is wrong with it");
    }

    #[test]
    fn a_cluster_is_a_list_of_nodes() {
        let target = Target::parse("redis-cluster://app:pa%40ss@a,b:7001,[::1]:7002/0").unwrap();
        let Layout::Cluster { seeds } = target.layout else { panic!("not a cluster") };
        assert_eq!(seeds, [Address::at("a", 6379), Address::at("b", 7001), Address::at("::1", 7002)]);
        assert_eq!(target.template.redis_settings().password(), Some("pa@ss"));
        assert_eq!(seeds[2].to_string(), "[::1]:7002");
    }

    #[test]
    fn sentinels_have_a_login_and_a_service_of_their_own() {
        let target = Target::parse("redis-sentinel://a,b:1/main%20one/3?sentinel_user=s&sentinel_password=p").unwrap();
        let Layout::Sentinel { sentinels, service, login } = target.layout else { panic!("no sentinels") };
        assert_eq!(sentinels, [Address::at("a", 26_379), Address::at("b", 1)]);
        assert_eq!((&*service, login.username(), login.password()), ("main one", Some("s"), Some("p")));
        assert_eq!((target.template.redis_settings().db(), target.template.redis_settings().password()), (3, None));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for url in [
            "redis-cluster://",
            "redis-cluster://a,,b",
            "redis-cluster://a:b",
            "redis-cluster://a/3",
            "redis-cluster://a?x=y",
            "redis-cluster://a?sentinel_user=u",
            "redis-sentinel://a",
            "redis-sentinel://a/main/x",
            "redis-galaxy://a",
            "unix-cluster://a",
            "redis-cluster:a",
        ] {
            assert!(matches!(Target::parse(url), Err(Error::Invalid { .. })), "{url}");
        }
    }
}
