//! What an instance knows of one limiter. Part of the [`Table`](super::table::Table), and under its lock, but for
//! [`LimiterCore`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::table::{Arrival, LimiterIndex, Phase, Slot};
use crate::clock::Nanos;
use crate::coalescer::Coalescer;
use crate::lane::Lane;
use crate::settings::{Declaration, Outage, Settings};
use crate::store::{Header, TicketNo};

/// The part of a limiter that is read without the lock.
pub(crate) struct LimiterCore {
    pub index: LimiterIndex,
    pub name: Arc<str>,
    /// Until when what is held here is certainly ours.
    pub valid_until: AtomicU64,
    pub sync: Coalescer,
}

/// What an instance knows of one limiter.
pub(crate) struct LimiterState {
    pub core: Arc<LimiterCore>,
    pub poll: Nanos,
    pub outage: Outage,
    /// What the last open here declared; empty when it only attached.
    pub own: String,
    pub declare: Declare,
    /// What travels with each call, without the demand to declare. Up to date after [`LimiterState::prepare_header`].
    pub header: Header,
    /// In force as far as is known.
    pub settings: Settings,
    /// Of these; [`UNTOLD`] before the first answer to a sync, [`UNKNOWN`] when it has to be told again.
    pub version: u64,
    pub epoch: u64,
    /// How many permits operators had revoked, when last told.
    pub revokes: u64,
    /// When the store last answered about it.
    pub heard_at: Nanos,
    /// Never sent, or to be sent again: by their order of arrival here.
    pub unsent: BTreeSet<(Arrival, TicketNo)>,
    /// Asked about, and not answered.
    pub in_flight: BTreeSet<TicketNo>,
    /// In line, by order.
    pub queued: BTreeMap<(u64, TicketNo), ()>,
    /// Of those in line, the ones whose owners want to be told where they stand.
    pub watched: BTreeSet<(u64, TicketNo)>,
    pub asking_positions: bool,
    pub positions_asked_at: Nanos,
    pub held: Lane<TicketNo>,
    /// Granted to us and not known here; to be given back. True: a call about it is under way.
    pub orphans: BTreeMap<TicketNo, bool>,
    /// Settled, but the store has not confirmed yet that they are gone.
    pub leaving: BTreeSet<TicketNo>,
    pub restore: RestoreState,
    /// Counts restores, so that answers to an earlier one are recognized.
    pub restores: u64,
    pub sync_at: Option<Nanos>,
    pub retry_at: Option<Nanos>,
    pub retries: u32,
    pub unconfirmed: bool,
    /// Why the place where it lives is away; none while it is not known to be.
    pub away: Option<Arc<str>>,
    /// When it is looked whether the lease has passed.
    pub watch_at: Option<Nanos>,
}

/// No limiter's configuration has these versions.
pub(crate) const UNTOLD: u64 = 0;
pub(crate) const UNKNOWN: u64 = 1;

/// Whether the store knows what was declared here. One call at a time says it: a second one behind it could come after
/// somebody else's newer open, and undo that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declare {
    Due,
    UnderWay,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestoreState {
    Settled,
    /// Asked for, and not possible yet.
    Wanted,
    /// So many chunks are not answered yet; all have to speak of one epoch.
    Running {
        chunks_left: usize,
        epoch: Option<u64>,
    },
}

impl LimiterState {
    pub(crate) fn new(
        core: Arc<LimiterCore>,
        settings: Settings,
        declaration: Declaration,
        poll: Nanos,
        outage: Outage,
    ) -> Self {
        LimiterState {
            core,
            poll,
            outage,
            own: declaration.declared.clone(),
            declare: if declaration.declared.is_empty() { Declare::Done } else { Declare::Due },
            header: Header { epoch: 0, bare: true, version: UNTOLD, declaration: Arc::new(declaration) },
            settings,
            version: UNTOLD,
            epoch: 0,
            revokes: 0,
            heard_at: 0,
            unsent: BTreeSet::new(),
            in_flight: BTreeSet::new(),
            queued: BTreeMap::new(),
            watched: BTreeSet::new(),
            asking_positions: false,
            positions_asked_at: 0,
            held: Lane::default(),
            orphans: BTreeMap::new(),
            leaving: BTreeSet::new(),
            restore: RestoreState::Settled,
            restores: 0,
            sync_at: None,
            retry_at: None,
            retries: 0,
            unconfirmed: false,
            away: None,
            watch_at: None,
        }
    }

