//! What an instance knows: its limiters, its tickets, and when something is due. All of it is under one lock, which
//! is held for short, never across a call of the store or of a callback: what is to be done outside the lock is
//! collected in [`Effects`] and run after it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crossbeam_channel::Sender;
use smallvec::smallvec;

use super::limiter_state::{Declare, LimiterState};
use super::waiter::Waiter;
use crate::Error;
use crate::clock::{NEVER, Nanos};
use crate::events::{LostReason, PermitEvent};
use crate::map::HashMap;
use crate::settings::Declaration;
use crate::store::{Call, Few, Header, News, TicketNo, Verb};

/// A limiter's index in [`Table::limiters`].
pub(crate) type LimiterIndex = usize;

/// Counts the tickets started here, in their order.
pub(crate) type Arrival = u64;

/// Where a ticket is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Never sent, or to be sent again.
    Unsent,
    InFlight,
    Queued,
    Held,
    /// `fence`: what is to be released; none for a cancel. `busy`: a call is under way. `tried`: an earlier one had no
    /// answer, and may have arrived.
    Leaving {
        fence: Option<u64>,
        busy: bool,
        tried: bool,
    },
}

pub(crate) struct Slot {
    pub arrival: Arrival,
    pub waiter: Arc<Waiter>,
    pub limiter: LimiterIndex,
    pub phase: Phase,
    /// The ticket returns to the line instead of entering it.
    pub puts_back: bool,
    /// An earlier attempt may have reached the store.
    pub arrived: bool,
    /// A message says that it was granted, and could not be believed yet.
    pub told: bool,
    /// It was in line when we were reaped: a message about a grant may speak of that time, and only a sync tells.
    pub doubtful: bool,
    /// The store has put it in line, as it said after the ticket was settled here.
    pub entered_late: bool,
    /// Why the last attempt failed.
    pub last_error: Option<Box<Error>>,
    /// Who waits for a release's answer.
    pub ack: Option<Ack>,
    pub max_hold_at: Nanos,
}

/// Something that is due at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    Deadline(TicketNo),
    MaxHold(TicketNo),
    Sync(LimiterIndex),
    Retry(LimiterIndex),
    Unconfirmed(LimiterIndex),
    Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    /// Settled everybody; waits for permits to come back until then.
    Draining {
        until: Nanos,
    },
    /// Everything was given back; waits for answers until then.
    Leaving {
        until: Nanos,
        sent: bool,
        answers_left: usize,
    },
    /// Nothing happens any more; the store's threads are being ended.
    Closed,
    /// No thread is left.
    Ended,
}

pub(crate) struct Table {
    pub limiters: Vec<LimiterState>,
    pub names: HashMap<Arc<str>, LimiterIndex>,
    /// Places of forgotten limiters, to be used again.
    pub free: Vec<LimiterIndex>,
    /// With so many names, unused limiters are looked for.
    pub forget_at: usize,
    pub tickets: HashMap<TicketNo, Slot>,
    /// More than so many are not taken in.
    pub max_tickets: u64,
    pub timers: BTreeSet<(Nanos, Timer)>,
    pub stage: Stage,
    pub arrivals: Arrival,
    /// When the scheduler will look again by itself.
    pub next_look: Nanos,
    /// Calls decided on and not yet handed to the store, in order.
    pub outbox: VecDeque<(Call, Asked)>,
    /// A thread is handing them over.
    pub submitting: bool,
}

/// Whether a release freed its slot; false: it was stale.
pub(crate) type Freed = Result<bool, Error>;
/// Where a release's answer is waited for.
pub(crate) type Ack = Sender<Freed>;

/// What is to be done once the lock is released, in this order.
#[derive(Default)]
pub(crate) struct Effects {
    pub settled: Few<Arc<Waiter>>,
    /// Have a new position to tell of.
    pub moved: Vec<Arc<Waiter>>,
    pub events: Vec<(Arc<Waiter>, PermitEvent)>,
    pub acks: Vec<(Ack, Freed)>,
    pub calls: Vec<(Call, Asked)>,
    /// Of what the store has done for us already, to other instances.
    pub news: Vec<News>,
    /// The thread that decided this has nothing to do but wait for the answers.
    pub waits: bool,
    /// The last reference to a waiter may close the client, which takes the lock.
    pub garbage: Few<Arc<Waiter>>,
    pub wake_scheduler: bool,
}

