//! A limiter's settings: what opens declare, and what operators set above them.

use std::time::Duration;

use crate::Error;

/// Stands for "no bound" (queue length, waiting time) in the store: the largest integer a Lua number holds exactly.
pub(crate) const UNBOUNDED: u64 = (1 << 53) - 1;

/// Longer lines are declared by those who want them: a line that only grows hides an overload until memory ends.
const DEFAULT_MAX_QUEUE: u64 = 10_000;
const MAX_LIMIT: u64 = 1_000_000_000;
const MIN_LEASE: Duration = Duration::from_millis(100);
const MAX_LEASE: Duration = Duration::from_secs(86_400);

/// The settings of a limiter that the store keeps; durations in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub limit: u64,
    pub max_queue: u64,
    pub max_wait: u64,
    pub lease: u64,
    pub max_hold: u64,
    pub idle: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { limit: 0, max_queue: DEFAULT_MAX_QUEUE, max_wait: 30_000, lease: 10_000, max_hold: 0, idle: 600_000 }
    }
}

impl Settings {
    /// The six words that travel to the store.
    pub(crate) fn words(&self) -> String {
        let Settings { limit, max_queue, max_wait, lease, max_hold, idle } = self;
        format!("{limit} {max_queue} {max_wait} {lease} {max_hold} {idle}")
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_limit(self.limit)?;
        check_lease(self.lease)?;
        if self.idle < 2 * self.lease {
            return Err(Error::invalid("idle", "it has to be at least two leases, or a live limiter could expire"));
        }
        Ok(())
    }
}

pub(crate) fn check_limit(limit: u64) -> Result<(), Error> {
    if limit > MAX_LIMIT {
        return Err(Error::invalid("limit", format!("{limit} is above {MAX_LIMIT}")));
    }
    Ok(())
}

pub(crate) fn check_lease(lease: u64) -> Result<(), Error> {
    let lease = Duration::from_millis(lease);
    if !(MIN_LEASE..=MAX_LEASE).contains(&lease) {
        let detail = format!("{} is not between 100ms and 1d", crate::format_duration(lease));
        return Err(Error::invalid("lease", detail));
    }
    Ok(())
}

/// A duration in whole milliseconds, rounded up so that a short wait never becomes none.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(UNBOUNDED).min(UNBOUNDED)
}

/// What [`millis`] made, as a duration; [`Duration::MAX`] for no bound.
pub(crate) fn from_millis(ms: u64) -> Duration {
    if ms >= UNBOUNDED { Duration::MAX } else { Duration::from_millis(ms) }
}

/// The names of the settings, in the order in which the store keeps an override.
pub(crate) const OVERRIDABLE: [&str; 7] = ["limit", "max_queue", "max_wait", "lease", "max_hold", "idle", "paused"];

/// An operator's change to a limiter, for [`Limiter::configure`](crate::Limiter::configure). It stands above what
/// opens declare, until it is reset.
///
/// ```
/// # use fairq::Change;
/// let change = Change::new().limit(8).max_wait(std::time::Duration::from_secs(60));
/// let back_to_declared = Change::new().reset();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub(crate) reset: bool,
    /// By the order of [`OVERRIDABLE`].
    pub(crate) values: [Option<u64>; 7],
}

impl Change {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Change::default()
    }

    /// How much cost may be held at once; 0 admits nobody.
    #[must_use]
    pub fn limit(self, limit: u64) -> Self {
        self.set(0, limit)
    }

    /// How many may wait.
    #[must_use]
    pub fn max_queue(self, max_queue: u64) -> Self {
        self.set(1, max_queue.min(UNBOUNDED))
    }

    /// How long a request waits that does not say so itself.
    #[must_use]
    pub fn max_wait(self, max_wait: Duration) -> Self {
        self.set(2, millis(max_wait))
    }

    /// How long the store believes in an instance that has stopped talking.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        self.set(3, millis(lease))
    }

    /// How long a permit may be held; zero: as long as its owner lives.
    #[must_use]
    pub fn max_hold(self, max_hold: Duration) -> Self {
        self.set(4, millis(max_hold))
    }

    /// Admits nobody until [`Change::resume`]; what is held stays held.
    #[must_use]
    pub fn pause(self) -> Self {
        self.set(6, 1)
    }

    /// Ends a pause.
    #[must_use]
    pub fn resume(self) -> Self {
        self.set(6, 0)
    }

    /// Forgets every earlier override before the others of this change are applied.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.reset = true;
        self
    }

    fn set(mut self, index: usize, value: u64) -> Self {
        self.values[index] = Some(value);
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.values[0].map_or(Ok(()), check_limit)?;
        self.values[3].map_or(Ok(()), check_lease)
    }
}

/// What a caller brings to the store about a limiter's configuration, with stamps that tell which is newer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declaration {
    /// [`Settings::words`], or empty when the caller only attaches.
    pub declared: String,
    pub declared_at: u64,
    /// Seven words, `-` for what no operator has set.
    pub overrides: String,
    pub override_at: u64,
    /// On the first calls after an open: the newest open wins.
    pub declares: bool,
    /// Of the instance, for operators.
    pub description: String,
}

/// The configuration in force, as the store tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigView {
    /// By the order of [`OVERRIDABLE`].
    pub values: [u64; 7],
    pub declared: String,
    pub declared_at: u64,
    pub overrides: String,
    pub override_at: u64,
}

impl ConfigView {
    pub(crate) fn settings(&self) -> Settings {
        let [limit, max_queue, max_wait, lease, max_hold, idle, _] = self.values;
        Settings { limit, max_queue, max_wait, lease, max_hold, idle }
    }

    pub(crate) fn paused(&self) -> bool {
        self.values[6] != 0
    }

    /// The names of what an operator has set.
    pub(crate) fn overridden(&self) -> Vec<&'static str> {
        let words = self.overrides.split(' ');
        words.zip(OVERRIDABLE).filter(|(word, _)| !word.is_empty() && *word != "-").map(|(_, name)| name).collect()
    }
}

/// What waits does while the store is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Outage {
    /// Holds the line until each deadline (the default).
    #[default]
    Wait,
    /// Fails with [`Error::Unavailable`] as soon as an attempt to connect has failed.
    Fail,
    /// Each instance admits up to `limit` by itself, in its own order; counted again when the store is back. Such
    /// permits have fence 0, and over the whole cluster more than the limiter's limit may run.
    Local {
        /// How much cost this instance may hold at once.
        limit: u64,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct LimiterOptions {
    pub settings: Option<Settings>,
    pub poll: Duration,
    pub outage: Outage,
}
