//! One request, as its owner and the engine share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};
use once_cell::sync::OnceCell;

use super::limiter_state::LimiterCore;
use super::{Engine, Handle};
use crate::clock::{NEVER, Nanos};
use crate::completions::{Completion, Queue};
use crate::events::{LostReason, PermitEvent};
use crate::status::Position;
use crate::store::TicketNo;
use crate::sync::{Condvar, Mutex};
use crate::ticket::{Ticket, TicketState};
use crate::{Error, Permit, Request};

/// Who is told when the ticket settles.
pub(crate) enum Sink {
    /// A thread in [`Waiter::wait`].
    Blocking,
    /// A queue, under this token. It is told without the engine's lock, by any of its threads.
    Queue { queue: Arc<Queue>, token: u64 },
}

/// What its start made of the request.
pub(crate) struct Terms {
    pub cost: u64,
    pub label: Arc<str>,
    pub may_wait: bool,
    pub started: Nanos,
    /// Changed under the engine's lock only.
    deadline: AtomicU64,
    /// The request waits as long as its limiter says, also when that changes.
    pub waits_as_declared: bool,
    /// Whether the queue is told of each new position.
    pub reports_position: bool,
    /// Whether the queue is told what happens to the permit.
    pub reports_permit: bool,
    /// A queue may hold the permit, which holds this: a ring, broken when the host's end of the queue goes.
    pub sink: Sink,
}

impl Terms {
    /// `max_wait` is the limiter's, for a request that has none of its own. Without wait there is still the round
    /// trip, which `patience` bounds.
    pub(crate) fn new(request: &Request, max_wait: Nanos, now: Nanos, patience: Nanos, sink: Sink) -> Self {
        let waits_as_declared = request.max_wait.is_none();
        let max_wait = request.max_wait.map_or(max_wait, crate::clock::nanos);
        let bound = if max_wait == 0 { patience } else { max_wait };
        Terms {
            cost: request.cost,
            label: request.label.clone(),
            may_wait: max_wait > 0,
            started: now,
            deadline: AtomicU64::new(now.saturating_add(bound)),
            waits_as_declared,
            reports_position: request.report_position && matches!(sink, Sink::Queue { .. }),
            reports_permit: request.report_permit,
            sink,
        }
    }
}

/// A ticket, with what its owner is to learn of it. Settled by the engine, under the engine's lock; looked at by its
/// owner, without it.
pub(crate) struct Waiter {
    pub no: TicketNo,
    pub limiter: Arc<LimiterCore>,
    /// Keeps the client open for as long as the ticket or its permit lives.
    pub handle: Arc<Handle>,
    pub ticket: Ticket,
    pub terms: OnceCell<Terms>,
    /// Why there is no permit. Set by whoever settles, before the ticket itself.
    error: OnceCell<Box<Error>>,
    order: OnceCell<u64>,
    /// Of the permit that was put back: a late message about that grant is none about this one.
    former_fence: OnceCell<u64>,
    /// Why the permit was lost, once it was.
    pub lost: OnceCell<LostReason>,
    desk: Mutex<Desk>,
    settled: Condvar,
}

/// Where the owner picks up what the engine leaves for it.
#[derive(Default)]
struct Desk {
    done: bool,
    position: Option<Position>,
    /// The queue has been told that there is a new position, and has not asked for it.
    position_reported: bool,
    /// The queue has its completion: what happens to the permit may follow.
    completed: bool,
    /// What happened to the permit before that.
    early: Vec<PermitEvent>,
    events: Vec<Sender<PermitEvent>>,
}

impl Waiter {
    pub(crate) fn new(no: TicketNo, limiter: Arc<LimiterCore>, handle: Arc<Handle>) -> Self {
        Waiter {
            no,
            limiter,
            handle,
            ticket: Ticket::new(),
            terms: OnceCell::new(),
            error: OnceCell::new(),
            order: OnceCell::new(),
            former_fence: OnceCell::new(),
            lost: OnceCell::new(),
            desk: Mutex::default(),
            settled: Condvar::new(),
        }
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.handle.engine()
    }

    pub(crate) fn cost(&self) -> u64 {
        self.terms.get().map_or(1, |t| t.cost)
    }

    /// Whether it may stand in line at all.
    pub(crate) fn may_wait(&self) -> bool {
        self.terms.get().is_none_or(|t| t.may_wait)
    }

    pub(crate) fn label(&self) -> Arc<str> {
        self.terms.get().map_or_else(|| "".into(), |t| t.label.clone())
    }

    pub(crate) fn deadline(&self) -> Nanos {
        self.terms.get().map_or(NEVER, |t| t.deadline.load(Ordering::Relaxed))
    }

    /// The limiter's `max_wait` is another now. Under the engine's lock; timers are the caller's business.
    pub(crate) fn set_deadline(&self, deadline: Nanos) {
        if let Some(terms) = self.terms.get() {
            terms.deadline.store(deadline, Ordering::Relaxed);
        }
    }

