//! Locks. The standard library's, without its poisoning: what a panic leaves behind is settled by the engine, not by
//! whoever comes next.
//!
//! Not those of `parking_lot`: they keep whoever waits, from the whole process, in one global table of pointers to the
//! threads themselves. In a forked child these threads do not exist, their memory is used again for new ones, and the
//! first wake-up that meets such a pointer crashes a child that only wanted a client of its own. The standard library's wait
//! on the lock's own address, and leave nothing behind.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

pub(crate) use std::sync::MutexGuard;

#[derive(Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
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
    inner: std::sync::Condvar,
    /// Changed under the lock only.
    waiters: AtomicUsize,
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Condvar { inner: std::sync::Condvar::new(), waiters: AtomicUsize::new(0) }
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
