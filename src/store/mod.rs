//! Where a limiter's state lives. A store knows *mechanism*: it carries out verbs, each atomically, and tells
//! instances what was granted to them. *Policy* (when to ask, what to do about an answer) is the engine's.
//!
//! Two stores carry out the same verbs: [`memory`] in plain Rust, for one process, and `redis` by Lua scripts, for a
//! cluster. The memory store is the specification of the scripts, and a property test holds one against the other.

#[cfg(all(test, not(loom)))]
pub(crate) mod conformance;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod redis;

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::clock::Nanos;
use crate::label::Label;
use crate::settings::{Change, ConfigView, Declaration};
use crate::status::ServerInfo;

/// A ticket's number within its instance.
pub(crate) type TicketNo = u64;

/// Mostly one, which then needs no memory of its own.
pub(crate) type Few<T> = SmallVec<[T; 1]>;

/// What every call brings along about its caller and the limiter.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// The epoch that the caller knows; 0 for none.
    pub epoch: u64,
    /// It neither holds nor waits for anything in this limiter, so a loss of state costs it nothing.
    pub bare: bool,
    /// The version of the configuration that the caller knows; 0 for none.
    pub version: u64,
    pub declaration: Arc<Declaration>,
}

/// One call of one verb on one limiter.
#[derive(Debug)]
pub(crate) struct Call {
    pub limiter: Arc<str>,
    pub header: Header,
    pub verb: Verb,
}

/// What can be asked of a limiter. All are idempotent: after a lost answer the same verb is sent again.
#[derive(Clone, Debug)]
pub(crate) enum Verb {
    /// Enqueue, then dispatch. `order` is the place from before, 0 for a new one.
    Acquire {
        no: TicketNo,
        cost: u64,
        may_wait: bool,
        order: u64,
        label: Label,
    },
    /// Give permits back: ticket and fence.
    Release(Few<(TicketNo, u64)>),
    /// Take tickets out of the queue, or give back the grants that crossed the cancel.
    Cancel(Few<TicketNo>),
    /// A ticket that is held with this fence returns to the queue at its original order.
    PutBack {
        no: TicketNo,
        fence: u64,
    },
    /// Heartbeat and poll; `heads` are the caller's first waiting tickets, in order.
    Sync {
        version: u64,
        heads: Vec<TicketNo>,
    },
    /// Bring back what the caller holds and waits for.
    Restore(Vec<Restored>),
    Configure(Change),
    /// By the ticket's full name.
    Revoke(String),
    /// Forget the caller, and whatever it still has.
    Leave,
    Status,
    List {
        held: bool,
        offset: u64,
        count: u64,
    },
    Position(Few<TicketNo>),
}

/// How a restored ticket stood with its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestoreKind {
    Held,
    /// Admitted by the instance itself while the store was away: counted whatever the limit says.
    Local,
    Waiting,
    /// Held: only look whether it still is.
    Check,
}

/// One ticket of a `restore`.
#[derive(Clone, Debug)]
pub(crate) struct Restored {
    pub kind: RestoreKind,
    pub no: TicketNo,
    pub order: u64,
    pub fence: u64,
    pub cost: u64,
    pub label: Label,
}