    pub(crate) fn started(&self) -> Nanos {
        self.terms.get().map_or(0, |t| t.started)
    }

    /// Settles without a permit. False: the outcome was decided before.
    pub(crate) fn refuse(&self, state: TicketState, error: Error) -> bool {
        // A rival may set its error first and lose the swap to a grant, or win it: then both say why there is none.
        let _ = self.error.set(Box::new(error));
        self.ticket.settle(state)
    }

    pub(crate) fn set_order(&self, order: u64) {
        if order == 0 {
            return; // admitted locally, without ever having been in line
        }
        // The order is given once and kept for life.
        let _ = self.order.set(order);
    }

    pub(crate) fn order(&self) -> u64 {
        self.order.get().copied().unwrap_or(0)
    }

    /// The ticket waits again, after it had been granted with this fence.
    pub(crate) fn set_former_fence(&self, fence: u64) {
        let _ = self.former_fence.set(fence);
    }

    pub(crate) fn former_fence(&self) -> u64 {
        self.former_fence.get().copied().unwrap_or(0)
    }

    pub(crate) fn set_position(&self, position: Option<Position>) {
        let mut desk = self.desk.lock();
        if !desk.done {
            desk.position = position;
        }
    }

    pub(crate) fn position(&self) -> Option<Position> {
        self.desk.lock().position
    }

    /// Whether its queue is told of each new position.
    pub(crate) fn reports_position(&self) -> bool {
        self.terms.get().is_some_and(|t| t.reports_position)
    }

    /// Tells the queue that there is a new position, unless it knows. Called without the engine's lock.
    pub(crate) fn report_position(self: &Arc<Self>) {
        let Some(Terms { sink: Sink::Queue { queue, .. }, .. }) = self.terms.get() else { return };
        if !std::mem::replace(&mut self.desk.lock().position_reported, true) {
            queue.moved(self);
        }
    }

    /// The queue asks what there was to report: its token, and where it stands if it still waits.
    pub(crate) fn take_position_report(&self) -> Option<(u64, Position)> {
        let Some(Terms { sink: Sink::Queue { token, .. }, .. }) = self.terms.get() else { return None };
        let mut desk = self.desk.lock();
        desk.position_reported = false;
        Some((*token, desk.position?))
    }

    /// Tells whoever waits that the ticket has settled. Called once, without the engine's lock.
    pub(crate) fn deliver(self: &Arc<Self>) {
        {
            let mut desk = self.desk.lock();
            desk.done = true;
            desk.position = None;
        }
        match self.terms.get() {
            Some(Terms { sink: Sink::Queue { queue, token }, .. }) => self.complete(queue, *token),
            Some(Terms { sink: Sink::Blocking, .. }) | None => {
                self.settled.notify_all();
            }
        }
    }

    fn complete(self: &Arc<Self>, queue: &Queue, token: u64) {
        let result = self.outcome().map(|()| Permit::new(self.clone()));
        queue.complete(self, Completion { token, result });
        let early = {
            let mut desk = self.desk.lock();
            desk.completed = true;
            std::mem::take(&mut desk.early)
        };
        for event in early {
            queue.permit_event(token, event);
        }
    }

    /// Blocks until the ticket has settled. `Ok`: with a permit.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        let mut desk = self.desk.lock();
        while !desk.done {
            desk = self.settled.wait(desk);
        }
        drop(desk);
        self.outcome()
    }

    /// What a settled ticket came to. `Ok`: a permit.
    pub(crate) fn outcome(&self) -> Result<(), Error> {
        if let TicketState::Granted | TicketState::Released | TicketState::Lost = self.ticket.state() {
            return Ok(());
        }
        Err(self.error())
    }

    /// Why there is no permit.
    pub(crate) fn error(&self) -> Error {
        self.error.get().map_or(Error::Cancelled, |error| Error::clone(error))
    }

    pub(crate) fn subscribe(&self) -> Receiver<PermitEvent> {
        let (sender, receiver) = crossbeam_channel::unbounded();
        if self.ticket.state() == TicketState::Granted {
            self.desk.lock().events.push(sender);
        }
        receiver
    }

    /// Tells the owner what happened to the permit. Called without the engine's lock.
    pub(crate) fn tell(&self, event: PermitEvent) {
        let mut desk = self.desk.lock();
        desk.events.retain(|to| to.send(event).is_ok());
        if let PermitEvent::Lost(_) = event {
            desk.events.clear();
        }
        let Some(Terms { sink: Sink::Queue { queue, token }, reports_permit: true, .. }) = self.terms.get() else {
            return;
        };
        match desk.completed {
            true => {
                drop(desk);
                queue.permit_event(*token, event);
            }
            false => desk.early.push(event),
        }
    }

    /// Nothing more will happen to the permit.
    pub(crate) fn close_events(&self) {
        self.desk.lock().events.clear();
    }
}
