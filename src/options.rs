//! Options by key and value, as bindings and configuration files set them. One table yields the keys, the defaults,
//! the documentation, and the errors.

use std::time::Duration;

use crate::{Change, ClientBuilder, Error, LimiterBuilder, Outage, parse_duration};

/// What an option belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One instance; set when a client is opened.
    Client,
    /// One limiter; set when it is opened.
    Limiter,
    /// What an operator may change of a limiter while it runs.
    Change,
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// What it belongs to.
    pub scope: Scope,
    /// Its key.
    pub key: &'static str,
    /// Its default, as it would be written; empty: it is not set.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

const fn client(key: &'static str, default: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec { scope: Scope::Client, key, default, doc }
}

const fn limiter(key: &'static str, default: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec { scope: Scope::Limiter, key, default, doc }
}

const fn change(key: &'static str, doc: &'static str) -> OptionSpec {
    OptionSpec { scope: Scope::Change, key, default: "as declared", doc }
}

/// Every option there is.
pub const OPTIONS: &[OptionSpec] = &[
    client("connect_timeout", "2s", "how long an attempt to connect may take"),
    client("io_timeout", "2s", "how long the server may take to answer before the connection is given up"),
    client("subscribe", "true", "listen for grants by Pub/Sub; `false`: only polling finds them"),
    client("max_tickets", "100000", "how many requests and permits this process may have at once; more are refused"),
    client("description", "host:pid", "what operators see of this instance"),
    client("username", "", "the user to log in as, unless the URL names one"),
    client("password", "", "the password, unless the URL or a file has it"),
    client("password_file", "", "a file with the password, read for each connection: a changed one is taken over"),
    client("sentinel_password_file", "", "the same for the login of sentinels"),
    client("tls_ca_file", "", "with `rediss://`: the authorities to trust in the place of the system's (PEM)"),
    client("tls_cert_file", "", "with `rediss://`: this client's certificate, for servers that want one (PEM)"),
    client("tls_key_file", "", "the certificate's private key (PEM, not encrypted); may be the same file"),
    limiter("limit", "none", "how much cost may be held at once; `0` admits nobody; `none` attaches to a declared one"),
    limiter("max_queue", "10000", "how many may wait, or `unbounded`; `0`: who cannot be admitted at once is rejected"),
    limiter("max_wait", "30s", "how long a request waits that does not say so itself; or `forever`"),
    limiter("lease", "10s", "after how long a silence of its process a slot is free again; `100ms` to `1d`"),
    limiter("max_hold", "0", "how long a permit may be held; `0`: as long as its process lives"),
    limiter("idle", "10m", "after how long without any use the store forgets the limiter; at least two leases"),
    limiter("poll", "1s", "how often an instance with waiting tickets asks, should no message come; `10ms` to `60s`"),
    limiter("outage", "wait", "while the store is away: `wait`, `fail`, or `local:N` (each instance admits up to N)"),
    change("limit", "how much cost may be held at once"),
    change("max_queue", "how many may wait; or `unbounded`"),
    change("max_wait", "how long a request waits that does not say so itself; or `forever`"),
    change("lease", "after how long a silence of its process a slot is free again; `100ms` to `1d`"),
    change("max_hold", "how long a permit may be held; `0`: as long as its process lives"),
    change("paused", "`true` admits nobody until it is `false` again; what is held stays held"),
    change("reset", "`true` forgets what operators have set before, so that the declared settings hold again"),
];

/// Options of a client whose value is any text.
const TEXTS: [&str; 8] = [
    "description",
    "username",
    "password",
    "password_file",
    "sentinel_password_file",
    "tls_ca_file",
    "tls_cert_file",
    "tls_key_file",
];

fn find(scope: Scope, key: &str) -> Result<&'static OptionSpec, Error> {
    OPTIONS.iter().find(|option| option.scope == scope && option.key == key).ok_or_else(|| {
        let known: Vec<&str> = OPTIONS.iter().filter(|o| o.scope == scope).map(|o| o.key).collect();
        Error::invalid("option", format!("there is no {key:?}; there are {}", known.join(", ")))
    })
}

