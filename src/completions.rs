//! Completions: how hosts with an event loop learn what became of their requests, without a thread per waiter.
//!
//! A [`Completions`] is the host's end of a queue, a [`Queue`] the engine's. The host's end knows which requests have
//! not completed: when it goes, they are cancelled, since a permit that nobody can take would hold up the line.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::waiter::Waiter;
use crate::events::PermitEvent;
use crate::map::HashMap;
use crate::status::Position;
use crate::sync::Mutex;
use crate::sync::channel::{Receiver, Sender, unbounded};
use crate::{Error, Permit, process};

/// What became of one request started by [`Limiter::acquire_start`](crate::Limiter::acquire_start).
#[derive(Debug)]
pub struct Completion {
    /// The token that the request was started with.
    pub token: u64,
    /// The permit, or why there is none.
    pub result: Result<Permit, Error>,
}

/// What a queue tells of one request.
#[derive(Debug)]
pub enum Event {
    /// It has ended, once and for all, or got its permit.
    Done(Completion),
    /// It has moved up, for requests with [`Request::report_position`](crate::Request::report_position).
    Position {
        /// The token that the request was started with.
        token: u64,
        /// Where it stands now. What was not polled in time is replaced by later news.
        position: Position,
    },
    /// Something happened to its permit, for requests with [`Request::report_permit`](crate::Request::report_permit).
    /// Comes after the completion that brought the permit, and never again after [`PermitEvent::Lost`].
    Permit {
        /// The token that the request was started with.
        token: u64,
        /// What happened.
        event: PermitEvent,
    },
}

/// A queue of completions. Any number of requests, limiters and clients may report to one queue, and any number of
/// threads may poll it. What was granted at one moment may come in any order; [`Permit::fence`] tells it. Clones are the
/// same queue. When the last one goes, the requests that have not completed are cancelled, and permits that nobody has
/// taken are given back.
#[derive(Clone)]
pub struct Completions {
    host: Arc<Host>,
}

struct Host {
    queue: Arc<Queue>,
    /// Of the process that made it; see [`crate::process`].
    generation: u32,
}

/// The engine's end.
pub(crate) struct Queue {
    sender: Sender<Item>,
    receiver: Receiver<Item>,
    notify: Option<Notify>,
    starts: Mutex<Starts>,
}

/// The requests that have not completed, by the address of their waiter.
#[derive(Default)]
struct Starts {
    closed: bool,
    open: HashMap<usize, Weak<Waiter>>,
}

enum Item {
    Done(Completion),
    Position(Arc<Waiter>),
    Permit(u64, PermitEvent),
    /// Nothing more will come; left in the queue for the next one who looks.
    End,
}

struct Notify {
    call: Box<dyn Fn() + Send + Sync>,
    /// Called, and nobody has polled since. Set after an item is in the queue and cleared before the queue is
    /// drained, so that an item is either drained by the poll that cleared, or notifies anew. Cleared by a swap, too,
    /// which costs as much as such a store: then loom can follow the order of the two.
    called: AtomicBool,
}

impl Notify {
    fn fire(&self) {
        // A host's panic must not take the thread along, on which everybody else's settlement depends.
        if !self.called.swap(true, Ordering::SeqCst) && catch_unwind(AssertUnwindSafe(&self.call)).is_err() {
            tracing::error!("the host's notification panicked");
        }
    }
}

impl Default for Completions {
    fn default() -> Self {
        Completions::new()
    }
}

impl Completions {
    /// An empty queue.
    pub fn new() -> Self {
        Completions::build(None)
    }

    /// A queue that calls `notify` whenever there is something to poll for, for event loops: let it write to an eventfd or
    /// wake a poller. It is called by fairq's own threads, and by any that calls fairq: it has to be quick, and must
    /// not block, take a lock that is held while fairq is called, or call fairq itself.
    pub fn with_notify(notify: impl Fn() + Send + Sync + 'static) -> Self {
        Completions::build(Some(Notify { call: Box::new(notify), called: AtomicBool::new(false) }))
    }

