//! Locks. The standard library's, without its poisoning: what a panic leaves behind is settled by the engine, not by
//! whoever comes next.
//!
//! Not those of `parking_lot`: they keep whoever waits, from the whole process, in one global table of pointers to the
//! threads themselves. In a forked child these threads do not exist, their memory is used again for new ones, and the
//! first wake-up that meets such a pointer crashes a child that only wanted a client of its own. The standard library's wait
//! on the lock's own address, and leave nothing behind.

use std::fmt;
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

#[cfg(loom)]
use loom::sync as system;
#[cfg(not(loom))]
use std::sync as system;
use system::atomic::{AtomicUsize, Ordering};

pub(crate) use system::MutexGuard;

#[derive(Default)]
pub(crate) struct Mutex<T>(system::Mutex<T>);

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(system::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None`: somebody has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable that costs nothing to notify while nobody waits: the standard library's makes a system call.
///
/// That is safe for a notifier that has changed the condition under the lock: whoever counted itself before the change is
/// seen, and whoever did not sees the change.
#[derive(Default)]
pub(crate) struct Condvar {
    inner: system::Condvar,
    /// Changed under the lock only.
    waiters: AtomicUsize,
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar { inner: system::Condvar::new(), waiters: AtomicUsize::new(0) }
    }

    /// Waits for a notification; may wake without one.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let guard = self.inner.wait(guard).unwrap_or_else(PoisonError::into_inner);
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Waits for a notification, for so long at most; may wake without one.
    pub(crate) fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, timeout: Duration) -> MutexGuard<'a, T> {
        self.waiters.fetch_add(1, Ordering::Relaxed);
        let guard = self.inner.wait_timeout(guard, timeout).unwrap_or_else(PoisonError::into_inner).0;
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Wakes everybody. What they wait for was changed by this thread, under the lock.
    pub(crate) fn notify_all(&self) {
        if self.waiters.load(Ordering::Relaxed) > 0 {
            self.inner.notify_all();
        }
    }
}

/// Channels for whoever is searched by loom: these are `crossbeam`'s, which loom would not see.
#[cfg(not(loom))]
pub(crate) mod channel {
    pub(crate) use crossbeam_channel::{Receiver, Sender, unbounded};
}

/// The same in the little that is used of them, of parts that loom sees.
#[cfg(loom)]
pub(crate) mod channel {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::time::Instant;

    use super::{Condvar, Mutex};

    struct Shared<T> {
        items: Mutex<VecDeque<T>>,
        arrived: Condvar,
    }

    pub(crate) struct Sender<T>(Arc<Shared<T>>);
    pub(crate) struct Receiver<T>(Arc<Shared<T>>);

    #[derive(Debug)]
    pub(crate) struct Never;

    pub(crate) fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
        let shared = Arc::new(Shared { items: Mutex::new(VecDeque::new()), arrived: Condvar::new() });
        (Sender(shared.clone()), Receiver(shared))
    }

    impl<T> Sender<T> {
        pub(crate) fn send(&self, item: T) -> Result<(), Never> {
            self.0.items.lock().push_back(item);
            self.0.arrived.notify_all();
            Ok(())
        }
    }

    impl<T> Receiver<T> {
        pub(crate) fn try_recv(&self) -> Result<T, Never> {
            self.0.items.lock().pop_front().ok_or(Never)
        }

        pub(crate) fn recv(&self) -> Result<T, Never> {
            let mut items = self.0.items.lock();
            loop {
                match items.pop_front() {
                    Some(item) => return Ok(item),
                    None => items = self.0.arrived.wait(items),
                }
            }
        }

        /// There is no time in a search.
        pub(crate) fn recv_deadline(&self, _deadline: Instant) -> Result<T, Never> {
            self.recv()
        }

        pub(crate) fn is_empty(&self) -> bool {
            self.0.items.lock().is_empty()
        }

        pub(crate) fn try_iter(&self) -> impl Iterator<Item = T> {
            std::iter::from_fn(|| self.try_recv().ok())
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use std::sync::Arc;

    /// A notification that is spared because nobody waits is missed by nobody.
    #[test]
    fn loom_whoever_waits_is_woken() {
        loom::model(|| {
            let shared = Arc::new((Mutex::new(0), Condvar::new()));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || {
                        *shared.0.lock() += 1;
                        shared.1.notify_all();
                    })
                })
                .collect();
            let mut count = shared.0.lock();
            while *count < 2 {
                count = shared.1.wait(count); // a lost wake-up would be a deadlock
            }
            drop(count);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
