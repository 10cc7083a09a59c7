//! `firing` / `pending`: any number of notifications while a sweep runs cause one more sweep, not one each.
//!
//! The race it prevents: a sweep has made its last look and is about to say that it is done; a notification arrives
//! and sees a sweep under way, so it does nothing; the sweep ends, and nobody looks again. Here the end of a sweep
//! and the arrival of a notification change the same word, so either the notification comes first, and `finish`
//! sees it and asks for another sweep, or it comes after, and finds nobody sweeping and starts one.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU8, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU8, Ordering};

const IDLE: u8 = 0;
const FIRING: u8 = 1;
const PENDING: u8 = 2; // firing, and asked for once more

/// Merges notifications into sweeps.
///
/// Orderings: a sweep acquires what was written before the notifications it serves, and releases its own writes to
/// the next sweep.
#[derive(Debug)]
pub(crate) struct Coalescer(AtomicU8);

impl Coalescer {
    pub(crate) fn new() -> Self {
        Coalescer(AtomicU8::new(IDLE))
    }

    /// Something happened. True: the caller has to sweep, and to call [`Self::finish`] afterwards.
    pub(crate) fn notify(&self) -> bool {
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| Some(if now == IDLE { FIRING } else { PENDING }));
        before == Ok(IDLE)
    }

    /// A sweep is over. True: somebody notified meanwhile, and the caller has to sweep once more.
    pub(crate) fn finish(&self) -> bool {
        let before = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| Some(if now == PENDING { FIRING } else { IDLE }));
        before == Ok(PENDING)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_notifications_during_a_sweep_cause_one_more() {
        let coalescer = Coalescer::new();
        assert!(coalescer.notify());
        assert!((0..1000).all(|_| !coalescer.notify()));
        assert!(coalescer.finish());
        assert!(!coalescer.finish());
        assert!(coalescer.notify());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize;

    fn run(coalescer: &Coalescer, work: &AtomicUsize, seen: &AtomicUsize) {
        work.fetch_add(1, Ordering::Relaxed);
        if coalescer.notify() {
            loop {
                seen.store(work.load(Ordering::Relaxed), Ordering::Relaxed);
                if !coalescer.finish() {
                    break;
                }
            }
        }
    }

    /// P7: whatever the interleaving, the last sweep sees the work of every notification.
    #[test]
    fn loom_no_notification_is_lost() {
        loom::model(|| {
            let shared = Arc::new((Coalescer::new(), AtomicUsize::new(0), AtomicUsize::new(0)));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let shared = shared.clone();
                    loom::thread::spawn(move || run(&shared.0, &shared.1, &shared.2))
                })
                .collect();
            run(&shared.0, &shared.1, &shared.2);
            threads.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(shared.2.load(Ordering::Relaxed), 3);
        });
    }
}
