//! One request, as its owner and the engine share it.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use once_cell::sync::OnceCell;
use parking_lot::{Condvar, Mutex};

use super::table::LimiterCore;
use super::{Engine, Handle};
use crate::clock::{NEVER, Nanos};
use crate::events::{LostReason, PermitEvent};
use crate::status::Position;
use crate::store::TicketNo;
use crate::ticket::{Ticket, TicketState};
use crate::{Error, Request};

/// What is done with a settled ticket.
pub(crate) type Tell = Box<dyn FnOnce(&Arc<Waiter>) + Send>;

/// Who is told when the ticket settles.
pub(crate) enum Sink {
    /// A thread in [`Waiter::wait`].
    Blocking,
    /// Somebody who does not wait. Called without the engine's lock, by any of its threads.
    Tell(Tell),
}

/// What its start made of the request.
pub(crate) struct Terms {
    pub cost: u64,
    pub label: Arc<str>,
    pub may_wait: bool,
    pub started: Nanos,
    pub deadline: Nanos,
    /// Taken by the one that delivers: a queue that holds the permit must not be held by it.
    pub sink: Mutex<Option<Sink>>,
}

impl Terms {
    /// `max_wait` is the limiter's, for a request that has none of its own. Without wait there is still the round
    /// trip, which `patience` bounds.
    pub(crate) fn new(request: &Request, max_wait: Nanos, now: Nanos, patience: Nanos, sink: Sink) -> Self {
        let max_wait = request.max_wait.map_or(max_wait, crate::clock::nanos);
        let bound = if max_wait == 0 { patience } else { max_wait };
        Terms {
            cost: request.cost,
            label: request.label.clone(),
            may_wait: max_wait > 0,
            started: now,
            deadline: if bound == NEVER { NEVER } else { now.saturating_add(bound) },
            sink: Mutex::new(Some(sink)),
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
        self.terms.get().map_or(NEVER, |t| t.deadline)
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
        self.desk.lock().position = position;
    }

    pub(crate) fn position(&self) -> Option<Position> {
        self.desk.lock().position
    }

    /// Tells whoever waits that the ticket has settled. Called once, without the engine's lock.
    pub(crate) fn deliver(self: &Arc<Self>) {
        {
            let mut desk = self.desk.lock();
            desk.done = true;
            desk.position = None;
        }
        let sink = self.terms.get().and_then(|t| t.sink.lock().take());
        match sink {
            Some(Sink::Tell(tell)) => guarded(|| tell(self)),
            Some(Sink::Blocking) | None => {
                self.settled.notify_all();
            }
        }
    }

    /// Blocks until the ticket has settled. `Ok`: with a permit.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        let mut desk = self.desk.lock();
        while !desk.done {
            self.settled.wait(&mut desk);
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

    pub(crate) fn tell(&self, event: PermitEvent) {
        let mut desk = self.desk.lock();
        desk.events.retain(|to| to.send(event).is_ok());
        if let PermitEvent::Lost(_) = event {
            desk.events.clear();
        }
    }

    /// Nothing more will happen to the permit.
    pub(crate) fn close_events(&self) {
        self.desk.lock().events.clear();
    }
}

/// Runs a host's code: its panic must not take the thread along, on which everybody else's settlement depends.
fn guarded(call: impl FnOnce()) {
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err() {
        tracing::error!("the host's notification panicked");
    }
}
