//! Forks. A child has its parent's memory, but none of its threads: whatever it inherits of fairq is dead, and must
//! neither be waited for nor give anything back.

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Counts the forks between this process and the one that first asked. Whoever keeps the number knows a child by
/// another one; that is cheaper than to ask the system for the process id with every call.
///
/// A child made by a bare `clone` system call is not seen; such children exec.
pub(crate) fn generation() -> u32 {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        // SAFETY: `forked` only adds to an atomic, which is safe in a child of a process with threads; and the library is
        // never unloaded (see build.rs), so the handler stays where it is. Without memory for another handler this
        // fails, and then forks go unseen, as they would without the watch.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    });
    GENERATION.load(Ordering::Relaxed)
}

/// Runs in the child, on the one thread that it has.
extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// A value of which every process has its own: a child begins with a new one. It never looks at its parent's again,
/// nor drops it, since a lock in it may be held by a thread that the child does not have.
pub(crate) struct PerProcess<T> {
    current: AtomicPtr<Owned<T>>,
}

struct Owned<T> {
    generation: u32,
    value: T,
}

impl<T: Default + Send + Sync + 'static> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        PerProcess { current: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// This process's value.
    pub(crate) fn get(&self) -> &'static T {
        let generation = generation();
        let mut seen = self.current.load(Ordering::Acquire);
        loop {
            // SAFETY: what is stored here was leaked from a box, hence lives for ever, and is only ever shared.
            if let Some(owned) = unsafe { seen.as_ref() }.filter(|owned| owned.generation == generation) {
                return &owned.value;
            }
            let new = Box::into_raw(Box::new(Owned { generation, value: T::default() }));
            match self.current.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => seen = new,
                Err(rival) => {
                    // SAFETY: it came out of a box just now, and nobody else has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    seen = rival;
                }
            }
        }
    }
}
