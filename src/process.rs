//! Forks. A child has its parent's memory, but none of its threads: whatever it inherits of fairq is dead, and must
//! neither be waited for nor give anything back.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use once_cell::race::OnceBox;

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Counts the forks between this process and the one that first asked. Whoever keeps the number knows a child by
/// another one; that is cheaper than to ask the system for the process id with every call.
///
/// A child made by a bare `clone` system call is not seen; such children exec.
pub(crate) fn generation() -> u32 {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Acquire) {
        // Two threads may both come here; then a fork counts twice, which does no harm. That one waits for the other would:
        // see `Made`.
        // SAFETY: `forked` only adds to an atomic, which is safe in a child of a process with threads; and the library is
        // never unloaded (see build.rs), so the handler stays where it is. Without memory for another handler this
        // fails, and then forks go unseen, as they would without the watch.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        WATCHED.store(true, Ordering::Release);
    }
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

/// A value that is made when it is first needed, and then kept for ever. Nobody waits for another who is making it, but
/// makes it too, and one of the two is kept: for that other may be a thread of the parent, which a child does not have.
pub(crate) struct Made<T: 'static> {
    value: OnceBox<T>,
    make: fn() -> T,
}

impl<T> Made<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Made { value: OnceBox::new(), make }
    }
}

impl<T> std::ops::Deref for Made<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.get_or_init(|| Box::new((self.make)()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_child_does_not_wait_for_what_a_thread_of_its_parent_is_making() {
        static BEGUN: AtomicBool = AtomicBool::new(false);
        static GO_ON: AtomicBool = AtomicBool::new(false);
        static MADE: Made<u64> = Made::new(|| {
            BEGUN.store(true, Ordering::SeqCst);
            while !GO_ON.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            7
        });
        let maker = thread::spawn(|| *MADE);
        while !BEGUN.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        // SAFETY: the child only looks at memory, and ends; SIGALRM ends one that waits for ever.
        let child = unsafe { libc::fork() };
        if child == 0 {
            GO_ON.store(true, Ordering::SeqCst);
            unsafe { libc::alarm(10) };
            let good = *MADE == 7;
            unsafe { libc::_exit(i32::from(!good)) };
        }
        GO_ON.store(true, Ordering::SeqCst);
        assert_eq!(maker.join().unwrap(), 7);
        let mut status = -1;
        // SAFETY: `status` can be written to.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "a child that waited was ended by SIGALRM, 14");
    }
}
