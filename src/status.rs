//! What operators see: how a limiter stands, who holds, who waits, and what the server is like.

use std::time::Duration;

/// How a limiter stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The limiter's name.
    pub name: String,
    /// How much cost may be held at once.
    pub limit: u64,
    /// The cost that is held. More than the limit after that was lowered, or after a loss of state.
    pub used: u64,
    /// How many permits are held.
    pub holders: u64,
    /// How many tickets wait.
    pub waiting: u64,
    /// Whether an operator has stopped admission.
    pub paused: bool,
    /// How many may wait; [`u64::MAX`] for no bound.
    pub max_queue: u64,
    /// How long a request waits that does not say so; [`Duration::MAX`] for ever.
    pub max_wait: Duration,
    /// How long the store believes in an instance that has stopped talking.
    pub lease: Duration,
    /// How long a permit may be held, where that is bounded.
    pub max_hold: Option<Duration>,
    /// The settings that an operator has set above the declared ones.
    pub overridden: Vec<&'static str>,
    /// Permits given since the limiter came to be.
    pub granted_total: u64,
    /// Live instances that use it.
    pub instances: u64,
    /// Changes whenever the store has lost state.
    pub epoch: u64,
    /// How long nobody is admitted yet, after a loss of state; zero in quiet times.
    pub grace: Duration,
    /// Mean time a permit is held, weighted by cost, once one came back.
    pub typical_hold: Option<Duration>,
    /// How long a newcomer is likely to wait, once a permit came back.
    pub estimate: Option<Duration>,
    /// Cost that came back over the limit since the limiter came to be. After a loss of state everything is taken that was
    /// held, also where others had been admitted in the meantime: more than the limit was in use then.
    pub overshoot_total: u64,
}

/// One holder or waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The ticket's full name, as [`Limiter::revoke`](crate::Limiter::revoke) takes it.
    pub ticket: String,
    /// The instance that owns it.
    pub instance: String,
    /// What that instance calls itself: by default host and process id.
    pub description: String,
    /// The request's label.
    pub label: String,
    /// Its cost.
    pub cost: u64,
    /// Its place: smaller was earlier. Microseconds of the store's clock at its arrival.
    pub order: u64,
    /// The permit's fence; none while waiting.
    pub fence: Option<u64>,
    /// How long it has been waiting or holding.
    pub age: Duration,
}

/// What a revoked ticket was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// It held a permit, which is lost now.
    Held,
    /// It waited, and has left the line.
    Waiting,
    /// There is no such ticket.
    Unknown,
}

/// Where a ticket stands in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// 1 is next.
    pub position: u64,
    /// How long it is likely to wait still: position times mean hold time over limit (Little's law), once known.
    pub estimate: Option<Duration>,
}

/// What the store behind a client is like. Of several masters it says the worst.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// `memory`, `redis` or `valkey`.
    pub kind: String,
    /// The server's version.
    pub version: String,
    /// Changes when the server restarts or another one takes over.
    pub run_id: String,
    /// `maxmemory-policy`, where the server tells.
    pub maxmemory_policy: Option<String>,
    /// `none`, `rdb`, `aof` or `rdb+aof`, where the server tells.
    pub persistence: Option<String>,
    /// What an operator should change, in plain words.
    pub warnings: Vec<String>,
}