    fn build(notify: Option<Notify>) -> Self {
        let (sender, receiver) = unbounded();
        let queue = Queue { sender, receiver, notify, starts: Mutex::default() };
        Completions { host: Arc::new(Host { queue: Arc::new(queue), generation: process::generation() }) }
    }

    /// Takes up to `max` completions. Waits up to `timeout` for the first, and not at all for more. What else was
    /// reported is passed over: see [`Completions::poll_events`].
    pub fn poll(&self, max: usize, timeout: Duration) -> Vec<Completion> {
        self.host.queue.take(max, timeout, |event| match event {
            Event::Done(completion) => Some(completion),
            Event::Position { .. } | Event::Permit { .. } => None,
        })
    }

    /// Takes up to `max` completions and reports. Waits up to `timeout` for the first, and not at all for more.
    pub fn poll_events(&self, max: usize, timeout: Duration) -> Vec<Event> {
        self.host.queue.take(max, timeout, Some)
    }

    /// Calls the notification when there is something to poll for, as if it came just now.
    pub(crate) fn renotify(&self) {
        let queue = &self.host.queue;
        if let Some(notify) = queue.notify.as_ref().filter(|_| !queue.receiver.is_empty()) {
            notify.called.swap(false, Ordering::SeqCst);
            notify.fire();
        }
    }

    /// Ends the queue as if its last clone had gone, also under those who poll it.
    pub(crate) fn close(&self) {
        self.host.queue.close();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.host.queue.starts.lock().closed
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.host.queue
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if self.generation == process::generation() {
            self.queue.close();
        }
    }
}

impl Queue {
    fn take<T>(&self, max: usize, timeout: Duration, pick: impl Fn(Event) -> Option<T>) -> Vec<T> {
        let mut taken = Vec::new();
        if max == 0 {
            return taken;
        }
        if let Some(notify) = &self.notify {
            notify.called.swap(false, Ordering::SeqCst);
        }
        let deadline = Instant::now().checked_add(timeout);
        while taken.len() < max {
            let item = match self.receiver.try_recv() {
                Ok(item) => item,
                // Not even to look at the clock: a wait of no time spins first, for longer than most polls take.
                Err(_) if !taken.is_empty() || timeout.is_zero() => break,
                Err(_) => match self.wait(deadline) {
                    Some(item) => item,
                    None => break,
                },
            };
            if let Item::End = item {
                self.send(Item::End);
                break;
            }
            taken.extend(item.news().and_then(&pick));
        }
        if let Some(notify) = self.notify.as_ref().filter(|_| !self.receiver.is_empty()) {
            notify.fire();
        }
        taken
    }

    fn wait(&self, deadline: Option<Instant>) -> Option<Item> {
        match deadline {
            Some(deadline) => self.receiver.recv_deadline(deadline).ok(),
            None => self.receiver.recv().ok(),
        }
    }

    /// The request will complete here. False: nobody will poll for it any more.
    pub(crate) fn expect(&self, waiter: &Arc<Waiter>) -> bool {
        let mut starts = self.starts.lock();
        starts.open.insert(address(waiter), Arc::downgrade(waiter));
        !starts.closed
    }

    /// The one completion of a request.
    pub(crate) fn complete(&self, waiter: &Arc<Waiter>, completion: Completion) {
        {
            let mut starts = self.starts.lock();
            starts.open.remove(&address(waiter));
            if starts.closed {
                drop(starts); // the permit goes back, which is none of this lock's business
                return;
            }
            self.send(Item::Done(completion));
        }
        self.notify();
    }

    /// The position of a request has changed; its waiter tells it when it is asked.
    pub(crate) fn moved(&self, waiter: &Arc<Waiter>) {
        self.report(Item::Position(waiter.clone()));
    }

