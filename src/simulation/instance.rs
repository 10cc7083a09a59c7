//! One process of a run: a real client over a simulated store, and what its application does with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::link::{Link, Mail, SharedMailbox};
use super::rng::Rng;
use super::world::Event;
use crate::clock::{Clock, Nanos};
use crate::engine::Engine;
use crate::engine::waiter::Waiter;
use crate::store::Listener;
use crate::{Client, Completions, Limiter, Outage, Permit, Ticket};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Running,
    /// Stopped for a while.
    Suspended,
    Crashed,
    /// Closed, to the end.
    Ended,
}

/// A request that has not ended.
pub(super) struct Pending {
    pub limiter: usize,
    pub ticket: Ticket,
    pub deadline: Nanos,
    /// It was a permit before, and is waited for again: there is no completion.
    pub again: Option<Arc<Waiter>>,
    /// Of the last phase, in which everybody has to be served.
    pub must: bool,
}

/// A permit that is held.
pub(super) struct Held {
    pub limiter: usize,
    pub name: String,
    pub permit: Permit,
}

/// What all limiters of a run have in common.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub lease: Duration,
    pub poll: Duration,
    pub io_timeout: Duration,
    /// Messages are wanted; otherwise polling finds everything.
    pub subscribe: bool,
    /// For how long a permit may be held; zero: as long as one likes.
    pub max_hold: Duration,
}

pub(super) struct Instance {
    pub name: Arc<str>,
    pub life: Life,
    pub closing: bool,
    pub engine: Arc<Engine>,
    pub limiters: Vec<Limiter>,
    /// Open as long as this is.
    _client: Client,
    pub link: Link,
    pub completions: Completions,
    clock: Clock,
    local: Nanos,
    pub wake_at: Nanos,
    /// Its timers were not served before.
    pub late_until: Nanos,
    pub pending: BTreeMap<u64, Pending>,
    pub held: BTreeMap<u64, Held>,
    /// What waits for it while it is stopped.
    pub parked: Vec<Event>,
}

impl Instance {
    pub(super) fn open(name: &str, now: Nanos, terms: &Terms, limiters: &[(String, u64, Outage)]) -> Self {
        let clock = Clock::manual();
        let mailbox = SharedMailbox::default();
        let store = Box::new(Mail(mailbox.clone()));
        let patience = 2 * terms.io_timeout + Duration::from_millis(500);
        let mut listener = None;
        let (client, engine) = Client::by_hand(name, clock.clone(), patience, |weak| {
            listener = Some(weak);
            store
        });
        let name: Arc<str> = name.into();
        let link = Link::new(mailbox, listener.expect("a listener"), &name);
        let open = |(limiter, limit, outage): &(String, u64, Outage)| {
            let builder = client.limiter(limiter).limit(*limit).lease(terms.lease).poll(terms.poll).outage(*outage);
            let builder = if terms.max_hold.is_zero() { builder } else { builder.max_hold(terms.max_hold) };
            builder.open().expect("settings that mean something")
        };
        let mut instance = Instance {
            name,
            life: Life::Running,
            closing: false,
            engine,
            limiters: limiters.iter().map(open).collect(),
            _client: client,
            link,
            completions: Completions::new(),
            clock,
            local: 0,
            wake_at: 0,
            late_until: 0,
            pending: BTreeMap::new(),
            held: BTreeMap::new(),
            parked: Vec::new(),
        };
        instance.advance(now);
        instance
    }

    /// Its clock is the run's: it also goes on while the process is stopped.
    pub(super) fn advance(&mut self, now: Nanos) {
        self.clock.advance(Duration::from_nanos(now.saturating_sub(self.local)));
        self.local = now;
    }

    pub(super) fn runs(&self) -> bool {
        self.life == Life::Running
    }

    /// As the server sees it: a process that is stopped or cut off keeps its subscription there, one that is dead does not.
    pub(super) fn is_subscribed(&self) -> bool {
        self.link.is_served && matches!(self.life, Life::Running | Life::Suspended)
    }

    pub(super) fn listener(&self) -> Option<Arc<dyn Listener>> {
        self.link.listener.upgrade()
    }

    pub(super) fn any_pending(&self, rng: &mut Rng) -> Option<u64> {
        let all: Vec<u64> = self.pending.keys().copied().collect();
        (!all.is_empty()).then(|| rng.pick(&all))
    }

    pub(super) fn any_held(&self, rng: &mut Rng) -> Option<u64> {
        let all: Vec<u64> = self.held.keys().copied().collect();
        (!all.is_empty()).then(|| rng.pick(&all))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Replies hold the engine, which holds the mailbox.
        let calls = std::mem::take(&mut *self.link.mailbox.lock());
        self.link.mailbox.lock().closed = true;
        drop(calls);
        self.engine.dismantle();
    }
}
