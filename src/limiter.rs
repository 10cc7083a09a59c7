//! A named limit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::limiter_state::LimiterCore;
use crate::engine::waiter::{Home, Sink};
use crate::engine::{Engine, Handle};
use crate::settings::{Change, UNBOUNDED, from_millis};
use crate::status::{Entry, Revoked, Status};
use crate::store::{Row, Verb, Verdict, Was};
use crate::{Completions, Error, Permit, Request, Ticket};

const PAGE: u64 = 500;

/// A named limit with a line in front of it. Cheap to clone; all clones, and all that open the same name on the same
/// client, are the same limiter. May be used from any thread.
#[derive(Clone)]
pub struct Limiter {
    /// One count for all that a ticket shares with it.
    home: Arc<Home>,
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("name", &self.home.limiter.name).finish_non_exhaustive()
    }
}

impl Limiter {
    pub(crate) fn new(handle: Arc<Handle>, core: Arc<LimiterCore>) -> Self {
        Limiter { home: Arc::new(Home { limiter: core, handle }) }
    }

    fn engine(&self) -> &Arc<Engine> {
        self.home.handle.engine()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.home.limiter.name
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
        let ticket = self.ticket();
        self.start_and_wait(&ticket, request)?;
        Ok(Permit::new(ticket.into_waiter()))
    }

    /// Takes a permit if that needs no waiting; `None` otherwise. Passes nobody who waits.
    ///
    /// # Errors
    /// As [`Limiter::acquire`], but never [`Error::TimedOut`] or [`Error::QueueFull`].
    pub fn try_acquire(&self, request: &Request) -> Result<Option<Permit>, Error> {
        match self.acquire(&request.clone().max_wait(Duration::ZERO)) {
            Ok(permit) => Ok(Some(permit)),
            Err(Error::TimedOut { .. } | Error::QueueFull { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A ticket that is not started: [`Ticket::cancel`] on it is sticky and cannot come too early.
    pub fn ticket(&self) -> Ticket {
        Ticket::new(self.engine().new_waiter(self.home.clone()))
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
        self.start_and_wait(ticket, request)?;
        Ok(Permit::new(ticket.waiter().clone()))
    }

    fn start_and_wait(&self, ticket: &Ticket, request: &Request) -> Result<(), Error> {
        self.engine().start(ticket.waiter(), request, Sink::Blocking)?;
        ticket.waiter().wait()
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
        self.acquire_start_with(&ticket, request, to, token)?;
        Ok(ticket)
    }

    /// As [`Limiter::acquire_start`], with a ticket made before, which may have been cancelled already.
    ///
    /// # Errors
    /// As [`Limiter::acquire_start`], and [`Error::Invalid`] for a ticket that was used before.
    pub fn acquire_start_with(
        &self,
        ticket: &Ticket,
        request: &Request,
        to: &Completions,
        token: u64,
    ) -> Result<(), Error> {
        self.check_ticket(ticket)?;
        let sink = Sink::Queue { queue: to.queue().clone(), token };
        self.engine().start(ticket.waiter(), request, sink)
    }

    fn check_ticket(&self, ticket: &Ticket) -> Result<(), Error> {
        let waiter = ticket.waiter();
        if waiter.limiter().index != self.home.limiter.index || !Arc::ptr_eq(waiter.engine(), self.engine()) {
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
            name: self.home.limiter.name.to_string(),
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
            overshoot_total: view.overshoot,
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
    /// [`Error::Invalid`]; [`Error::UnknownOutcome`] when the answer was lost; or as [`Limiter::status`].
    pub fn configure(&self, change: &Change) -> Result<Status, Error> {
        change.check()?;
        self.ask(Verb::Configure(change.clone()))?;
        self.status()
    }

    /// Takes a permit or a place in line away, as the limiter's operator. Its owner is told.
    ///
    /// # Errors
    /// [`Error::UnknownOutcome`] when the answer was lost; or as [`Limiter::status`].
    pub fn revoke(&self, ticket: &str) -> Result<Revoked, Error> {
        let verdict = self.ask(Verb::Revoke(ticket.to_owned()))?.verdict;
        match verdict {
            Verdict::Revoked(Was::Held) => Ok(Revoked::Held),
            Verdict::Revoked(Was::Queued) => Ok(Revoked::Waiting),
            Verdict::Revoked(Was::Unknown) => Ok(Revoked::Unknown),
            other => Err(unexpected(&other)),
        }
    }

    /// Asks without waiting for the answer.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn ask_by_hand(&self, verb: Verb) {
        let _ = self.engine().ask_start(self.home.limiter.index, verb, drop);
    }

    fn ask(&self, verb: Verb) -> Result<crate::store::Answer, Error> {
        self.engine().ask(self.home.limiter.index, verb)
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
