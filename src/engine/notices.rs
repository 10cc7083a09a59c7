//! What the store says unasked: by the Pub/Sub thread, or by another client's call on the memory store. A message
//! makes things fast; what counts is the store's state, so a doubtful one causes no more than a sync.

use smallvec::smallvec;

use super::*;
use crate::store::{Concerns, Listener, Notice, Verdict};

impl Listener for Engine {
    fn notices(&self, limiter: &str, epoch: u64, notices: Vec<Notice>) {
        self.with_table(|turn| {
            let Some(limiter) = turn.table.limiter_of(limiter) else { return };
            for notice in notices {
                match is_doubtful(turn.table, notice) {
                    true => self.request_sync(turn, limiter),
                    false => self.take_notice(turn, limiter, epoch, notice),
                }
            }
        });
    }

    fn link_up(&self, of: Concerns<'_>) {
        self.with_table(|turn| self.store_is_back(turn, of));
    }

    fn link_down(&self, of: Concerns<'_>, detail: &str) {
        self.with_table(|turn| self.store_is_away(turn, of, detail));
    }

    fn subscribed(&self) {
        self.with_table(|turn| {
            for limiter in 0..turn.table.limiters.len() {
                let state = &turn.table.limiters[limiter];
                if !state.queued.is_empty() || !state.held.is_empty() {
                    self.request_sync(turn, limiter);
                }
            }
        });
    }

    fn wants_link(&self, of: Concerns<'_>) -> Option<Duration> {
        // After an outage everybody has to have reported within the grace, two thirds of a lease.
        let table = self.lock();
        let busy = table.limiters.iter().filter(|state| table.has_work(state) && of(&state.core.name));
        let shortest = busy.map(|state| state.lease()).min()?;
        Some(Duration::from_nanos(shortest / 8))
    }
}

fn is_doubtful(table: &Table, notice: Notice) -> bool {
    let Notice::Granted { no, .. } = notice else { return false };
    table.tickets.get(&no).is_some_and(|slot| slot.doubtful)
}

impl Engine {
    pub(super) fn take_notice(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, epoch: u64, notice: Notice) {
        match notice {
            Notice::Granted { no, fence, order } if turn.table.tickets.contains_key(&no) => {
                self.grant_if_confirmed(turn, no, (fence, order), epoch);
            }
            // Nobody but a forger knows of tickets that there have never been.
            Notice::Granted { no, .. } if no >= self.next_no.load(Ordering::Relaxed) => {}
            Notice::Granted { no, .. } => self.give_back_orphan(turn, limiter, no),
            Notice::Impossible { no, limit } => self.place_gone(turn, no, epoch, Some(limit)),
            Notice::PlaceRevoked { no } => self.place_gone(turn, no, epoch, None),
            Notice::PermitRevoked { no } => {
                let held = turn.table.tickets.get(&no).is_some_and(|slot| slot.phase == Phase::Held);
                if held && self.speaks_of_now(turn.table, no, epoch) {
                    self.lose(turn, no, LostReason::Revoked);
                }
            }
        }
    }

    /// A grant to a ticket that we do not know (any more): an old command came through after all. Left alone, the slot
    /// would be lost for as long as we live.
    pub(super) fn give_back_orphan(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, no: TicketNo) {
        if turn.table.limiters[limiter].orphans.insert(no, true) == Some(true) {
            return; // until the store confirms
        }
        let call = turn.table.call(limiter, Verb::Cancel(smallvec![no]), turn.now);
        turn.fx.calls.push((call, Asked::Leaving { tickets: smallvec![no] }));
    }

    /// The store says of a ticket that is settled here what has become of its enqueue. Mostly the clean-up comes behind
    /// it and undoes it. Where calls were sent again (a script was not loaded, the limiter has moved to another server) the
    /// clean-up may have come first, and has found nothing: then the enqueue has left an orphan.
    pub(super) fn entered_late(
        &self,
        turn: &mut Turn<'_>,
        (limiter, no): (LimiterIndex, TicketNo),
        verdict: Option<&Verdict>,
    ) {
        let fence = match verdict {
            Some(Verdict::Granted { fence, .. }) => Some(*fence),
            Some(Verdict::Queued { .. }) => None,
            _ => return,
        };
        match turn.table.tickets.get_mut(&no) {
            None => self.give_back_orphan(turn, limiter, no),
            Some(slot) if matches!(slot.phase, Phase::Leaving { .. }) => {
                slot.entered_late |= fence.is_none_or(|fence| fence != slot.waiter.ticket.fence());
            }
            Some(_) => {}
        }
    }

    fn speaks_of_now(&self, table: &Table, no: TicketNo, epoch: u64) -> bool {
        table.tickets.get(&no).is_some_and(|slot| table.limiters[slot.limiter].epoch == epoch)
    }

    fn place_gone(&self, turn: &mut Turn<'_>, no: TicketNo, epoch: u64, impossible: Option<u64>) {
        let waits =
            turn.table.tickets.get(&no).is_some_and(|slot| matches!(slot.phase, Phase::Queued | Phase::InFlight));
        if waits && self.speaks_of_now(turn.table, no, epoch) {
            self.out_of_line(turn, no, impossible);
        }
    }

    /// The store has dropped a waiting ticket: its cost does not fit under this limit, or an operator took its place.
    pub(super) fn out_of_line(&self, turn: &mut Turn<'_>, no: TicketNo, impossible: Option<u64>) {
        let Some(slot) = turn.table.tickets.get(&no) else { return };
        let waiter = slot.waiter.clone();
        let why = match impossible {
            Some(limit) => (TicketState::Rejected, Error::Impossible { cost: waiter.cost(), limit }),
            None => (TicketState::Failed, Error::Revoked),
        };
        self.refuse(turn, &waiter, why);
    }
}
