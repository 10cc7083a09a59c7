//! An open client: one instance, over one store.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::Clock;
use crate::engine::{Engine, Handle};
use crate::limiter_builder::LimiterBuilder;
use crate::status::ServerInfo;
use crate::store::Listener;
use crate::store::memory::MemoryStore;
use crate::store::redis::{Access, RedisOptions, RedisStore};
use crate::{Error, jitter};

/// About 100 MB, should the store be away and everybody wait.
const DEFAULT_MAX_TICKETS: u64 = 100_000;
const MAX_DESCRIPTION: usize = 256;

/// One instance of fairq: it has a name of its own in the store, a scheduler thread, and, on Redis, one connection
/// for commands (to each master in use, in a cluster) and one for messages, whatever the number of limiters and
/// waiters. Clones are the same instance; the last one, with its limiters, tickets and permits, closes it in the
/// background.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
    url: Arc<str>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url).field("instance", &self.instance()).finish_non_exhaustive()
    }
}

/// Opens a client that differs from the defaults.
#[derive(Clone)]
#[must_use = "nothing happens before open()"]
pub struct ClientBuilder {
    url: String,
    connect_timeout: Duration,
    io_timeout: Duration,
    subscribe: bool,
    max_tickets: u64,
    description: Option<String>,
    access: Access,
    clock: Clock,
}

impl ClientBuilder {
    /// How long an attempt to connect may take (default 2 s).
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the server may take to answer before the connection is given up (default 2 s).
    pub fn io_timeout(mut self, timeout: Duration) -> Self {
        self.io_timeout = timeout;
        self
    }

    /// Whether to subscribe to messages (default yes). Without, a grant is found by the next poll.
    pub fn subscribe(mut self, subscribe: bool) -> Self {
        self.subscribe = subscribe;
        self
    }

    /// How many requests and permits this process may have at once (default 100,000). Further requests are refused at once
    /// with [`Error::Overloaded`]: while the store is away nobody else would, and a crowd that waits would take all memory.
    pub fn max_tickets(mut self, max_tickets: u64) -> Self {
        self.max_tickets = max_tickets;
        self
    }

    /// What operators see of this instance (default: host and process id); up to 256 bytes.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The user to log in as, unless the URL names one.
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.access.username = Some(username.into());
        self
    }

    /// The password, unless the URL or a file has it.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.access.password = Some(password.into());
        self
    }

    /// A file that holds the password. It is read for each connection, so that a changed one is taken over without a
    /// restart: while the server does not take it, after it did once, that is an outage, and the file is read again and
    /// again.
    pub fn password_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.password_file = Some(path.into());
        self
    }

    /// As [`password_file`](Self::password_file), for the login of sentinels.
    pub fn sentinel_password_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.sentinel_password_file = Some(path.into());
        self
    }

    /// With `rediss://`: the authorities (PEM) that may sign the server's certificate, in the place of those that the
    /// system trusts. Read for each connection, as the other two.
    pub fn tls_ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.tls_ca_file = Some(path.into());
        self
    }

    /// With `rediss://`: this client's certificate and the chain that leads to its authority (PEM), for servers that want
    /// one.
    pub fn tls_cert_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.tls_cert_file = Some(path.into());
        self
    }

    /// The private key (PEM, not encrypted) of the certificate in [`tls_cert_file`](Self::tls_cert_file); may be the same
    /// file.
    pub fn tls_key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.access.tls_key_file = Some(path.into());
        self
    }

    /// Reads the time from this clock; for tests.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn set_options(&self) -> (Duration, Duration, bool, u64, &Access) {
        (self.connect_timeout, self.io_timeout, self.subscribe, self.max_tickets, &self.access)
    }

    /// What it says of a server; `None`: it names none.
    pub(crate) fn redis_options(&self) -> Result<Option<RedisOptions>, Error> {
        if self.world().is_some() {
            return self.access.check_unused().map(|()| None);
        }
        let timeouts = (self.connect_timeout, self.io_timeout);
        RedisOptions::parse(&self.url, self.access.clone(), timeouts, self.subscribe).map(Some)
    }

    /// The world in memory that the URL names.
    fn world(&self) -> Option<&str> {
        self.url.strip_prefix("memory:").or_else(|| self.url.is_empty().then_some(""))
    }

    /// Opens the client. Judges the URL and connects with the first request.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL or timeout that means nothing, and for a login or certificates that do not go with the
    /// URL.
    pub fn open(self) -> Result<Client, Error> {
        let sensible = Duration::from_millis(10)..=Duration::from_secs(3600);
        if !sensible.contains(&self.connect_timeout) || !sensible.contains(&self.io_timeout) {
            return Err(Error::invalid("timeout", "connect_timeout and io_timeout have to be between 10ms and 1h"));
        }
        let instance: Arc<str> = jitter::random_name()?.into();
        let description = self.description.clone().unwrap_or_else(default_description).replace(['\n', '\r', '\0'], " ");
        if description.len() > MAX_DESCRIPTION {
            let detail = format!("at most {MAX_DESCRIPTION} bytes, since it travels with every call");
            return Err(Error::invalid("description", detail));
        }
        let patience = self.connect_timeout + self.io_timeout + Duration::from_millis(500);
        let engine = Engine::new(instance.clone(), self.clock.clone(), description, patience);
        engine.bound(self.max_tickets);
        let shared: Arc<dyn Listener> = engine.clone();
        let listener: Weak<dyn Listener> = Arc::downgrade(&shared);
        let url = match self.redis_options()? {
            None => {
                let world = self.world().unwrap_or_default();
                engine.attach(Box::new(MemoryStore::open(world, &instance, self.clock.clone(), listener)));
                format!("memory:{world}")
            }
            Some(options) => {
                let shown = options.shown_url();
                engine.attach(Box::new(RedisStore::new(options, &instance, listener)));
                shown
            }
        };
        Ok(Client { handle: Arc::new(Handle::new(engine)), url: url.into() })
    }
}

