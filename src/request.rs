//! One request for a permit.

use std::sync::Arc;
use std::time::Duration;

use crate::Error;

const MAX_COST: u64 = 1_000_000_000;
const MAX_LABEL: usize = 256;

/// What is asked for: how much, how long to wait for it, and what operators see of it.
///
/// ```
/// use std::time::Duration;
/// let request = fairq::Request::new().cost(2).max_wait(Duration::from_secs(15)).label("tenant 7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) max_wait: Option<Duration>,
    pub(crate) cost: u64,
    pub(crate) label: Arc<str>,
}

impl Default for Request {
    fn default() -> Self {
        Request { max_wait: None, cost: 1, label: "".into() }
    }
}

impl Request {
    /// Cost 1, no label, and the limiter's own `max_wait`.
    pub fn new() -> Self {
        Request::default()
    }

    /// How long to wait in line; zero: have it at once, or not at all. [`Duration::MAX`]: for ever.
    #[must_use]
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = Some(max_wait);
        self
    }

    /// Waits until granted, cancelled or closed.
    #[must_use]
    pub fn wait_forever(self) -> Self {
        self.max_wait(Duration::MAX)
    }

    /// How much of the limit the permit takes. The head of the line waits until its cost fits, and nobody passes it.
    #[must_use]
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// What operators see in the lists of holders and waiters; up to 256 bytes, without line breaks.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into().into();
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.cost == 0 || self.cost > MAX_COST {
            return Err(Error::invalid("cost", format!("{} is not between 1 and {MAX_COST}", self.cost)));
        }
        if self.label.len() > MAX_LABEL || self.label.contains(['\n', '\r', '\0']) {
            return Err(Error::invalid("label", format!("at most {MAX_LABEL} bytes without line breaks, please")));
        }
        Ok(())
    }
}
