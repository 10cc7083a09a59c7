//! A named limit, and the tickets that wait for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Handle;
use crate::engine::table::LimiterIndex;
use crate::engine::waiter::{Sink, Waiter};
use crate::settings::{Change, Settings, UNBOUNDED, from_millis, millis};
use crate::status::{Entry, Position, Revoked, Status};
use crate::store::{Row, Verb, Verdict, Was};
use crate::ticket::TicketState;
use crate::{Completions, Error, Permit, Request};

const MAX_NAME: usize = 256;
const DEFAULT_POLL: Duration = Duration::from_secs(1);
const PAGE: u64 = 500;

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

    /// Declares how much cost may be held at once; 0 admits nobody. When processes declare different settings the
    /// newest open wins and the others warn; what an operator has set stands above both. Without a limit, `open`
    /// attaches to a limiter that others have declared.
    pub fn limit(mut self, limit: u64) -> Self {
        self.settings.limit = limit;
        self.declares = true;
        self
    }

    /// How many may wait (default: any number); 0: nobody, who cannot be admitted at once is rejected.
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
        let index = self.handle.engine().open_limiter(&self.name, &options)?;
        Ok(Limiter { handle: self.handle, name: self.name.into(), index })
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > MAX_NAME {
        let detail = format!("a limiter's name has between 1 and {MAX_NAME} bytes, this one has {}", name.len());
        return Err(Error::invalid("name", detail));
    }
    Ok(())
}

