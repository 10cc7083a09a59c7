//! The specification: one limiter and its verbs, in plain Rust, without threads, clock or I/O. The memory store runs
//! it; the Lua scripts say the same, part by part (`lua/lib/load.lua` is [`Model`], `enter.lua` is [`enter`],
//! `dispatch.lua` is [`dispatch`], and each verb's script is the function of its name in [`verbs`]).

mod dispatch;
mod enter;
mod verbs;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Answer, Header, Notice, TicketNo, Verb, Verdict};
use crate::label::Label;
use crate::lane::Lane;
use crate::map::HashMap;
use crate::settings::{ConfigView, Declaration};

/// A ticket's name: its instance, and its number there.
#[derive(Clone, Debug, Eq, PartialOrd, Ord)]
pub(crate) struct TicketId {
    pub instance: Arc<str>,
    pub no: TicketNo,
}

impl PartialEq for TicketId {
    fn eq(&self, other: &Self) -> bool {
        self.no == other.no && same(&self.instance, &other.instance)
    }
}

impl std::hash::Hash for TicketId {
    /// Of the instance the beginning will do: it is random.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        let beginning = self.instance.as_bytes().first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        state.write_u64(self.no ^ beginning);
    }
}

/// Mostly they are one and the same.
fn same(one: &Arc<str>, other: &Arc<str>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

impl std::fmt::Display for TicketId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.instance, self.no)
    }
}

impl std::str::FromStr for TicketId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (instance, no) = text.rsplit_once(':').ok_or(())?;
        Ok(TicketId { instance: instance.into(), no: no.parse().map_err(|_| ())? })
    }
}

/// Who calls: an instance, over its how-manyeth connection, to which server.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub instance: Arc<str>,
    pub generation: u64,
    pub run: Arc<str>,
    /// When its command was sent, by the server's clock, as it believes.
    pub sent: u64,
}

#[derive(Clone, Debug)]
struct TicketRecord {
    cost: u64,
    order: u64,
    label: Label,
    /// Held when it has one.
    fence: Option<u64>,
}

#[derive(Clone, Debug)]
struct InstanceRecord {
    standing: InstanceStanding,
    description: String,
}

#[derive(Clone, Copy, Debug)]
struct InstanceStanding {
    expiry: u64,
    generation: u64,
    /// Known from before a fail-over only: it has not reported since.
    awaited: bool,
}

/// How far the walk through held and queued tickets has come, as the last score seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweep {
    Off,
    Held(u64),
    Queue(u64),
}

/// One limiter. Times are microseconds of a clock that never runs backwards.
#[derive(Debug)]
pub(crate) struct Model {
    exists: bool,
    run: Arc<str>,
    epoch: u64,
    now: u64,
    skew: u64,
    order: u64,
    fence: u64,
    used: u64,
    config: ConfigView,
    version: u64,
    grace: u64,
    /// When an instance was last forgotten.
    forgot: u64,
    /// So many instances are waited for, until `grace` at most.
    awaited: u64,
    /// When the grace is over if these have reported.
    first_grace: u64,
    calm: u64,
    /// Before `calm`, nobody is reaped whose lease ended after this.
    excused: u64,
    /// How many gaps in a row left nobody the time to report.
    gaps: u64,
    sweep: Sweep,
    again: bool,
    revokes: u64,
    hold: u64,
    granted: u64,
    overshoot: u64,
    queue: BTreeSet<(u64, TicketId)>,
    /// By fence. Two may have the same one, after a loss of state in the microsecond of a grant.
    held: Lane<(u64, TicketId)>,
    tickets: HashMap<TicketId, TicketRecord>,
    instances: HashMap<Arc<str>, InstanceRecord>,
    expiries: BTreeSet<(u64, Arc<str>)>,
    /// What the running verb has for the owners of tickets.
    messages: Vec<(Arc<str>, Notice)>,
    /// The running verb has left work for the next.
    more: bool,
    /// A key was lost: what is left is not believed.
    damaged: bool,
}