/// One decision under the lock: what is known, when it is, and what is to follow.
pub(crate) struct Turn<'a> {
    pub table: &'a mut Table,
    pub now: Nanos,
    pub fx: &'a mut Effects,
}

impl Effects {
    /// Tells everybody. Called without the lock.
    pub(crate) fn tell(&mut self) {
        self.settled.drain(..).for_each(|waiter| waiter.deliver());
        self.moved.drain(..).for_each(|waiter| waiter.report_position());
        self.events.drain(..).for_each(|(waiter, event)| waiter.tell(event));
        self.news.drain(..).for_each(News::deliver);
        for (to, freed) in self.acks.drain(..) {
            // The one who waits may have given up.
            let _ = to.send(freed);
        }
    }

    pub(crate) fn tells_nobody(&self) -> bool {
        self.settled.is_empty()
            && self.moved.is_empty()
            && self.events.is_empty()
            && self.news.is_empty()
            && self.acks.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tells_nobody() && self.calls.is_empty() && self.garbage.is_empty()
    }
}

/// What a call said of us when it was made.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    /// The epoch that was known.
    pub epoch: u64,
    /// It declared the limiter.
    pub declared: bool,
}

impl Sent {
    pub(crate) fn with(header: &Header) -> Sent {
        Sent { epoch: header.epoch, declared: header.declaration.declares }
    }
}

/// What a call was about, for when its answer comes.
pub(crate) enum Asked {
    Ticket {
        no: TicketNo,
        sent_at: Nanos,
    },
    Leaving {
        tickets: Few<TicketNo>,
    },
    Sync {
        sent_at: Nanos,
        heads: Vec<TicketNo>,
    },
    /// `missing`: what it means when a held ticket is not there.
    Restore {
        run: u64,
        tickets: Vec<TicketNo>,
        sent_at: Nanos,
        missing: LostReason,
    },
    Positions {
        tickets: Vec<TicketNo>,
    },
    Goodbye,
}

impl Asked {
    /// The moment before which the question was not sent, when its answer says that the store counts us alive.
    pub(crate) fn counts_alive_from(&self) -> Option<Nanos> {
        match self {
            Asked::Ticket { sent_at, .. } | Asked::Sync { sent_at, .. } | Asked::Restore { sent_at, .. } => {
                Some(*sent_at)
            }
            Asked::Leaving { .. } | Asked::Positions { .. } | Asked::Goodbye => None,
        }
    }
}

