//! The command connection, as the link thread and callers share it. Mostly the link thread has it; a caller that has
//! nothing to do but wait borrows it when nobody else is on the way, and saves two hand-overs between threads.

use crate::sync::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::Connection;

use super::server_time::ServerTime;

/// A connection that is fit for use.
pub(super) struct Open {
    pub connection: Connection,
    pub run_id: String,
    pub time: ServerTime,
    /// Which connection of its instance it is.
    pub generation: u64,
    /// For how long a read waits; set anew only when it changes hands.
    pub read_timeout: Duration,
}

impl Open {
    /// Sets how long a read waits.
    pub(super) fn wait_for(&mut self, timeout: Duration) -> redis::RedisResult<()> {
        if self.read_timeout != timeout {
            self.connection.set_read_timeout(Some(timeout))?;
            self.read_timeout = timeout;
        }
        Ok(())
    }
}

enum Slot {
    Empty,
    Free(Box<Open>),
    Lent,
}

/// Where the connection is.
pub(super) struct Line {
    slot: Mutex<Slot>,
    returned: Condvar,
    /// Calls that are submitted and not answered.
    under_way: AtomicUsize,
}

impl Line {
    pub(super) fn new() -> Self {
        Line { slot: Mutex::new(Slot::Empty), returned: Condvar::new(), under_way: AtomicUsize::new(0) }
    }

    /// For the link thread: the connection, if there is one; waits for a borrower to bring it back.
    pub(super) fn take(&self) -> Option<Box<Open>> {
        let mut slot = self.slot.lock();
        while matches!(*slot, Slot::Lent) {
            slot = self.returned.wait(slot);
        }
        match std::mem::replace(&mut *slot, Slot::Lent) {
            Slot::Free(open) => Some(open),
            _ => {
                *slot = Slot::Empty;
                None
            }
        }
    }

    /// For a caller: the connection, if nobody else is on the way. Its call has been counted as the only one.
    pub(super) fn borrow(&self) -> Option<Box<Open>> {
        if self.under_way.load(Ordering::Acquire) != 1 {
            return None;
        }
        let mut slot = self.slot.try_lock()?;
        match std::mem::replace(&mut *slot, Slot::Lent) {
            Slot::Free(open) => Some(open),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Brings the connection back, or says that it is gone.
    pub(super) fn put(&self, open: Option<Box<Open>>) {
        *self.slot.lock() = open.map_or(Slot::Empty, Slot::Free);
        self.returned.notify_all();
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(*self.slot.lock(), Slot::Empty)
    }

    /// A call is submitted.
    pub(super) fn enter(&self) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
    }

    /// So many calls are answered.
    pub(super) fn leave(&self, calls: usize) {
        self.under_way.fetch_sub(calls, Ordering::AcqRel);
    }
}
