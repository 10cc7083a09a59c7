//! The command connection, as the link thread and callers share it. Mostly the link thread has it; a caller that has
//! nothing to do but wait borrows it when nobody else is on the way, and saves two hand-overs between threads.

use crate::sync::{Condvar, Mutex};
use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicUsize, Ordering};

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

enum Slot<C> {
    Empty,
    Free(Box<C>),
    Lent,
}

/// Where the connection is.
pub(super) struct Line<C = Open> {
    slot: Mutex<Slot<C>>,
    returned: Condvar,
    /// Calls that are submitted and not answered.
    under_way: AtomicUsize,
}

impl<C> Line<C> {
    pub(super) fn new() -> Self {
        Line { slot: Mutex::new(Slot::Empty), returned: Condvar::new(), under_way: AtomicUsize::new(0) }
    }

    /// For the link thread: the connection, if there is one; waits for a borrower to bring it back.
    pub(super) fn take(&self) -> Option<Box<C>> {
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
    pub(super) fn borrow(&self) -> Option<Box<C>> {
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
    pub(super) fn put(&self, open: Option<Box<C>>) {
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

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use std::sync::Arc;

    /// What a connection must not be: in two hands.
    struct Wire(UnsafeCell<u32>);

    fn use_it(wire: &Wire) {
        // SAFETY: loom finds whoever else has it.
        wire.0.with_mut(|count| unsafe { *count += 1 });
    }

    /// A caller borrows it, or hands its call to the link thread: each call is carried out once, by one at a time.
    fn call(line: &Line<Wire>, link: &Link) {
        line.enter();
        match line.borrow() {
            Some(wire) => {
                use_it(&wire);
                line.put(Some(wire));
                line.leave(1);
            }
            None => link.hand_in(),
        }
    }

    #[derive(Default)]
    struct Link {
        jobs: Mutex<u32>,
        handed_in: Condvar,
    }

    impl Link {
        fn hand_in(&self) {
            *self.jobs.lock() += 1;
            self.handed_in.notify_all();
        }

        /// What the link thread does until it has answered so many, of which callers answer some themselves.
        fn serve(&self, line: &Line<Wire>, done: impl Fn(u32) -> bool) {
            let mut served = 0;
            let mut jobs = self.jobs.lock();
            while !done(served) {
                if *jobs == 0 {
                    jobs = self.handed_in.wait(jobs);
                    continue;
                }
                *jobs -= 1;
                drop(jobs);
                let wire = line.take().expect("nobody loses it");
                use_it(&wire);
                line.put(Some(wire));
                line.leave(1);
                served += 1;
                jobs = self.jobs.lock();
            }
        }
    }

    #[test]
    fn loom_a_connection_is_in_one_hand() {
        loom::model(|| {
            let line = Line::new();
            line.put(Some(Box::new(Wire(UnsafeCell::new(0)))));
            let shared = Arc::new((line, Link::default()));
            let callers: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || call(&shared.0, &shared.1))
                })
                .collect();
            // The link thread's own call, as a heartbeat is: it may have to wait for a borrower.
            shared.0.enter();
            shared.1.hand_in();
            shared.1.serve(&shared.0, |served| served == 1);
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            let left = *shared.1.jobs.lock();
            shared.1.serve(&shared.0, |served| served == left);
            let wire = shared.0.take().expect("it is back in its place");
            assert_eq!(wire.0.with(|count| unsafe { *count }), 3);
            assert_eq!(shared.0.under_way.load(Ordering::Relaxed), 0);
        });
    }
}
