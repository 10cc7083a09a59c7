//! Completions: how hosts with an event loop learn what became of their requests, without a thread per waiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use crate::{Error, Permit};

/// What became of one request started by [`Limiter::acquire_start`](crate::Limiter::acquire_start).
#[derive(Debug)]
pub struct Completion {
    /// The token that the request was started with.
    pub token: u64,
    /// The permit, or why there is none.
    pub result: Result<Permit, Error>,
}

/// A queue of completions. Any number of requests, limiters and clients may report to one queue, and any number of
/// threads may poll it. What was granted at one moment may come in any order; [`Permit::fence`] tells it. Clones are the
/// same queue. A completion that nobody takes gives its permit back when the queue goes.
#[derive(Clone)]
pub struct Completions {
    sender: Sender<Completion>,
    receiver: Receiver<Completion>,
    notify: Option<Arc<Notify>>,
}

struct Notify {
    call: Box<dyn Fn() + Send + Sync>,
    /// Called, and nobody has polled since. Set after an item is in the queue and cleared before the queue is
    /// drained, so that an item is either drained by the poll that cleared, or notifies anew.
    called: AtomicBool,
}

impl Notify {
    fn fire(&self) {
        if !self.called.swap(true, Ordering::SeqCst) {
            (self.call)();
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
        let (sender, receiver) = crossbeam_channel::unbounded();
        Completions { sender, receiver, notify: None }
    }

    /// A queue that calls `notify` whenever there is something to poll for, for event loops: let it write to an eventfd or
    /// wake a poller. It is called by fairq's own threads, and by any that calls fairq: it has to be quick, and must
    /// not block, take a lock that is held while fairq is called, or call fairq itself.
    pub fn with_notify(notify: impl Fn() + Send + Sync + 'static) -> Self {
        let notify = Notify { call: Box::new(notify), called: AtomicBool::new(false) };
        Completions { notify: Some(Arc::new(notify)), ..Completions::new() }
    }

    /// Takes up to `max` completions. Waits up to `timeout` for the first, and not at all for more.
    pub fn poll(&self, max: usize, timeout: Duration) -> Vec<Completion> {
        if max == 0 {
            return Vec::new();
        }
        if let Some(notify) = &self.notify {
            notify.called.store(false, Ordering::SeqCst);
        }
        let first = match Instant::now().checked_add(timeout) {
            Some(deadline) => self.receiver.recv_deadline(deadline).ok(),
            None => self.receiver.recv().ok(),
        };
        let taken = first.into_iter().chain(self.receiver.try_iter()).take(max).collect();
        if let Some(notify) = self.notify.as_ref().filter(|_| !self.receiver.is_empty()) {
            notify.fire();
        }
        taken
    }

    pub(crate) fn push(&self, token: u64, result: Result<Permit, Error>) {
        // A queue holds its own receiver, so this cannot fail.
        let _ = self.sender.send(Completion { token, result });
        if let Some(notify) = &self.notify {
            notify.fire();
        }
    }
}
