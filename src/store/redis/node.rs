//! One server that commands are sent to: its connection, and the thread that minds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::Sender;

use super::line::Line;
use super::link::{Errand, Job, Link};
use super::router::Router;
use super::url::Address;
use crate::Error;
use crate::store::StoreError;
use crate::sync::Mutex;

/// A server. Its thread starts with the first call.
pub(super) struct Node {
    pub address: Address,
    pub line: Line,
    door: Mutex<Door>,
    retired: AtomicBool,
}

/// The way to a node's thread. It is shut under the lock that a call goes through, so that none gets lost behind it: the
/// thread sees the end after whatever was handed in.
enum Door {
    Unopened,
    Open(Sender<Job>),
    Shut,
}

impl Node {
    pub(super) fn new(address: Address) -> Self {
        Node { address, line: Line::new(), door: Mutex::new(Door::Unopened), retired: AtomicBool::new(false) }
    }

    /// Nobody is sent here any more; what waits here is to be sent elsewhere.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Ends the thread, after it has passed on what was handed in.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        *self.door.lock() = Door::Shut;
    }

    /// Hands a call to the thread, which answers it. `Err`: the node is retired.
    pub(super) fn take(self: &Arc<Self>, router: &Arc<Router>, errand: Errand) -> Result<(), Errand> {
        let mut door = self.door.lock();
        if let Door::Unopened = *door {
            match self.open(router) {
                Ok(jobs) => *door = Door::Open(jobs),
                Err(error) => {
                    drop(door);
                    let detail = format!("no thread to be had: {error}");
                    (errand.reply)(Err(StoreError::Fatal(Error::Internal { detail })));
                    return Ok(());
                }
            }
        }
        let Door::Open(jobs) = &*door else { return Err(errand) };
        self.line.enter();
        match jobs.send(Job::Errand(errand)) {
            Ok(()) => Ok(()),
            Err(unsent) => {
                // It lives until the door is shut; but it may have panicked.
                self.line.leave(1);
                let Job::Errand(errand) = unsent.0 else { return Ok(()) };
                Err(errand)
            }
        }
    }

    /// Has the thread look after the connection.
    pub(super) fn nudge(&self) {
        if let Door::Open(jobs) = &*self.door.lock() {
            let _ = jobs.send(Job::Look);
        }
    }

    fn open(self: &Arc<Self>, router: &Arc<Router>) -> std::io::Result<Sender<Job>> {
        let (jobs, receiver) = crossbeam_channel::unbounded();
        let link = Link::new(router.clone(), self.clone(), receiver);
        router.spawn("fairq-link", move || link.run())?;
        Ok(jobs)
    }
}
