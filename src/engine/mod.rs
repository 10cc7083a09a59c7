//! The blocking core of one instance: what its tickets go through, and when the store is asked. It knows policy
//! (when), the store knows mechanism (how).
//!
//! A request, from `acquire` to its permit and back:
//!
//! 1. `start` puts the ticket into the [`table`] and submits `acquire`. It is in the table before its enqueue is sent,
//!    because the message about its grant may overtake the answer.
//! 2. The answer ([`answers`]) or a message from the store ([`notices`]) settles it, or the [`scheduler`] when its
//!    deadline comes, or `cancel`, or `close`: equal contenders for one compare-and-swap (see [`crate::ticket`]).
//! 3. [`Table::clean_up`] makes the store forget whatever a settled ticket may have left there.
//! 4. While anything is held or waits, a `sync` every third of a lease (every poll interval, when somebody waits) is
//!    heartbeat and safety net in one ([`sync`]); after a loss of state [`restore`] brings everything back.
//!
//! Locks: the table's is the only one of the engine. It is never held while a store is called that asks somebody, or
//! anybody is told something; see [`Effects`]. Only the short locks of a waiter's desk and of a completion queue's list of
//! starts are taken under it, and that of a store which has all answers itself ([`at_once`]).

mod answers;
mod at_once;
#[cfg(test)]
mod by_hand;
mod close;
pub(crate) mod limiter_state;
mod limiters;
#[cfg(all(test, loom))]
mod loom_tests;
mod notices;
mod outage;
mod outbox;
mod permits;
mod positions;
mod queries;
mod restore;
mod scheduler;
mod sync;
pub(crate) mod table;
pub(crate) mod waiter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use once_cell::sync::OnceCell;

use crate::clock::{Clock, NEVER, Nanos, nanos};
use crate::events::{LostReason, PermitEvent};
use crate::store::{RestoreKind, Store, TicketNo, Verb};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::ticket::TicketState;
use crate::{Error, Request};
use table::{Asked, Effects, LimiterIndex, Phase, Sent, Slot, Stage, Table, Timer, Turn};
use waiter::{Home, Sink, Terms, Waiter};

/// What the owners of a client share; the last of them closes it.
pub(crate) struct Handle {
    engine: Arc<Engine>,
}

impl Handle {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Handle { engine }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.engine.is_forked() {
            self.engine.start_closing(Duration::ZERO);
        }
    }
}

/// One open client.
pub(crate) struct Engine {
    pub instance: Arc<str>,
    pub clock: Clock,
    pub description: String,
    /// For how long a question without a deadline of its own waits for its answer.
    pub patience: Duration,
    store: OnceCell<Box<dyn Store>>,
    table: Mutex<Table>,
    /// Wakes the scheduler, and whoever waits for the end.
    wake: Condvar,
    next_no: AtomicU64,
    /// Of the process that opened it; see [`crate::process`].
    generation: u32,
    me: Weak<Engine>,
    scheduler: OnceCell<()>,
}

impl Engine {
    pub(crate) fn new(instance: Arc<str>, clock: Clock, description: String, patience: Duration) -> Arc<Self> {
        Arc::new_cyclic(|me| Engine {
            instance,
            clock,
            description,
            patience,
            store: OnceCell::new(),
            table: Mutex::new(Table::new()),
            wake: Condvar::new(),
            next_no: AtomicU64::new(1),
            generation: crate::process::generation(),
            me: me.clone(),
            scheduler: OnceCell::new(),
        })
    }

    /// Connects the engine with its store; once, before anything else.
    pub(crate) fn attach(&self, store: Box<dyn Store>) {
        assert!(self.store.set(store).is_ok(), "an engine has one store");
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.store.get().expect("a client attaches its store before it hands out anything").as_ref()
    }

    /// Takes in no more than so many tickets at a time.
    pub(crate) fn bound(&self, max_tickets: u64) {
        self.lock().max_tickets = max_tickets;
    }

    pub(crate) fn ticket_name(&self, no: TicketNo) -> String {
        format!("{}:{no}", self.instance)
    }