impl Table {
    pub(crate) fn new() -> Self {
        Table {
            limiters: Vec::new(),
            names: HashMap::default(),
            free: Vec::new(),
            forget_at: 0,
            tickets: HashMap::default(),
            max_tickets: u64::MAX,
            timers: BTreeSet::new(),
            stage: Stage::Running,
            arrivals: 0,
            next_look: NEVER,
            outbox: VecDeque::new(),
            submitting: false,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.tickets.len() as u64 >= self.max_tickets
    }

    pub(crate) fn overloaded(&self) -> Error {
        let detail =
            format!("this process has {} requests and permits already, and max_tickets is as many", self.tickets.len());
        Error::Overloaded { detail }
    }

    pub(crate) fn arm(&mut self, at: Nanos, timer: Timer, fx: &mut Effects) {
        if at == NEVER {
            return;
        }
        self.timers.insert((at, timer));
        fx.wake_scheduler |= at < self.next_look;
    }

    pub(crate) fn disarm(&mut self, at: Nanos, timer: Timer) {
        if at != NEVER {
            self.timers.remove(&(at, timer));
        }
    }

    /// Builds the call of a verb with what the limiter's header has to say now.
    pub(crate) fn call(&mut self, limiter: LimiterIndex, verb: Verb, now: Nanos) -> Call {
        let state = &mut self.limiters[limiter];
        state.prepare_header(now);
        let mut header = state.header.clone();
        match (&verb, state.declare) {
            // Whoever leaves must not call a forgotten limiter into being.
            (Verb::Leave, _) => header.declaration = Arc::default(),
            (_, Declare::Due) => {
                state.declare = Declare::UnderWay;
                let declared = state.own.clone();
                let declaration = Declaration { declares: true, declared, ..state.declaration().clone() };
                header.declaration = Arc::new(declaration);
            }
            _ => {}
        }
        Call { limiter: state.core.name.clone(), header, verb }
    }

    /// Takes a new ticket in.
    pub(crate) fn add(&mut self, slot: Slot) {
        self.limiters[slot.limiter].file(&slot);
        self.tickets.insert(slot.waiter.no, slot);
    }

    /// Moves a ticket to another phase and keeps the limiter's sets in step.
    pub(crate) fn enter_phase(&mut self, no: TicketNo, phase: Phase) {
        let Some(slot) = self.tickets.get_mut(&no) else { return };
        let state = &mut self.limiters[slot.limiter];
        state.unfile(slot);
        slot.phase = phase;
        state.file(slot);
    }

    /// Forgets a ticket altogether.
    pub(crate) fn remove(&mut self, no: TicketNo, fx: &mut Effects) {
        if let Some(slot) = self.tickets.remove(&no) {
            self.limiters[slot.limiter].unfile(&slot);
            if slot.phase != Phase::Held {
                self.disarm(slot.waiter.deadline(), Timer::Deadline(no)); // a grant has done so
            }
            self.disarm(slot.max_hold_at, Timer::MaxHold(no));
            fx.garbage.push(slot.waiter);
        }
    }

    /// The one cleanup: makes the store forget a ticket that has settled or whose permit has ended, wherever it is on
    /// its way. Safe to call from every exit, and more than once.
    pub(crate) fn clean_up(&mut self, no: TicketNo, now: Nanos, fx: &mut Effects) {
        let Some(slot) = self.tickets.get_mut(&no) else { return };
        let fence = match slot.phase {
            Phase::Leaving { .. } => return,
            Phase::Unsent if !slot.arrived => return self.remove(no, fx),
            // A permit that the store has never counted has no fence, and may still be queued there.
            Phase::Held => Some(slot.waiter.ticket.fence()).filter(|fence| *fence != 0),
            Phase::Unsent | Phase::InFlight | Phase::Queued => None,
        };
        let (deadline, max_hold_at, limiter) = (slot.waiter.deadline(), slot.max_hold_at, slot.limiter);
        self.disarm(deadline, Timer::Deadline(no));
        self.disarm(max_hold_at, Timer::MaxHold(no));
        self.enter_phase(no, Phase::Leaving { fence, busy: false, tried: false });
        if let Phase::Leaving { .. } = self.tickets[&no].phase {
            self.send_leaving(limiter, Some(no), now, fx);
        }
    }

    /// Asks the store to forget what is leaving: one ticket, or all for which no call is under way.
    pub(crate) fn send_leaving(&mut self, limiter: LimiterIndex, only: Option<TicketNo>, now: Nanos, fx: &mut Effects) {
        const BATCH: usize = 100;
        let mut releases: Few<(TicketNo, u64)> = Few::new();
        let mut cancels: Few<TicketNo> = Few::new();
        let all: Few<TicketNo> = match only {
            Some(no) => smallvec![no],
            None => self.limiters[limiter].leaving.iter().copied().collect(),
        };
        for no in all {
            let Some(Slot { phase: Phase::Leaving { fence, busy, .. }, .. }) = self.tickets.get_mut(&no) else {
                continue;
            };
            if std::mem::replace(busy, true) {
                continue;
            }
            match *fence {
                Some(fence) => releases.push((no, fence)),
                None => cancels.push(no),
            }
        }
        for chunk in releases.chunks(BATCH) {
            let tickets = chunk.iter().map(|(no, _)| *no).collect();
            let call = self.call(limiter, Verb::Release(chunk.into()), now);
            fx.calls.push((call, Asked::Leaving { tickets }));
        }
        if only.is_none() {
            let orphans = self.limiters[limiter].orphans.iter_mut();
            cancels.extend(orphans.filter_map(|(no, busy)| (!std::mem::replace(busy, true)).then_some(*no)));
        }
        for chunk in cancels.chunks(BATCH) {
            let call = self.call(limiter, Verb::Cancel(chunk.into()), now);
            fx.calls.push((call, Asked::Leaving { tickets: chunk.into() }));
        }
    }

    /// Whether there is anything of a limiter that the store has to be asked for.
    pub(crate) fn has_work(&self, state: &LimiterState) -> bool {
        // After an outage the link tries on, or nobody would learn that the store is back.
        !state.is_empty()
            || state.restoring()
            || state.away.is_some() && self.stage == Stage::Running
            || state.epoch != 0 && matches!(self.stage, Stage::Leaving { sent: false, .. })
    }

    pub(crate) fn limiter_of(&self, name: &str) -> Option<LimiterIndex> {
        self.names.get(name).copied()
    }
}