    /// What a call has to say now.
    pub(crate) fn prepare_header(&mut self, now: Nanos) {
        // What is under way may have been granted by now.
        let bare = self.queued.is_empty() && self.held.is_empty() && self.in_flight.is_empty();
        // An idle limiter's keys expire; that is no loss of state, and needs no grace.
        let epoch = if bare && self.is_cold(now) { 0 } else { self.epoch };
        (self.header.epoch, self.header.bare, self.header.version) = (epoch, bare, self.version);
    }

    pub(crate) fn declaration(&self) -> &Declaration {
        &self.header.declaration
    }

    /// Whoever has to call the limiter into being does so with this.
    pub(crate) fn set_declaration(&mut self, declaration: Declaration) {
        self.header.declaration = Arc::new(declaration);
    }

    pub(crate) fn lease(&self) -> Nanos {
        self.settings.lease * 1_000_000
    }

    /// The lease by which an answer may be judged that comes with this version of the configuration: another version may have
    /// a shorter one, and the sync that tells is on its way. Who comes with
    /// another lease in mind is given 2 s at least.
    pub(crate) fn lease_known(&self, version: u64) -> Nanos {
        match self.version {
            known if known == version => self.lease(),
            UNTOLD => self.lease().min(2_000_000_000),
            _ => 0,
        }
    }

    /// The store counts us alive until `at`, at least.
    pub(crate) fn confirm_until(&mut self, at: Nanos) {
        // Only ever changed under the table's lock.
        if at > self.core.valid_until.load(Ordering::Relaxed) {
            self.core.valid_until.store(at, Ordering::Release);
        }
    }

    pub(crate) fn is_confirmed(&self, now: Nanos) -> bool {
        now < self.core.valid_until.load(Ordering::Acquire)
    }

    /// Takes a ticket into the set of its phase.
    pub(crate) fn file(&mut self, slot: &Slot) {
        let no = slot.waiter.no;
        match slot.phase {
            Phase::Unsent => drop(self.unsent.insert((slot.arrival, no))),
            Phase::InFlight => drop(self.in_flight.insert(no)),
            Phase::Queued => {
                let place = (slot.waiter.order(), no);
                self.queued.insert(place, ());
                if slot.waiter.reports_position() {
                    self.watched.insert(place);
                }
            }
            Phase::Held => self.held.insert(no),
            Phase::Leaving { .. } => drop(self.leaving.insert(no)),
        }
    }

    /// Takes a ticket out of the set of its phase.
    pub(crate) fn unfile(&mut self, slot: &Slot) {
        let no = slot.waiter.no;
        match slot.phase {
            Phase::Unsent => drop(self.unsent.remove(&(slot.arrival, no))),
            Phase::InFlight => drop(self.in_flight.remove(&no)),
            Phase::Queued => {
                let place = (slot.waiter.order(), no);
                self.queued.remove(&place);
                self.watched.remove(&place);
            }
            Phase::Held => {
                self.held.remove(&no);
            }
            Phase::Leaving { .. } => drop(self.leaving.remove(&no)),
        }
    }

    /// Nothing is known of it, or nothing that is still worth knowing.
    pub(crate) fn is_cold(&self, now: Nanos) -> bool {
        self.epoch == 0 || now.saturating_sub(self.heard_at) > self.settings.idle.saturating_mul(500_000)
    }

    /// The store knows what was declared, and nothing has to be cleared up: a call is about its ticket alone.
    pub(crate) fn is_settled(&self, now: Nanos) -> bool {
        self.declare == Declare::Done && !self.is_cold(now) && !self.restoring() && self.orphans.is_empty()
    }

    /// Nothing of it is held, waits, or is on its way out.
    pub(crate) fn is_empty(&self) -> bool {
        self.unsent.is_empty()
            && self.in_flight.is_empty()
            && self.queued.is_empty()
            && self.held.is_empty()
            && self.leaving.is_empty()
            && self.orphans.is_empty()
    }

    pub(crate) fn restoring(&self) -> bool {
        self.restore != RestoreState::Settled
    }
}