fn default_description() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "host".into());
    format!("{host}:{}", std::process::id())
}

impl Client {
    /// Opens a client: `memory:` (or nothing) for this process alone; for a cluster of processes
    ///
    /// - `redis://[user:password@]host[:port][/db]` or `unix:///path/to/socket`: one server,
    /// - `redis-cluster://[user:password@]host:port,host:port,…`: a Redis Cluster, found by any of these nodes,
    /// - `redis-sentinel://[user:password@]host:port,…/SERVICE[/db]`: the master of a service, found by any of these
    ///   sentinels; for a login of theirs `?sentinel_user=…&sentinel_password=…`,
    /// - `rediss://`, `rediss-cluster://`, `rediss-sentinel://`: the same by TLS.
    ///
    /// `memory:NAME` is a world of its own. Connects with the first request.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a URL that means nothing.
    ///
    /// ```
    /// let client = fairq::Client::open("memory:")?;
    /// assert!(fairq::Client::open("http://example.org").is_err());
    /// # Ok::<(), fairq::Error>(())
    /// ```
    pub fn open(url: &str) -> Result<Client, Error> {
        Client::builder(url).open()
    }

    /// Opens a client that differs from the defaults.
    pub fn builder(url: &str) -> ClientBuilder {
        ClientBuilder {
            url: url.to_owned(),
            connect_timeout: Duration::from_secs(2),
            io_timeout: Duration::from_secs(2),
            subscribe: true,
            max_tickets: DEFAULT_MAX_TICKETS,
            description: None,
            access: Access::default(),
            clock: Clock::default(),
        }
    }

    /// A client over a store of the simulation's, whose engine is driven by hand.
    #[cfg(test)]
    pub(crate) fn by_hand(
        instance: &str,
        clock: Clock,
        patience: Duration,
        store: impl FnOnce(Weak<dyn Listener>) -> Box<dyn crate::store::Store>,
    ) -> (Client, Arc<Engine>) {
        let engine = Engine::new(instance.into(), clock, format!("host:{instance}"), patience);
        engine.drive_by_hand();
        let shared: Arc<dyn Listener> = engine.clone();
        engine.attach(store(Arc::downgrade(&shared)));
        (Client { handle: Arc::new(Handle::new(engine.clone())), url: "simulation:".into() }, engine)
    }

    /// Over a store that the fuzzer makes.
    #[cfg(fuzzing)]
    pub(crate) fn over(handle: Arc<Handle>) -> Client {
        Client { handle, url: "fuzzing:".into() }
    }

    /// Opens the limiter `name`: any UTF-8 of 1 to 256 bytes.
    pub fn limiter(&self, name: &str) -> LimiterBuilder {
        LimiterBuilder::new(self.handle.clone(), name)
    }

    /// This instance's name in the store: random, and new for each client.
    pub fn instance(&self) -> &str {
        &self.handle.engine().instance
    }

    /// Where it is connected to, without the password.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Connects now and looks whether the server (each master of a cluster) is fit: its version, the rights of the user,
    /// the eviction policy. Blocks for at most the connect and the I/O timeout of each.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; [`Error::Config`] for what has to be changed.
    pub fn check(&self) -> Result<ServerInfo, Error> {
        self.handle.engine().check_store()
    }

    /// The names of all limiters in the store, sorted. Looks through the server's keys: for operators.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Config`], [`Error::Forked`].
    pub fn limiters(&self) -> Result<Vec<String>, Error> {
        self.handle.engine().limiter_names()
    }

    /// Closes the client for all its clones: settles every waiter with [`Error::Closed`], keeps renewing what is held
    /// until it is given back or `drain` is over, gives the rest back, and ends all threads. Blocks for `drain` and a
    /// few seconds at most. Safe to call more than once.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn close(&self, drain: Duration) -> Result<(), Error> {
        self.handle.engine().close(drain)
    }
}