impl Model {
    pub(crate) fn new() -> Self {
        Model {
            exists: false,
            run: "".into(),
            epoch: 0,
            now: 0,
            skew: 0,
            order: 0,
            fence: 0,
            used: 0,
            config: ConfigView::default(),
            version: 0,
            grace: 0,
            forgot: 0,
            awaited: 0,
            first_grace: 0,
            calm: 0,
            excused: 0,
            gaps: 0,
            sweep: Sweep::Off,
            again: false,
            revokes: 0,
            hold: 0,
            granted: 0,
            overshoot: 0,
            queue: BTreeSet::new(),
            held: Lane::default(),
            tickets: HashMap::default(),
            instances: HashMap::default(),
            expiries: BTreeSet::new(),
            messages: Vec::new(),
            more: false,
            damaged: false,
        }
    }

    /// Carries out a verb at the wall clock's `wall` microseconds. Returns the caller's answer, and what is to be
    /// told to other instances together with the epoch.
    pub(crate) fn call(
        &mut self,
        caller: &Caller,
        header: &Header,
        verb: &Verb,
        wall: u64,
    ) -> (Answer, Vec<(Arc<str>, Notice)>) {
        let verdict = self.verb(caller, header, verb, wall);
        if self.messages.is_empty() {
            return (Answer { epoch: self.epoch, version: self.version, notices: Vec::new(), verdict }, Vec::new());
        }
        let (mine, others) =
            std::mem::take(&mut self.messages).into_iter().partition::<Vec<_>, _>(|(to, _)| *to == caller.instance);
        let notices = mine.into_iter().map(|(_, notice)| notice).collect();
        (Answer { epoch: self.epoch, version: self.version, notices, verdict }, others)
    }

    /// Whether nothing would be lost by forgetting the limiter.
    pub(crate) fn is_idle(&self) -> bool {
        self.tickets.is_empty()
    }

    /// For how long it may be idle before it is forgotten.
    pub(crate) fn idle_time(&self) -> Duration {
        let settings = self.settings();
        Duration::from_millis(settings.idle.max(2 * settings.lease)) // the lease may be an operator's
    }

    /// When a verb last ran.
    pub(crate) fn last_used(&self) -> u64 {
        self.now
    }

    fn settings(&self) -> crate::settings::Settings {
        self.config.settings()
    }

    fn lease_us(&self) -> u64 {
        self.settings().lease * 1000
    }

    fn free(&self) -> u64 {
        self.settings().limit.saturating_sub(self.used)
    }

    fn waiting(&self) -> u64 {
        self.queue.len() as u64
    }

    /// Time until the ticket at `position` is likely served; see `lua/lib/ticket.lua`.
    fn estimate(&self, position: u64) -> Option<Duration> {
        let limit = self.settings().limit;
        if self.hold == 0 || limit == 0 {
            return None;
        }
        Some(Duration::from_millis((u128::from(position) * u128::from(self.hold) / u128::from(limit) / 1000) as u64))
    }

    fn position_of(&self, id: &TicketId) -> u64 {
        let Some(record) = self.tickets.get(id).filter(|r| r.fence.is_none()) else { return 0 };
        let key = (record.order, id.clone());
        if self.queue.last() == Some(&key) {
            return self.waiting();
        }
        self.queue.range(..=key).count() as u64
    }

    fn read_clock(&mut self, wall: u64) -> u64 {
        let before = self.now;
        let mut now = wall + self.skew;
        if now < before {
            self.skew += before - now;
            now = before;
        }
        self.now = now;
        before
    }

    /// Use, waiters and tickets.
    #[cfg(all(test, loom))]
    pub(crate) fn standing_now(&self) -> (u64, u64, u64) {
        (self.used, self.waiting(), self.tickets.len() as u64)
    }

