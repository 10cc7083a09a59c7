//! Time. Everything in the process reads one [`Clock`]: the machine's, or one that a test moves by hand.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since some fixed moment of this process's clock.
pub(crate) type Nanos = u64;

/// A moment that never comes.
pub(crate) const NEVER: Nanos = Nanos::MAX;

/// The longest uninterrupted sleep: condition variables do not count a suspended machine, `now` does.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Where a client reads the time from. The machine's clock goes on while the machine is suspended; a
/// [`Clock::manual`] one stands still until [`Clock::advance`], so that tests of waits and leases need no waiting.
///
/// ```
/// use std::time::Duration;
/// let clock = fairq::Clock::manual();
/// clock.advance(Duration::from_secs(10));
/// ```
#[derive(Clone)]
pub struct Clock(Kind);

#[derive(Clone)]
enum Kind {
    Machine,
    Manual(Arc<Manual>),
}

struct Manual {
    now: AtomicU64,
    /// Sleepers to wake when time moves. A sleeper's mutex is taken before it is woken, so that none is missed
    /// between its look at the clock and its wait.
    sleepers: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

impl Default for Clock {
    fn default() -> Self {
        Clock(Kind::Machine)
    }
}

impl Clock {
    /// A clock that stands still until it is moved.
    pub fn manual() -> Self {
        Clock(Kind::Manual(Arc::new(Manual { now: AtomicU64::new(1), sleepers: Mutex::default() })))
    }

    /// Moves a manual clock on and wakes whoever waits for it; does nothing to the machine's clock.
    pub fn advance(&self, by: Duration) {
        if let Kind::Manual(manual) = &self.0 {
            manual.now.fetch_add(nanos(by), Ordering::SeqCst);
            for wake in manual.sleepers.lock().iter() {
                wake();
            }
        }
    }

    /// Monotonic, and counting the time that the machine was suspended.
    pub(crate) fn now(&self) -> Nanos {
        match &self.0 {
            Kind::Machine => boot_time(),
            Kind::Manual(manual) => manual.now.load(Ordering::SeqCst),
        }
    }

    /// Microseconds since 1970 for the memory store, of a moment that [`Clock::now`] told: anchored to the wall clock once
    /// per process.
    pub(crate) fn unix_micros(&self, now: Nanos) -> u64 {
        match &self.0 {
            Kind::Machine => {
                static ANCHOR: crate::process::Made<u64> = crate::process::Made::new(|| {
                    let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64);
                    wall.saturating_sub(boot_time() / 1000)
                });
                *ANCHOR + now / 1000
            }
            Kind::Manual(_) => 1_700_000_000_000_000 + now / 1000,
        }
    }

    /// Registers a sleeper of a manual clock: `wake` has to lock the sleeper's mutex and notify its condition variable.
    pub(crate) fn on_advance(&self, wake: impl Fn() + Send + 'static) {
        if let Kind::Manual(manual) = &self.0 {
            manual.sleepers.lock().push(Box::new(wake));
        }
    }

    /// Sleeps until `until` or a notification, whichever is first; may wake early. Releases the guard meanwhile.
    pub(crate) fn wait<'a, T>(&self, condvar: &Condvar, guard: MutexGuard<'a, T>, until: Nanos) -> MutexGuard<'a, T> {
        match &self.0 {
            _ if until == NEVER => condvar.wait(guard),
            Kind::Manual(_) => condvar.wait(guard),
            Kind::Machine => {
                let left = Duration::from_nanos(until.saturating_sub(self.now()));
                condvar.wait_for(guard, left.min(LONGEST_WAIT))
            }
        }
    }
}

/// A duration in nanoseconds; what does not fit is as good as never.
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}

/// `Instant` stops while the machine is suspended; a lease does not.
fn boot_time() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    #[cfg(target_os = "linux")]
    let clock = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    let clock = libc::CLOCK_MONOTONIC; // counts suspend on macOS
    // SAFETY: `time` is a valid, exclusively borrowed timespec, and both clocks exist on every supported kernel.
    let status = unsafe { libc::clock_gettime(clock, &mut time) };
    debug_assert_eq!(status, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