/// The store's answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub epoch: u64,
    /// Of the configuration; another one than known asks for a sync.
    pub version: u64,
    /// What the call granted or took, of the caller's own tickets.
    pub notices: Vec<Notice>,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The command came by an older connection than the store has seen of this instance; nothing was done.
    Refused,
    /// There is no such limiter and the caller declares none.
    NoSuchLimiter,
    /// State was lost, or the caller was reaped: `restore` first. Nothing was done.
    Resync,
    Granted {
        fence: u64,
        order: u64,
    },
    Queued {
        order: u64,
        position: u64,
        estimate: Option<Duration>,
    },
    /// Would have to wait, and may not.
    Busy,
    Impossible {
        limit: u64,
    },
    Full {
        waiting: u64,
        max_queue: u64,
        retry_after: Option<Duration>,
    },
    /// The ticket is not there.
    Gone,
    /// For each permit: freed, or stale.
    Released(Few<bool>),
    /// What each ticket was.
    Cancelled(Few<Was>),
    Synced(Synced),
    Restored(Vec<Standing>),
    Done,
    /// What the revoked ticket was.
    Revoked(Was),
    /// True: more of the caller's tickets are left to forget.
    Left {
        more: bool,
    },
    Status(Box<StatusView>),
    List {
        rows: Vec<Row>,
        now: u64,
    },
    /// For each ticket: position (0: not waiting), estimate.
    Positions(Vec<(u64, Option<Duration>)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Was {
    Held,
    Queued,
    Unknown,
}

/// How a ticket stands in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Queued,
    Held { fence: u64, order: u64 },
    Gone,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Synced {
    /// When another version than the known one is in force.
    pub config: Option<Box<ConfigView>>,
    /// How many permits operators have revoked; another number than known asks for a check of what is held.
    pub revokes: u64,
    /// Until the next lease ends or the grace is over.
    pub next: Option<Duration>,
    /// Work is left; sync again.
    pub more: bool,
    /// Of the heads, up to and including the first that is still queued.
    pub heads: Vec<Standing>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusView {
    pub config: ConfigView,
    pub used: u64,
    pub holders: u64,
    pub waiting: u64,
    pub instances: u64,
    pub granted: u64,
    pub grace: Duration,
    pub typical_hold: Option<Duration>,
    pub estimate: Option<Duration>,
    pub overshoot: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub ticket: String,
    pub description: String,
    pub label: String,
    pub cost: u64,
    pub order: u64,
    pub fence: u64,
}

/// Something that happened to a ticket of an instance, told to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    Granted { no: TicketNo, fence: u64, order: u64 },
    Impossible { no: TicketNo, limit: u64 },
    PermitRevoked { no: TicketNo },
    PlaceRevoked { no: TicketNo },
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    /// Not reachable; the call was not sent. `down`: an attempt to connect has just failed, so that it is not only this
    /// connection that is gone.
    #[error("{detail}")]
    Away { detail: String, down: bool },
    /// Sent, and the connection ended before the answer: whether it took effect is unknown. Verbs are idempotent.
    #[error("{detail}")]
    Lost { detail: String },
    /// Reachable, but it does not take this command now.
    #[error("{detail}")]
    Busy { detail: String },
    /// No memory for more.
    #[error("{detail}")]
    Full { detail: String },
    /// Trying again does not help.
    #[error(transparent)]
    Fatal(crate::Error),
}

impl StoreError {
    pub(crate) fn away(detail: impl Into<String>) -> Self {
        StoreError::Away { detail: detail.into(), down: false }
    }
}

/// Takes the answer; called once, by any thread, perhaps before `submit` returns. Dropped uncalled only by a store that
/// is being closed.
pub(crate) type Reply = Box<dyn FnOnce(Result<Answer, StoreError>) + Send>;

/// What a store tells its instance unasked. Called by the store's threads, or by any thread that submits a call;
/// never under a lock of the store.
pub(crate) trait Listener: Send + Sync {
    fn notices(&self, limiter: &str, epoch: u64, notices: Vec<Notice>);
    /// Connected (again) with the place where these limiters live: whatever was not answered may be asked again.
    fn link_up(&self, of: Concerns<'_>);
    /// An attempt to connect with the place where these limiters live has failed.
    fn link_down(&self, of: Concerns<'_>, detail: &str);
    /// Subscribed (again), or no more: a notice may have been missed, and the store has to know.
    fn subscribed(&self);
    /// For how long attempts to connect for these limiters may pause at most; `None`: there is nothing to connect for.
    fn wants_link(&self, of: Concerns<'_>) -> Option<Duration>;
}

/// Which limiters something concerns, by their names. Called under the engine's lock; takes none that is held for long.
pub(crate) type Concerns<'a> = &'a dyn Fn(&str) -> bool;

/// A place where limiters live, as one instance sees it.
pub(crate) trait Store: Send + Sync {
    /// Carries out a call. Does not block on the network. Must not be called under a lock that `reply` takes.
    fn submit(&self, call: Call, reply: Reply);
    /// As `submit`, for a caller that has nothing to do but wait for the answer: the call may be carried out on its
    /// thread, which then blocks, but not for longer than a few tens of milliseconds.
    fn submit_and_wait(&self, call: Call, reply: Reply);
    /// Itself, if it has nobody to ask.
    fn at_once(&self) -> Option<&dyn AtOnce> {
        None
    }
    /// Looks whether the store is fit for use. Blocks for a few round trips.
    fn check(&self) -> Result<ServerInfo, StoreError>;
    /// The names of all limiters. Blocks.
    fn limiters(&self) -> Result<Vec<String>, StoreError>;
    /// Ends the store's threads. No reply and no call to the listener comes after it returns.
    fn close(&self);
}

/// A store that has every answer within the call.
pub(crate) trait AtOnce: Send + Sync {
    /// Carries out a call at the moment `now`. May be called under the engine's lock, because it tells nobody anything:
    /// what there is to tell to other instances is left in `news`, for when that lock is released.
    fn carry_out(&self, limiter: &Arc<str>, header: &Header, verb: &Verb, now: Nanos, news: &mut Vec<News>) -> Answer;
}

/// What a call has done to another instance's ticket.
pub(crate) struct News {
    pub to: Arc<dyn Listener>,
    pub limiter: Arc<str>,
    pub epoch: u64,
    pub notice: Notice,
}

impl News {
    pub(crate) fn deliver(self) {
        self.to.notices(&self.limiter, self.epoch, vec![self.notice]);
    }
}
