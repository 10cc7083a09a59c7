//! One request for a permit, and the ticket it waits with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::Error;
use crate::engine::waiter::Waiter;
use crate::label::Label;
use crate::status::Position;
use crate::ticket::TicketState;

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
    pub(crate) label: Label,
    pub(crate) report_position: bool,
    pub(crate) report_permit: bool,
}

impl Default for Request {
    fn default() -> Self {
        Request { max_wait: None, cost: 1, label: Label::default(), report_position: false, report_permit: false }
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
        self.label = Label::from(label.into());
        self
    }

    /// Reports each new position in line to the queue that the request completes to
    /// ([`Event::Position`](crate::Event::Position)): the first at once, then once per poll interval of the limiter.
    /// That is one more call per interval, process and limiter, however many wait; of more than a hundred waiting
    /// requests of a process some positions are estimated from their neighbours'.
    #[must_use]
    pub fn report_position(mut self, report: bool) -> Self {
        self.report_position = report;
        self
    }

    /// Reports what happens to the permit to the queue that the request completes to
    /// ([`Event::Permit`](crate::Event::Permit)).
    #[must_use]
    pub fn report_permit(mut self, report: bool) -> Self {
        self.report_permit = report;
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

/// One request on its way, to be watched or cancelled from any thread. Dropping it changes nothing.
#[derive(Clone)]
pub struct Ticket {
    waiter: Arc<Waiter>,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("no", &self.waiter.no).field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Ticket {
    pub(crate) fn new(waiter: Arc<Waiter>) -> Self {
        Ticket { waiter }
    }

    pub(crate) fn into_waiter(self) -> Arc<Waiter> {
        self.waiter
    }

    pub(crate) fn waiter(&self) -> &Arc<Waiter> {
        &self.waiter
    }

    /// Cancels the request, also one that is not started yet. True: it is cancelled, and will not be granted. False:
    /// it has ended otherwise. Does not block; the store is told in the background.
    pub fn cancel(&self) -> bool {
        self.waiter.engine().cancel(&self.waiter)
    }

    /// Its full name, as [`Limiter::revoke`](crate::Limiter::revoke) takes it.
    pub fn id(&self) -> String {
        self.waiter.engine().ticket_name(self.waiter.no)
    }

    /// How it stands. Does not block.
    pub fn state(&self) -> TicketState {
        self.waiter.ticket.state()
    }

    /// Where it stands in line: asks the store. `None` when it does not wait there. Blocks for a round trip.
    ///
    /// # Errors
    /// As [`Limiter::status`](crate::Limiter::status).
    pub fn position(&self) -> Result<Option<Position>, Error> {
        if self.state() != TicketState::Pending {
            return Ok(None);
        }
        self.waiter.engine().ask_position(&self.waiter)
    }

    /// Where it stood when the store last told. Does not block.
    pub fn last_position(&self) -> Option<Position> {
        self.waiter.position()
    }
}
