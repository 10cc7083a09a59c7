//! Opening a limiter.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Handle;
use crate::settings::{LimiterOptions, Outage, Settings, UNBOUNDED, millis};
use crate::{Error, Limiter};

const MAX_NAME: usize = 256;
const DEFAULT_POLL: Duration = Duration::from_secs(1);

/// Opens a limiter; from [`Client::limiter`](crate::Client::limiter).
#[derive(Clone)]
#[must_use = "nothing happens before open()"]
pub struct LimiterBuilder {
    handle: Arc<Handle>,
    name: String,
    settings: Settings,
    declares: bool,
    tuned: bool,
    poll: Duration,
    outage: Outage,
}

impl LimiterBuilder {
    pub(crate) fn new(handle: Arc<Handle>, name: &str) -> Self {
        LimiterBuilder {
            handle,
            name: name.to_owned(),
            settings: Settings::default(),
            declares: false,
            tuned: false,
            poll: DEFAULT_POLL,
            outage: Outage::default(),
        }
    }

    /// Declares how much cost may be held at once; 0 admits nobody. When processes declare different settings, the
    /// newest open that brings something new wins and the others warn; what an operator has set stands above both. Without a limit, `open`
    /// attaches to a limiter that others have declared.
    pub fn limit(mut self, limit: u64) -> Self {
        self.settings.limit = limit;
        self.declares = true;
        self
    }

    /// How many may wait (default 10,000; [`u64::MAX`]: any number); 0: nobody, who cannot be admitted at once is
    /// rejected.
    pub fn max_queue(mut self, max_queue: u64) -> Self {
        self.settings.max_queue = max_queue.min(UNBOUNDED);
        self.tuned = true;
        self
    }

    /// How long a request waits that does not say so itself (default 30 s); [`Duration::MAX`]: for ever.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.settings.max_wait = millis(max_wait);
        self.tuned = true;
        self
    }

    /// How long the store believes in an instance that has stopped talking (default 10 s): the time after which the
    /// slots of a crashed process are free again.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = millis(lease);
        self.tuned = true;
        self
    }

    /// How long a permit may be held (default: as long as its process lives); zero: no bound.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.settings.max_hold = millis(max_hold);
        self.tuned = true;
        self
    }

    /// After which time without any use the store forgets the limiter (default 10 min; at least two leases).
    pub fn idle(mut self, idle: Duration) -> Self {
        self.settings.idle = millis(idle);
        self.tuned = true;
        self
    }

    /// How often an instance with waiting tickets asks the store (default 1 s): a free slot is filled within that
    /// time even when no message gets through. Never longer than a third of the lease.
    pub fn poll(mut self, poll: Duration) -> Self {
        self.poll = poll;
        self
    }

    /// What waits does while the store is away.
    pub fn outage(mut self, outage: Outage) -> Self {
        self.outage = outage;
        self
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn declared(&self) -> (String, Duration, Outage) {
        (self.settings.words(), self.poll, self.outage)
    }

    /// Opens the limiter. Does not ask the store: what is declared travels with the first request.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name or setting that means nothing, [`Error::Closed`], [`Error::Forked`].
    pub fn open(mut self) -> Result<Limiter, Error> {
        check_name(&self.name)?;
        if self.tuned && !self.declares {
            return Err(Error::invalid("limit", "settings are declared together with a limit: add .limit(n)"));
        }
        if self.poll < Duration::from_millis(10) || self.poll > Duration::from_secs(60) {
            return Err(Error::invalid("poll", "it has to be between 10ms and 60s"));
        }
        self.settings.idle = self.settings.idle.max(if self.tuned { 0 } else { 2 * self.settings.lease });
        self.settings.check()?;
        let options =
            LimiterOptions { settings: self.declares.then_some(self.settings), poll: self.poll, outage: self.outage };
        let core = self.handle.engine().open_limiter(&self.name, &options)?;
        Ok(Limiter::new(self.handle, core))
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > MAX_NAME {
        let detail = format!("a limiter's name has between 1 and {MAX_NAME} bytes, this one has {}", name.len());
        return Err(Error::invalid("name", detail));
    }
    Ok(())
}
