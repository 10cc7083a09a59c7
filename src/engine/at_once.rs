//! A store that has nobody to ask ([`AtOnce`]) carries out what is decided in the same turn, under the same lock: the
//! decision, the call and its answer are one step, at one moment, and nobody has to be woken for it.
//!
//! What is decided, and what an answer means, is the same as with any other store. Calls are carried out in the order in
//! which they were decided; what the store has to tell to other instances is told when the lock is released.
//!
//! Of a ticket that is granted, and of one that is given back, while nothing else has to be said before, this file knows the
//! end of the story from the start ([`Engine::enter_answered`], [`Engine::release_at_once`]): it asks first, and puts the ticket
//! where the steps between would have brought it. Whatever else the store answers goes through these steps.

use smallvec::smallvec;

use super::*;
use crate::store::{Answer, AtOnce, Verdict};

/// So many calls are carried out in a turn. What they lead to beyond that is the scheduler's, so that the lock is not held
/// for long.
const MOST: usize = 64;

impl Engine {
    fn at_once(&self) -> Option<&dyn AtOnce> {
        self.store.get()?.at_once()
    }

    /// Carries out what is in the outbox, and what follows from it. False: that cannot be done here, and it has to be handed
    /// over.
    pub(super) fn carries_out(&self, turn: &mut Turn<'_>) -> bool {
        let Some(store) = self.at_once() else { return false };
        for _ in 0..MOST {
            let Some((call, asked)) = turn.table.outbox.pop_front() else { return true };
            let answer = store.carry_out(&call.limiter, &call.header, &call.verb, turn.now, &mut turn.fx.news);
            let sent = Sent::with(&call.header);
            if let Some(limiter) = turn.table.limiter_of(&call.limiter) {
                self.take_answer(turn, limiter, sent, asked, Ok(answer));
            }
            turn.table.outbox.extend(turn.fx.calls.drain(..));
        }
        turn.fx.wake_scheduler = true;
        true
    }

    /// Asks about a ticket before it is even in the table, if that can be done here and nothing has to come first. `None`: it
    /// has to take the way of all others.
    pub(super) fn ask_at_once(
        &self,
        turn: &mut Turn<'_>,
        limiter: LimiterIndex,
        verb: &Verb,
    ) -> Option<(Sent, Answer)> {
        let store = self.at_once()?;
        let nothing_before = turn.fx.calls.is_empty() && turn.table.outbox.is_empty();
        let state = &mut turn.table.limiters[limiter];
        if !nothing_before || !state.is_settled(turn.now) {
            return None;
        }
        state.prepare_header(turn.now);
        let sent = Sent::with(&state.header);
        Some((sent, store.carry_out(&state.core.name, &state.header, verb, turn.now, &mut turn.fx.news)))
    }

    /// Takes a ticket in whose question is answered already. Mostly it is granted, and then goes straight to where a grant
    /// would have brought it.
    pub(super) fn enter_answered(&self, turn: &mut Turn<'_>, mut slot: Slot, sent: Sent, answer: Answer) {
        let (waiter, limiter) = (slot.waiter.clone(), slot.limiter);
        slot.phase = Phase::InFlight;
        let Verdict::Granted { fence, order } = answer.verdict else {
            return self.enter_in_flight(turn, slot, sent, answer);
        };
        // Other news may be about this very ticket, and look for it in the table.
        if !answer.notices.is_empty() || answer.epoch != turn.table.limiters[limiter].epoch {
            return self.enter_in_flight(turn, slot, sent, answer);
        }
        self.observe(turn, limiter, Some(turn.now), &answer);
        if !turn.table.limiters[limiter].is_confirmed(turn.now) || !waiter.ticket.grant(fence) {
            return self.enter_in_flight(turn, slot, sent, answer);
        }
        waiter.set_order(order);
        let no = waiter.no;
        slot.phase = Phase::Held;
        turn.table.add(slot);
        self.begin_hold(turn, limiter, (no, fence));
        if !waiter.deliver_at_once() {
            turn.fx.settled.push(waiter);
        }
        self.observe_version(turn, limiter, Some(answer.version));
    }

    fn enter_in_flight(&self, turn: &mut Turn<'_>, slot: Slot, sent: Sent, answer: Answer) {
        let (waiter, limiter) = (slot.waiter.clone(), slot.limiter);
        let no = waiter.no;
        turn.table.add(slot);
        turn.table.arm(waiter.deadline(), Timer::Deadline(no), turn.fx);
        self.take_answer(turn, limiter, sent, Asked::Ticket { no, sent_at: turn.now }, Ok(answer));
    }

    /// Gives a permit back, if that can be done here. Whether its slot was freed; `None`: it has to take the way of all
    /// others. (Should the limiter have come to be anew meanwhile, it is asked a second time, which changes nothing.)
    pub(super) fn release_at_once(&self, turn: &mut Turn<'_>, waiter: &Waiter) -> Option<bool> {
        let slot = turn.table.tickets.get(&waiter.no)?;
        let (limiter, fence) = (slot.limiter, waiter.ticket.fence());
        if slot.phase != Phase::Held || fence == 0 {
            return None;
        }
        let (sent, answer) = self.ask_at_once(turn, limiter, &Verb::Release(smallvec![(waiter.no, fence)]))?;
        let Verdict::Released(freed) = &answer.verdict else { return None };
        if answer.epoch != sent.epoch {
            return None;
        }
        let freed = freed.first().copied()?;
        turn.table.remove(waiter.no, turn.fx);
        self.observe(turn, limiter, None, &answer);
        self.observe_version(turn, limiter, Some(answer.version));
        turn.fx.wake_scheduler |= turn.table.stage != Stage::Running;
        Some(freed)
    }
}