    fn is_forked(&self) -> bool {
        self.generation != crate::process::generation()
    }

    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if self.is_forked() { Err(Error::Forked) } else { Ok(()) }
    }

    /// Runs `change` under the lock, and what it asks for after it.
    fn with_table<R>(&self, change: impl FnOnce(&mut Turn<'_>) -> R) -> R {
        let mut fx = Effects::default();
        let mut table = self.table.lock();
        let now = self.clock.now();
        let result = change(&mut Turn { table: &mut table, now, fx: &mut fx });
        self.run(table, now, fx);
        result
    }

    /// Releases the lock and does what was decided under it. Each part is taken exactly once.
    fn run(&self, mut table: MutexGuard<'_, Table>, now: Nanos, mut fx: Effects) {
        let alone = fx.waits && fx.calls.len() == 1 && table.outbox.is_empty();
        if !fx.calls.is_empty() {
            table.outbox.extend(fx.calls.drain(..));
        }
        let submits = !table.outbox.is_empty()
            && !self.carries_out(&mut Turn { table: &mut table, now, fx: &mut fx })
            && table.take_outbox_turn();
        drop(table);
        if fx.wake_scheduler {
            self.wake.notify_all();
        }
        if !fx.tells_nobody() {
            fx.tell();
        }
        if submits {
            self.submit_outbox(alone);
        }
    }

    /// A ticket that is not started yet.
    pub(crate) fn new_waiter(&self, home: Arc<Home>) -> Arc<Waiter> {
        let no = self.next_no.fetch_add(1, Ordering::Relaxed);
        Waiter::take(no, home)
    }

    /// Sends a ticket on its way. It settles by itself from here on.
    pub(crate) fn start(&self, waiter: &Arc<Waiter>, request: &Request, sink: Sink) -> Result<(), Error> {
        self.check_process()?;
        request.check()?;
        self.ensure_scheduler()?;
        self.with_table(|turn| {
            let index = waiter.limiter().index;
            let max_wait = nanos(crate::settings::from_millis(turn.table.limiters[index].settings.max_wait));
            turn.fx.waits = matches!(sink, Sink::Blocking);
            let terms = Terms::new(request, max_wait, turn.now, nanos(self.patience), sink);
            match waiter.terms.try_insert(terms) {
                Ok(Terms { sink: Sink::Queue { queue, .. }, .. }) if !queue.expect(waiter) => {
                    waiter.refuse(TicketState::Cancelled, Error::Cancelled);
                }
                Ok(_) => {}
                Err(_) => {
                    return Err(Error::invalid("ticket", "it was started already: take a new one for each request"));
                }
            }
            if turn.table.stage != Stage::Running && waiter.refuse(TicketState::Closed, Error::Closed)
                || turn.table.is_full() && waiter.refuse(TicketState::Failed, turn.table.overloaded())
                || waiter.ticket.state() != TicketState::Pending
            {
                turn.fx.settled.push(waiter.clone());
                return Ok(());
            }
            self.enter(turn, waiter, false);
            Ok(())
        })
    }

    /// Puts a started ticket into the table and asks the store about it, if it can be asked.
    fn enter(&self, turn: &mut Turn<'_>, waiter: &Arc<Waiter>, puts_back: bool) {
        let (no, limiter) = (waiter.no, waiter.limiter().index);
        let answer = if puts_back { None } else { self.ask_at_once(turn, limiter, &enqueue(waiter)) };
        turn.table.arrivals += 1;
        let slot = Slot {
            arrival: turn.table.arrivals,
            waiter: waiter.clone(),
            limiter,
            phase: Phase::Unsent,
            puts_back,
            told: false,
            doubtful: false,
            entered_late: false,
            arrived: puts_back,
            last_error: None,
            ack: None,
            max_hold_at: NEVER,
        };
        if let Some((sent, answer)) = answer {
            return self.enter_answered(turn, slot, sent, answer);
        }
        turn.table.add(slot);
        turn.table.arm(waiter.deadline(), Timer::Deadline(no), turn.fx);
        if turn.table.limiters[limiter].away.is_some() && self.admit_by_outage_policy(turn, limiter) {
            return;
        }
        self.send_ticket(turn, no);
    }

    /// Asks the store about a ticket that is not under way, unless something has to come first: a restore, or, while
    /// nothing is known of the limiter, the answer to another. A call that knows no epoch is only safe alone: after a
    /// long stop it would count us in again, as one with nothing to lose, though the other was granted and lost.
    fn send_ticket(&self, turn: &mut Turn<'_>, no: TicketNo) {
        let Some(slot) = turn.table.tickets.get(&no) else { return };
        let limiter = slot.limiter;
        let state = &turn.table.limiters[limiter];
        // Its number may just be given back, for a message that lied; what is sent again could come behind the enqueue.
        let must_wait = state.restoring()
            || state.is_cold(turn.now) && !state.in_flight.is_empty()
            || state.orphans.contains_key(&no);
        if slot.phase != Phase::Unsent || must_wait {
            return;
        }
        let verb = if slot.puts_back {
            Verb::PutBack { no, fence: slot.waiter.former_fence() }
        } else {
            enqueue(&slot.waiter)
        };
        let call = turn.table.call(limiter, verb, turn.now);
        turn.table.enter_phase(no, Phase::InFlight);
        turn.fx.calls.push((call, Asked::Ticket { no, sent_at: turn.now }));
    }

    fn send_unsent(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        for (_, no) in turn.table.limiters[limiter].unsent.iter().copied().collect::<Vec<_>>() {
            self.send_ticket(turn, no);
        }
    }

    /// Settles a ticket without a permit and makes the store forget it.
    fn refuse(&self, turn: &mut Turn<'_>, waiter: &Arc<Waiter>, why: (TicketState, Error)) {
        if waiter.refuse(why.0, why.1) {
            turn.table.clean_up(waiter.no, turn.now, turn.fx);
            if waiter.terms.get().is_some() {
                turn.fx.settled.push(waiter.clone());
            }
        }
    }

    /// A grant has arrived. False: it is too late for this ticket; whoever settled it has cleaned up.
    fn grant(&self, turn: &mut Turn<'_>, no: TicketNo, fence: u64, order: u64) -> bool {
        let Some(slot) = turn.table.tickets.get(&no) else { return false };
        if fence != 0 && fence <= slot.waiter.former_fence() {
            return false; // news of the permit that was put back
        }
        if matches!(slot.phase, Phase::Held | Phase::Leaving { .. }) || !slot.waiter.ticket.grant(fence) {
            return false;
        }
        let (waiter, limiter) = (slot.waiter.clone(), slot.limiter);
        waiter.set_order(order);
        turn.table.disarm(waiter.deadline(), Timer::Deadline(no));
        turn.table.enter_phase(no, Phase::Held);
        turn.fx.settled.push(waiter);
        self.begin_hold(turn, limiter, (no, fence));
        true
    }

    /// What follows from a ticket's being held.
    fn begin_hold(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, (no, fence): (TicketNo, u64)) {
        if fence != 0 {
            self.watch_lease(turn, limiter);
        }
        let max_hold = turn.table.limiters[limiter].settings.max_hold;
        if max_hold > 0 {
            let at = turn.now.saturating_add(max_hold.saturating_mul(1_000_000));
            if let Some(slot) = turn.table.tickets.get_mut(&no) {
                slot.max_hold_at = at;
            }
            turn.table.arm(at, Timer::MaxHold(no), turn.fx);
        }
        self.plan_sync(turn, limiter);
    }

    /// Cancels a ticket, also one that is not started. True: it is settled as cancelled by this call.
    pub(crate) fn cancel(&self, waiter: &Arc<Waiter>) -> bool {
        if self.is_forked() {
            return false;
        }
        self.with_table(|turn| {
            self.refuse(turn, waiter, (TicketState::Cancelled, Error::Cancelled));
        });
        waiter.ticket.state() == TicketState::Cancelled
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

fn enqueue(waiter: &Waiter) -> Verb {
    Verb::Acquire {
        no: waiter.no,
        cost: waiter.cost(),
        may_wait: waiter.may_wait(),
        order: waiter.order(),
        label: waiter.label(),
    }
}