    /// Everything is gone, as after FLUSHALL.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn lose(&mut self) {
        *self = Model::new();
    }

    /// The instance's time has passed.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn expire(&mut self, instance: &Arc<str>) {
        self.set_expiry(instance, 1);
    }

    /// Whatever the grace was, it is over.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn end_grace(&mut self) {
        self.grace = self.grace.min(1);
    }

    /// What the wall clock says when the grace, and the calm, is over.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn wall_of_moments(&self) -> [u64; 2] {
        [self.grace, self.calm].map(|moment| moment.saturating_sub(self.skew))
    }

    /// Until when each instance counts as alive, and when one was last forgotten.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn lives(&self) -> (Vec<(String, u64)>, u64) {
        let mut all: Vec<_> =
            self.instances.iter().map(|(name, known)| (name.to_string(), known.standing.expiry)).collect();
        all.sort();
        (all, self.forgot)
    }

    /// A key was lost.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn damage(&mut self) {
        self.damaged = true;
    }

    /// The state in the conformance test's terms.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn state(&self) -> Option<super::conformance::State> {
        let row = |id: &TicketId| (id.to_string(), self.tickets[id].cost, self.tickets[id].label.to_string());
        let mut instances: Vec<_> =
            self.instances.iter().map(|(i, r)| (i.to_string(), r.standing.generation)).collect();
        instances.sort();
        self.exists.then(|| super::conformance::State {
            queue: self.queue.iter().map(|(_, id)| row(id)).collect(),
            held: self.held.iter().map(|(_, id)| row(id)).collect(),
            instances,
            used: self.used,
            granted: self.granted,
            revokes: self.revokes,
            limit: self.settings().limit,
            paused: self.config.paused(),
            declared: self.config.declared.clone(),
            in_grace: self.grace > self.now,
            sweeping: self.sweep != Sweep::Off,
        })
    }

    fn set_expiry(&mut self, instance: &Arc<str>, expiry: u64) {
        if let Some(record) = self.instances.get_mut(instance) {
            self.expiries.remove(&(record.standing.expiry, instance.clone()));
            record.standing.expiry = expiry;
            self.expiries.insert((expiry, instance.clone()));
        }
    }

    fn remove_instance(&mut self, instance: &Arc<str>) -> bool {
        let Some(record) = self.instances.remove(instance) else { return false };
        self.expiries.remove(&(record.standing.expiry, instance.clone()))
    }

    fn insert_queued(&mut self, id: &TicketId, cost: u64, order: u64, label: &Label) {
        self.tickets.insert(id.clone(), TicketRecord { cost, order, label: label.clone(), fence: None });
        self.queue.insert((order, id.clone()));
    }

    /// Takes a ticket out, wherever it is. Returns what it was.
    fn forget(&mut self, id: &TicketId) -> Option<TicketRecord> {
        let record = self.tickets.remove(id)?;
        match record.fence {
            Some(fence) => {
                self.held.remove(&(fence, id.clone()));
                self.used -= record.cost;
            }
            None => {
                self.queue.remove(&(record.order, id.clone()));
            }
        }
        Some(record)
    }

    fn standing(&self, id: &TicketId) -> super::Standing {
        match self.tickets.get(id) {
            None => super::Standing::Gone,
            Some(TicketRecord { fence: Some(fence), order, .. }) => {
                super::Standing::Held { fence: *fence, order: *order }
            }
            Some(_) => super::Standing::Queued,
        }
    }

    fn ticket_verdict(&self, id: &TicketId) -> Verdict {
        match self.tickets.get(id) {
            None => Verdict::Gone,
            Some(TicketRecord { fence: Some(fence), order, .. }) => Verdict::Granted { fence: *fence, order: *order },
            Some(record) => {
                let position = self.position_of(id);
                Verdict::Queued { order: record.order, position, estimate: self.estimate(position) }
            }
        }
    }
}