/// Whether there is such an option, of whatever scope, and the value means something for it.
#[cfg_attr(not(target_pointer_width = "64"), expect(dead_code, reason = "for the C ABI"))]
pub(crate) fn check(key: &str, value: &str) -> Result<(), Error> {
    let of_that_key = || OPTIONS.iter().filter(|option| option.key == key);
    let Some(first) = of_that_key().next() else {
        let known: Vec<&str> = OPTIONS.iter().map(|option| option.key).collect();
        return Err(Error::invalid("option", format!("there is no {key:?}; there are {}", known.join(", "))));
    };
    let judged = of_that_key().map(|option| match option.key {
        "limit" if value == "none" && option.scope == Scope::Limiter => Ok(()),
        "limit" | "max_queue" | "max_tickets" => number(option, value).map(drop),
        "subscribe" | "paused" | "reset" => truth(option, value).map(drop),
        "outage" => outage(option, value).map(drop),
        key if TEXTS.contains(&key) => Ok(()),
        _ => duration(option, value).map(drop),
    });
    judged.reduce(Result::or).unwrap_or_else(|| Err(bad(first, value, "means nothing")))
}

fn bad(option: &'static OptionSpec, value: &str, why: &str) -> Error {
    Error::invalid(option.key, format!("{value:?} {why}; it says {}", option.doc))
}

fn duration(option: &'static OptionSpec, value: &str) -> Result<Duration, Error> {
    parse_duration(value).map_err(|why| bad(option, value, &format!("is no duration ({why})")))
}

fn number(option: &'static OptionSpec, value: &str) -> Result<u64, Error> {
    if value == "unbounded" && option.key == "max_queue" {
        return Ok(u64::MAX);
    }
    value.parse().map_err(|_| bad(option, value, "is no whole number"))
}

fn truth(option: &'static OptionSpec, value: &str) -> Result<bool, Error> {
    value.parse().map_err(|_| bad(option, value, "is neither true nor false"))
}

impl ClientBuilder {
    /// Sets an option by its key; see [`OPTIONS`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown key or a value that means nothing.
    ///
    /// ```
    /// let client = fairq::Client::builder("memory:").option("io_timeout", "500ms")?.open()?;
    /// # Ok::<(), fairq::Error>(())
    /// ```
    pub fn option(self, key: &str, value: &str) -> Result<Self, Error> {
        let option = find(Scope::Client, key)?;
        Ok(match option.key {
            "connect_timeout" => self.connect_timeout(duration(option, value)?),
            "io_timeout" => self.io_timeout(duration(option, value)?),
            "subscribe" => self.subscribe(truth(option, value)?),
            "max_tickets" => self.max_tickets(number(option, value)?),
            "description" => self.description(value),
            _ if value.is_empty() => self,
            "username" => self.username(value),
            "password" => self.password(value),
            "password_file" => self.password_file(value),
            "sentinel_password_file" => self.sentinel_password_file(value),
            "tls_ca_file" => self.tls_ca_file(value),
            "tls_cert_file" => self.tls_cert_file(value),
            _ => self.tls_key_file(value),
        })
    }
}

impl LimiterBuilder {
    /// Sets an option by its key; see [`OPTIONS`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown key or a value that means nothing.
    ///
    /// ```
    /// # let client = fairq::Client::open("memory:doc-option")?;
    /// let limiter = client.limiter("exports").option("limit", "4")?.option("lease", "5s")?.open()?;
    /// # Ok::<(), fairq::Error>(())
    /// ```
    pub fn option(self, key: &str, value: &str) -> Result<Self, Error> {
        let option = find(Scope::Limiter, key)?;
        Ok(match option.key {
            "limit" if value == "none" => self,
            "limit" => self.limit(number(option, value)?),
            "max_queue" => self.max_queue(number(option, value)?),
            "max_wait" => self.max_wait(duration(option, value)?),
            "lease" => self.lease(duration(option, value)?),
            "max_hold" => self.max_hold(duration(option, value)?),
            "idle" => self.idle(duration(option, value)?),
            "poll" => self.poll(duration(option, value)?),
            _ => self.outage(outage(option, value)?),
        })
    }
}

