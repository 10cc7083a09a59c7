//! The state machine of one request: pure, without clock or I/O, so that a model checker can walk it.
//!
//! A ticket is settled by one compare-and-swap. Grant, timeout, cancel, rejection, close and failure are equal
//! contenders; whoever changes `Pending` first has decided the outcome, and everybody else learns that it lost and
//! cleans up what it brought. What the outcome carries (the fence of a grant) travels in the same word, so there is
//! no moment in which the outcome is known and its value is not, and no second flag that could disagree.
//!
//! A permit ends by the same kind of swap: `Granted -> Released` (its owner gives it back) or `Granted -> Lost` (the
//! store took it back). Only the winner sends anything to the store, so a permit is given back exactly once.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a ticket stands. Everything but `Pending` and `Granted` is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TicketState {
    /// Not decided yet: waiting in line, or not even started.
    Pending = 0,
    /// Holds a permit.
    Granted = 1,
    /// Waited as long as it was allowed to.
    TimedOut = 2,
    /// Cancelled by its owner.
    Cancelled = 3,
    /// The store refused it: the queue is full, or the cost is above the limit.
    Rejected = 4,
    /// The client was closed.
    Closed = 5,
    /// Something failed for good.
    Failed = 6,
    /// The permit was given back.
    Released = 7,
    /// The permit was taken back by the store.
    Lost = 8,
}

const STATES: [TicketState; 9] = [
    TicketState::Pending,
    TicketState::Granted,
    TicketState::TimedOut,
    TicketState::Cancelled,
    TicketState::Rejected,
    TicketState::Closed,
    TicketState::Failed,
    TicketState::Released,
    TicketState::Lost,
];

const STATE_BITS: u32 = 4;

/// One request's state and, once granted, its fence, in one word.
///
/// Orderings: a settle releases what its winner wrote before (an error beside the ticket), and a look acquires it.
#[derive(Debug)]
pub(crate) struct Ticket(AtomicU64);

impl Ticket {
    pub(crate) fn new() -> Self {
        Ticket(AtomicU64::new(TicketState::Pending as u64))
    }

    /// The state now.
    pub(crate) fn state(&self) -> TicketState {
        decode(self.0.load(Ordering::Acquire)).0
    }

    /// The fence of the grant; 0 before one, and for a permit admitted locally.
    pub(crate) fn fence(&self) -> u64 {
        decode(self.0.load(Ordering::Acquire)).1
    }

    /// `Pending -> Granted`. False: something else was first, and the grant has to be given back.
    pub(crate) fn grant(&self, fence: u64) -> bool {
        self.swap(TicketState::Pending, TicketState::Granted, |_| fence)
    }

    /// `Pending -> outcome` for every outcome that is not a grant. False: something else was first.
    pub(crate) fn settle(&self, outcome: TicketState) -> bool {
        debug_assert!(!matches!(outcome, TicketState::Pending | TicketState::Granted));
        self.swap(TicketState::Pending, outcome, |_| 0)
    }

    /// `Granted -> Released | Lost`. False: the permit had ended already.
    pub(crate) fn end(&self, how: TicketState) -> bool {
        debug_assert!(matches!(how, TicketState::Released | TicketState::Lost));
        self.swap(TicketState::Granted, how, |fence| fence)
    }

    /// A permit admitted locally gets its fence when the store has counted it.
    pub(crate) fn adopt_fence(&self, fence: u64) -> bool {
        let local = encode(TicketState::Granted, 0);
        let counted = encode(TicketState::Granted, fence);
        self.0.compare_exchange(local, counted, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn swap(&self, from: TicketState, to: TicketState, fence: impl Fn(u64) -> u64) -> bool {
        let change = |word| match decode(word) {
            (state, old) if state == from => Some(encode(to, fence(old))),
            _ => None,
        };
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
    }
}

fn encode(state: TicketState, fence: u64) -> u64 {
    debug_assert!(fence < 1 << (64 - STATE_BITS));
    fence << STATE_BITS | state as u64
}

fn decode(word: u64) -> (TicketState, u64) {
    (STATES[(word & ((1 << STATE_BITS) - 1)) as usize], word >> STATE_BITS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_settlement_decides_and_carries_its_fence() {
        let ticket = Ticket::new();
        assert!(ticket.grant(42));
        assert!(!ticket.settle(TicketState::TimedOut));
        assert_eq!((ticket.state(), ticket.fence()), (TicketState::Granted, 42));
        assert!(ticket.end(TicketState::Lost));
        assert!(!ticket.end(TicketState::Released), "a permit ends once");
        assert_eq!(ticket.fence(), 42, "the fence stays readable");
    }

    #[test]
    fn a_cancel_before_the_start_is_sticky() {
        let ticket = Ticket::new();
        assert!(ticket.settle(TicketState::Cancelled));
        assert!(!ticket.grant(1));
        assert!(!ticket.end(TicketState::Released), "what was never granted cannot be released");
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// P2: grant, timeout and cancel race; exactly one wins, and all agree on it.
    #[test]
    fn loom_one_exit() {
        loom::model(|| {
            let ticket = Arc::new(Ticket::new());
            let rivals: Vec<_> = [TicketState::TimedOut, TicketState::Cancelled]
                .into_iter()
                .map(|outcome| {
                    let ticket = ticket.clone();
                    loom::thread::spawn(move || ticket.settle(outcome))
                })
                .collect();
            let granted = ticket.grant(7);
            let settled = rivals.into_iter().map(|r| r.join().unwrap()).filter(|won| *won).count();
            assert_eq!(settled + usize::from(granted), 1);
            assert_eq!(ticket.state() == TicketState::Granted, granted);
        });
    }

    /// P4: an owner's release and a loss race; one of them ends the permit.
    #[test]
    fn loom_one_end() {
        loom::model(|| {
            let ticket = Arc::new(Ticket::new());
            assert!(ticket.grant(7));
            let rival = {
                let ticket = ticket.clone();
                loom::thread::spawn(move || ticket.end(TicketState::Lost))
            };
            let released = ticket.end(TicketState::Released);
            assert_ne!(released, rival.join().unwrap());
            assert_eq!(ticket.fence(), 7);
        });
    }

    /// A local permit gets its fence while its owner releases it: the permit still ends.
    #[test]
    fn loom_adopting_a_fence_never_undoes_a_release() {
        loom::model(|| {
            let ticket = Arc::new(Ticket::new());
            assert!(ticket.grant(0));
            let rival = {
                let ticket = ticket.clone();
                loom::thread::spawn(move || ticket.adopt_fence(9))
            };
            let released = ticket.end(TicketState::Released);
            rival.join().unwrap();
            assert!(released, "nobody else ended it");
            assert_eq!(ticket.state(), TicketState::Released);
        });
    }
}
