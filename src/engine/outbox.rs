//! From the decision to the store: calls are decided under the lock and handed over after it, in the same order.

use super::*;
use crate::store::Call;

impl Table {
    /// True: there are calls to hand over, and it is the caller who has to do it.
    pub(super) fn take_outbox_turn(&mut self) -> bool {
        !self.outbox.is_empty() && !std::mem::replace(&mut self.submitting, true)
    }

    /// The next call to hand over. `None`: the turn is over.
    pub(super) fn next_of_outbox(&mut self, left: &mut usize) -> Option<(Call, Asked)> {
        let next = if *left > 0 { self.outbox.pop_front() } else { None };
        match next {
            Some(_) => *left -= 1,
            None => self.submitting = false,
        }
        next
    }
}

impl Engine {
    /// Hands the calls to the store in the order in which they were decided, so that a cancel never overtakes its
    /// enqueue. One thread at a time does so; what others decide meanwhile it takes along, up to a bound, after which
    /// it is the scheduler's turn. `alone`: the first call is this thread's own, and all it has to wait for.
    pub(super) fn submit_outbox(&self, mut alone: bool) {
        const MOST: usize = 64;
        let mut left = MOST;
        loop {
            let Some((call, asked)) = self.table.lock().next_of_outbox(&mut left) else { break };
            let limiter = call.limiter.clone();
            let Some(me) = self.me.upgrade() else { return };
            let sent = Sent::with(&call.header);
            let reply = Box::new(move |result| me.answered(&limiter, sent, asked, result));
            match std::mem::take(&mut alone) {
                true => self.store().submit_and_wait(call, reply),
                false => self.store().submit(call, reply),
            }
        }
        if left == 0 {
            self.wake.notify_all();
        }
    }
}
