//! One request, as its owner and the engine share it.

#[cfg(not(loom))]
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};
use once_cell::sync::OnceCell;

use super::limiter_state::LimiterCore;
use super::{Engine, Handle};
use crate::clock::{NEVER, Nanos};
use crate::completions::{Completion, Queue};
use crate::events::{LostReason, PermitEvent};
use crate::label::Label;
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
    pub label: Label,
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
    /// None when it is a spare one.
    home: Option<Arc<Home>>,
    pub ticket: Ticket,
    pub terms: OnceCell<Terms>,
    /// Why there is no permit. Set by whoever settles, before the ticket itself.
    error: OnceCell<Box<Error>>,
    /// 0 before it is known.
    order: AtomicU64,
    /// Of the permit that was put back, or 0: a late message about that grant is none about this one.
    former_fence: AtomicU64,
    /// Why the permit was lost, once it was.
    pub lost: OnceCell<LostReason>,
    /// It has settled, and whoever waits for that is told. Written under the desk's lock, or before anybody can wait.
    done: AtomicBool,
    /// Somebody wants to know what happens to the permit.
    subscribed: AtomicBool,
    desk: Mutex<Desk>,
    settled: Condvar,
}

/// Where a ticket belongs.
pub(crate) struct Home {
    pub limiter: Arc<LimiterCore>,
    /// Keeps the client open for as long as the ticket or its permit lives.
    pub handle: Arc<Handle>,
}

/// So many spare waiters a thread keeps.
#[cfg(not(loom))]
const SPARES: usize = 8;

#[cfg(not(loom))]
thread_local! {
    /// Waiters whose permit this thread has given back: its next requests take them in the place of new memory. A thread's
    /// own, since what threads share they wait for.
    static SPARE: RefCell<Vec<Arc<Waiter>>> = const { RefCell::new(Vec::new()) };
}

/// Where the owner picks up what the engine leaves for it.
#[derive(Default)]
struct Desk {
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
    /// A new one, or a spare one made new.
    pub(crate) fn take(no: TicketNo, home: Arc<Home>) -> Arc<Self> {
        let home = Some(home);
        if let Some(mut spare) = take_spare()
            && let Some(waiter) = Arc::get_mut(&mut spare)
        {
            (waiter.no, waiter.home) = (no, home);
            return spare;
        }
        Arc::new(Waiter { no, home, ..Waiter::blank() })
    }

    /// Its last owner needs it no more.
    pub(crate) fn retire(this: &mut Arc<Self>) {
        let Some(waiter) = Arc::get_mut(this) else { return };
        let served = std::mem::replace(waiter, Waiter::blank());
        keep_spare(this);
        drop(served); // may close the client
    }

    fn blank() -> Self {
        Waiter {
            no: 0,
            home: None,
            ticket: Ticket::new(),
            terms: OnceCell::new(),
            error: OnceCell::new(),
            order: AtomicU64::new(0),
            former_fence: AtomicU64::new(0),
            lost: OnceCell::new(),
            done: AtomicBool::new(false),
            subscribed: AtomicBool::new(false),
            desk: Mutex::default(),
            settled: Condvar::new(),
        }
    }

    pub(crate) fn home(&self) -> &Arc<Home> {
        self.home.as_ref().expect("nobody has a spare one")
    }

    pub(crate) fn limiter(&self) -> &Arc<LimiterCore> {
        &self.home().limiter
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        self.home().handle.engine()
    }

    pub(crate) fn cost(&self) -> u64 {
        self.terms.get().map_or(1, |t| t.cost)
    }

    /// Whether it may stand in line at all.
    pub(crate) fn may_wait(&self) -> bool {
        self.terms.get().is_none_or(|t| t.may_wait)
    }

    pub(crate) fn label(&self) -> Label {
        self.terms.get().map_or_else(Label::default, |t| t.label.clone())
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
        // Of a permit that was admitted locally, without ever having been in line, it is 0 still. Otherwise it is given once
        // and kept for life.
        if self.order() == 0 {
            self.order.store(order, Ordering::Release);
        }
    }

    pub(crate) fn order(&self) -> u64 {
        self.order.load(Ordering::Acquire)
    }

    /// The ticket waits again, after it had been granted with this fence.
    pub(crate) fn set_former_fence(&self, fence: u64) {
        self.former_fence.store(fence, Ordering::Release);
    }

    pub(crate) fn former_fence(&self) -> u64 {
        self.former_fence.load(Ordering::Acquire)
    }

    pub(crate) fn set_position(&self, position: Option<Position>) {
        let mut desk = self.desk.lock();
        if !self.done.load(Ordering::Relaxed) {
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
            self.done.store(true, Ordering::Release);
            desk.position = None;
        }
        match self.terms.get() {
            Some(Terms { sink: Sink::Queue { queue, token }, .. }) => self.complete(queue, *token),
            Some(Terms { sink: Sink::Blocking, .. }) | None => {
                self.settled.notify_all();
            }
        }
    }

    /// The same for a ticket that its thread has only just started: there is nobody yet whom it would have to be told.
    /// False: it is not a thread that will wait for it.
    pub(crate) fn deliver_at_once(&self) -> bool {
        let waits_here = matches!(self.terms.get(), Some(Terms { sink: Sink::Blocking, .. }));
        if waits_here {
            self.done.store(true, Ordering::Release);
        }
        waits_here
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
        if !self.done.load(Ordering::Acquire) {
            let mut desk = self.desk.lock();
            while !self.done.load(Ordering::Acquire) {
                desk = self.settled.wait(desk);
            }
        }
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
            self.subscribed.store(true, Ordering::Release);
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
        if self.subscribed.load(Ordering::Acquire) {
            self.desk.lock().events.clear();
        }
    }
}

#[cfg(not(loom))]
fn take_spare() -> Option<Arc<Waiter>> {
    // In a thread that is ending there are none any more.
    SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten()
}

#[cfg(not(loom))]
fn keep_spare(waiter: &Arc<Waiter>) {
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < SPARES {
            spare.push(waiter.clone());
        }
    });
}

/// Loom's locks must not outlive a search.
#[cfg(loom)]
fn take_spare() -> Option<Arc<Waiter>> {
    None
}

#[cfg(loom)]
fn keep_spare(_: &Arc<Waiter>) {}