    pub(crate) fn permit_event(&self, token: u64, event: PermitEvent) {
        self.report(Item::Permit(token, event));
    }

    fn report(&self, item: Item) {
        {
            let starts = self.starts.lock();
            if starts.closed {
                return;
            }
            self.send(item);
        }
        self.notify();
    }

    /// Under the lock of `starts`, so that nothing comes after the close.
    fn send(&self, item: Item) {
        // A queue holds its own receiver, so this cannot fail.
        let _ = self.sender.send(item);
    }

    fn notify(&self) {
        if let Some(notify) = &self.notify {
            notify.fire();
        }
    }

    /// Nobody will poll any more.
    fn close(&self) {
        let open = {
            let mut starts = self.starts.lock();
            starts.closed = true;
            std::mem::take(&mut starts.open)
        };
        for waiter in open.into_values().filter_map(|waiter| waiter.upgrade()) {
            waiter.engine().cancel(&waiter);
        }
        self.receiver.try_iter().for_each(drop);
        self.send(Item::End);
    }
}

fn address(waiter: &Arc<Waiter>) -> usize {
    Arc::as_ptr(waiter).addr()
}

impl Item {
    /// What there is to tell; a position of somebody who does not wait any more is no news.
    fn news(self) -> Option<Event> {
        Some(match self {
            Item::End => return None,
            Item::Done(completion) => Event::Done(completion),
            Item::Permit(token, event) => Event::Permit { token, event },
            Item::Position(waiter) => {
                let (token, position) = waiter.take_position_report()?;
                Event::Position { token, position }
            }
        })
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::Condvar;

    /// An event loop's descriptor: how often it was rung, and not answered.
    #[derive(Default)]
    struct Bell {
        rung: Mutex<u32>,
        changed: Condvar,
    }

    impl Bell {
        fn ring(&self) {
            *self.rung.lock() += 1;
            self.changed.notify_all();
        }

        /// Sleeps until it is rung.
        fn answer(&self) {
            let mut rung = self.rung.lock();
            while *rung == 0 {
                rung = self.changed.wait(rung);
            }
            *rung = 0;
        }
    }

    fn with_bell() -> (Completions, Arc<Bell>) {
        let bell = Arc::new(Bell::default());
        let rung = bell.clone();
        (Completions::with_notify(move || rung.ring()), bell)
    }

    /// P7: a host that polls only when it was notified gets everything, however little it takes at a time.
    #[test]
    fn loom_what_is_reported_is_notified() {
        loom::model(|| {
            let (completions, bell) = with_bell();
            let queue = completions.queue().clone();
            let other = queue.clone();
            let thread = loom::thread::spawn(move || {
                other.permit_event(1, PermitEvent::Unconfirmed);
                other.permit_event(2, PermitEvent::Unconfirmed);
            });
            let mut got = 0;
            while got < 3 {
                if got == 0 {
                    queue.permit_event(3, PermitEvent::Unconfirmed);
                }
                bell.answer(); // a notification that is missed would be a deadlock
                let taken = completions.poll_events(1, Duration::ZERO).len();
                got += taken;
            }
            thread.join().unwrap();
        });
    }

    /// P2: whoever waits for completions is let go by a close, and afterwards nothing comes any more.
    #[test]
    fn loom_a_close_ends_every_poll() {
        loom::model(|| {
            let completions = Completions::new();
            let (closing, queue) = (completions.clone(), completions.queue().clone());
            let closer = loom::thread::spawn(move || closing.close());
            let reporter = loom::thread::spawn(move || queue.permit_event(1, PermitEvent::Unconfirmed));
            let first = completions.poll_events(4, Duration::MAX); // for ever, but for the event or the end
            closer.join().unwrap();
            reporter.join().unwrap();
            let rest = completions.poll_events(4, Duration::MAX);
            assert!(first.len() <= 1 && rest.is_empty(), "{first:?}, then {rest:?}");
        });
    }
}