/// A named limit with a line in front of it. Cheap to clone; all clones, and all that open the same name on the same
/// client, are the same limiter. May be used from any thread.
#[derive(Clone)]
pub struct Limiter {
    handle: Arc<Handle>,
    name: Arc<str>,
    index: LimiterIndex,
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Limiter {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits in line for a permit. Blocks until the request is granted, refused, timed out, or closed: never longer
    /// than its `max_wait` and a little, whatever the store does.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::QueueFull`], [`Error::Impossible`], [`Error::Revoked`], [`Error::Unavailable`]
    /// or [`Error::Overloaded`] when the store could not be asked in all that time, [`Error::Closed`],
    /// [`Error::Invalid`], [`Error::Config`], [`Error::NoSuchLimiter`], [`Error::Forked`].
    ///
    /// ```
    /// # fn main() -> Result<(), fairq::Error> {
    /// let client = fairq::Client::open("memory:doc-acquire")?;
    /// let chat = client.limiter("rag:chat").limit(2).open()?;
    /// let permit = chat.acquire(&fairq::Request::new())?;
    /// assert!(permit.is_valid());
    /// permit.release()?;
    /// # Ok(()) }
    /// ```
    pub fn acquire(&self, request: &Request) -> Result<Permit, Error> {
        self.acquire_with(&self.ticket(), request)
    }

    /// Takes a permit if that needs no waiting; `None` otherwise. Passes nobody who waits.
    ///
    /// # Errors
    /// As [`Limiter::acquire`], but never [`Error::TimedOut`].
    pub fn try_acquire(&self, request: &Request) -> Result<Option<Permit>, Error> {
        match self.acquire(&request.clone().max_wait(Duration::ZERO)) {
            Ok(permit) => Ok(Some(permit)),
            Err(Error::TimedOut { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A ticket that is not started: [`Ticket::cancel`] on it is sticky and cannot come too early.
    pub fn ticket(&self) -> Ticket {
        Ticket { waiter: self.handle.engine().new_waiter(self.index, self.handle.clone()), index: self.index }
    }

    /// As [`Limiter::acquire`], with a ticket that another thread may cancel or watch.
    ///
    /// # Errors
    /// As [`Limiter::acquire`], and [`Error::Cancelled`]; [`Error::Invalid`] for a ticket that was used before.
    ///
    /// ```
    /// # fn main() -> Result<(), fairq::Error> {
    /// # let client = fairq::Client::open("memory:doc-ticket")?;
    /// # let chat = client.limiter("rag:chat").limit(2).open()?;
    /// let ticket = chat.ticket();
    /// ticket.cancel(); // by any thread, at any time
    /// assert_eq!(chat.acquire_with(&ticket, &fairq::Request::new()).unwrap_err(), fairq::Error::Cancelled);
    /// # Ok(()) }
    /// ```
    pub fn acquire_with(&self, ticket: &Ticket, request: &Request) -> Result<Permit, Error> {
        self.check_ticket(ticket)?;
        self.handle.engine().start(&ticket.waiter, request, Sink::Blocking)?;
        ticket.waiter.wait()
    }

    /// Starts a request and returns at once. `Ok` means exactly one completion with this token, whatever happens.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Forked`], [`Error::Internal`]; then there is no completion.
    ///
    /// ```
    /// # fn main() -> Result<(), fairq::Error> {
    /// # let client = fairq::Client::open("memory:doc-start")?;
    /// # let chat = client.limiter("rag:chat").limit(2).open()?;
    /// let completions = fairq::Completions::new();
    /// chat.acquire_start(&fairq::Request::new(), &completions, 42)?;
    /// let done = completions.poll(16, std::time::Duration::from_secs(5));
    /// assert_eq!(done[0].token, 42);
    /// assert!(done[0].result.is_ok());
    /// # Ok(()) }
    /// ```
    pub fn acquire_start(&self, request: &Request, to: &Completions, token: u64) -> Result<Ticket, Error> {
        let ticket = self.ticket();
        self.handle.engine().start(&ticket.waiter, request, Sink::Completion(to.clone(), token))?;
        Ok(ticket)
    }

    fn check_ticket(&self, ticket: &Ticket) -> Result<(), Error> {
        if ticket.index != self.index || !Arc::ptr_eq(ticket.waiter.engine(), self.handle.engine()) {
            return Err(Error::invalid("ticket", "it belongs to another limiter"));
        }
        Ok(())
    }

    /// How the limiter stands. Blocks for a round trip.
    ///
    /// # Errors
    /// [`Error::NoSuchLimiter`] before anybody has used it, [`Error::Unavailable`], [`Error::Forked`].
    pub fn status(&self) -> Result<Status, Error> {
        let answer = self.ask(Verb::Status)?;
        let epoch = answer.epoch;
        let Verdict::Status(view) = answer.verdict else { return Err(unexpected(&answer.verdict)) };
        let settings = view.config.settings();
        Ok(Status {
            name: self.name.to_string(),
            limit: settings.limit,
            used: view.used,
            holders: view.holders,
            waiting: view.waiting,
            paused: view.config.paused(),
            max_queue: if settings.max_queue >= UNBOUNDED { u64::MAX } else { settings.max_queue },
            max_wait: from_millis(settings.max_wait),
            lease: from_millis(settings.lease),
            max_hold: (settings.max_hold > 0).then(|| from_millis(settings.max_hold)),
            overridden: view.config.overridden(),
            granted_total: view.granted,
            instances: view.instances,
            epoch,
            grace: view.grace,
            typical_hold: view.typical_hold,
            estimate: view.estimate,
        })
    }

    /// Who holds permits, by fence. Blocks for a round trip per 500.
    ///
    /// # Errors
    /// As [`Limiter::status`].
    pub fn holders(&self) -> Result<Vec<Entry>, Error> {
        self.list(true)
    }

    /// Who waits, in line order. Blocks for a round trip per 500.
    ///
    /// # Errors
    /// As [`Limiter::status`].
    pub fn waiters(&self) -> Result<Vec<Entry>, Error> {
        self.list(false)
    }

    fn list(&self, held: bool) -> Result<Vec<Entry>, Error> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let offset = entries.len() as u64;
            let verdict = self.ask(Verb::List { held, offset, count: PAGE })?.verdict;
            let Verdict::List { rows, now } = verdict else { return Err(unexpected(&verdict)) };
            let last = (rows.len() as u64) < PAGE;
            entries.extend(rows.into_iter().map(|row| entry(row, now)));
            if last {
                return Ok(entries);
            }
        }
    }

    /// Changes settings while the limiter runs, as its operator. Lowering the limit revokes nothing; nobody is
    /// admitted until use is below it. Blocks for two round trips.
    ///
    /// # Errors
    /// [`Error::Invalid`], or as [`Limiter::status`].
    pub fn configure(&self, change: &Change) -> Result<Status, Error> {
        change.check()?;
        self.ask(Verb::Configure(change.clone()))?;
        self.status()
    }

    /// Takes a permit or a place in line away, as the limiter's operator. Its owner is told.
    ///
    /// # Errors
    /// As [`Limiter::status`].
    pub fn revoke(&self, ticket: &str) -> Result<Revoked, Error> {
        let verdict = self.ask(Verb::Revoke(ticket.to_owned()))?.verdict;
        match verdict {
            Verdict::Revoked(Was::Held) => Ok(Revoked::Held),
            Verdict::Revoked(Was::Queued) => Ok(Revoked::Waiting),
            Verdict::Revoked(Was::Unknown) => Ok(Revoked::Unknown),
            other => Err(unexpected(&other)),
        }
    }

    fn ask(&self, verb: Verb) -> Result<crate::store::Answer, Error> {
        self.handle.engine().ask(self.index, verb)
    }
}

fn unexpected(verdict: &Verdict) -> Error {
    Error::Internal { detail: format!("an answer to another verb: {verdict:?}") }
}

fn entry(row: Row, now: u64) -> Entry {
    let since = if row.fence > 0 { row.fence } else { row.order };
    let instance = row.ticket.rsplit_once(':').map_or("", |(instance, _)| instance).to_owned();
    Entry {
        instance,
        ticket: row.ticket,
        description: row.description,
        label: row.label,
        cost: row.cost,
        order: row.order,
        fence: (row.fence > 0).then_some(row.fence),
        age: Duration::from_micros(now.saturating_sub(since)),
    }
}

/// One request on its way, to be watched or cancelled from any thread. Dropping it changes nothing.
#[derive(Clone)]
pub struct Ticket {
    waiter: Arc<Waiter>,
    index: LimiterIndex,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("no", &self.waiter.no).field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Ticket {
    /// Cancels the request, also one that is not started yet. True: it is cancelled, and will not be granted. False:
    /// it has ended otherwise. Does not block; the store is told in the background.
    pub fn cancel(&self) -> bool {
        self.waiter.engine().cancel(&self.waiter)
    }

    /// Its full name, as [`Limiter::revoke`] takes it.
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
    /// As [`Limiter::status`].
    pub fn position(&self) -> Result<Option<Position>, Error> {
        if self.state() != TicketState::Pending {
            return Ok(None);
        }
        let verdict = self.waiter.engine().ask(self.index, Verb::Position(vec![self.waiter.no]))?.verdict;
        let Verdict::Positions(positions) = verdict else { return Err(unexpected(&verdict)) };
        let position = positions
            .first()
            .filter(|(position, _)| *position > 0)
            .map(|(position, estimate)| Position { position: *position, estimate: *estimate });
        self.waiter.set_position(position);
        Ok(position)
    }

    /// Where it stood when the store last told. Does not block.
    pub fn last_position(&self) -> Option<Position> {
        self.waiter.position()
    }
}