impl Change {
    /// Sets an option by its key; see [`OPTIONS`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown key or a value that means nothing.
    ///
    /// ```
    /// let change = fairq::Change::new().option("limit", "8")?.option("paused", "false")?;
    /// assert_eq!(change, fairq::Change::new().limit(8).resume());
    /// # Ok::<(), fairq::Error>(())
    /// ```
    pub fn option(self, key: &str, value: &str) -> Result<Self, Error> {
        let option = find(Scope::Change, key)?;
        Ok(match option.key {
            "limit" => self.limit(number(option, value)?),
            "max_queue" => self.max_queue(number(option, value)?),
            "max_wait" => self.max_wait(duration(option, value)?),
            "lease" => self.lease(duration(option, value)?),
            "max_hold" => self.max_hold(duration(option, value)?),
            "paused" if truth(option, value)? => self.pause(),
            "paused" => self.resume(),
            _ if truth(option, value)? => self.reset(),
            _ => self,
        })
    }
}

fn outage(option: &'static OptionSpec, value: &str) -> Result<Outage, Error> {
    match value.split_once(':') {
        None if value == "wait" => Ok(Outage::Wait),
        None if value == "fail" => Ok(Outage::Fail),
        Some(("local", limit)) => Ok(Outage::Local { limit: number(option, limit)? }),
        _ => Err(bad(option, value, "is no policy")),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Client;

    /// Setting every option to its default changes nothing, so the table's defaults are the code's.
    #[test]
    fn the_table_tells_the_defaults() {
        let client = Client::open("memory:options").unwrap();
        let plain = client.limiter("x").limit(3);
        let mut set = client.limiter("x").limit(3);
        for option in OPTIONS.iter().filter(|o| o.scope == Scope::Limiter) {
            set = set.option(option.key, option.default).unwrap();
        }
        assert_eq!(plain.declared(), set.declared());
        let mut builder = Client::builder("memory:");
        for option in OPTIONS.iter().filter(|o| o.scope == Scope::Client && o.key != "description") {
            builder = builder.option(option.key, option.default).unwrap();
        }
        assert_eq!(builder.set_options(), Client::builder("memory:").set_options());
    }

    #[test]
    fn the_readme_has_every_option_as_the_table_tells_it() {
        let readme = include_str!("../README.md");
        for OptionSpec { scope, key, default, doc } in OPTIONS {
            let row = match scope {
                Scope::Change => format!("| `{key}` | {doc} |"),
                _ if default.is_empty() => format!("| `{key}` | | {doc} |"),
                _ => format!("| `{key}` | `{default}` | {doc} |"),
            };
            assert!(readme.contains(&row), "README.md lacks the row\n{row}");
        }
    }

    #[test]
    fn a_wrong_option_is_named_and_explained() {
        let Err(error) = Client::builder("memory:").option("io_timout", "1s") else { panic!("it is unknown") };
        let error = error.to_string();
        assert!(error.contains("io_timout") && error.contains("io_timeout"), "{error}");
        let client = Client::open("memory:options").unwrap();
        for (key, value) in [("limit", "-1"), ("lease", "ten"), ("outage", "local"), ("outage", "local:x")] {
            assert!(client.limiter("x").option(key, value).is_err(), "{key}={value}");
        }
    }

    #[test]
    fn a_login_and_certificates_go_with_a_server() {
        let secrets = ["username", "password", "password_file", "sentinel_password_file"];
        let files = ["tls_ca_file", "tls_cert_file", "tls_key_file"];
        for key in secrets.into_iter().chain(files) {
            check(key, "s3cret").unwrap();
            let Err(error) = Client::builder("memory:").option(key, "s3cret").unwrap().open() else { panic!("{key}") };
            assert!(matches!(error, Error::Invalid { what, .. } if what == key), "{error:?}");
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
