//! What an instance knows of one limiter. Part of the [`Table`](super::table::Table), and under its lock, but for
//! [`LimiterCore`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::table::{Arrival, LimiterIndex};
use crate::clock::Nanos;
use crate::coalescer::Coalescer;
use crate::settings::{Declaration, Outage, Settings};
use crate::store::TicketNo;

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
    /// What travels with each call, without the demand to declare.
    pub declaration: Arc<Declaration>,
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
    pub held: BTreeSet<TicketNo>,
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
            declaration: Arc::new(declaration),
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
            held: BTreeSet::new(),
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
        self.core.valid_until.fetch_max(at, Ordering::AcqRel);
    }

    pub(crate) fn is_confirmed(&self, now: Nanos) -> bool {
        now < self.core.valid_until.load(Ordering::Acquire)
    }

    /// Nothing is known of it, or nothing that is still worth knowing.
    pub(crate) fn is_cold(&self, now: Nanos) -> bool {
        self.epoch == 0 || now.saturating_sub(self.heard_at) > self.settings.idle.saturating_mul(500_000)
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
