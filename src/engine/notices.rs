//! What the store says unasked: by the Pub/Sub thread, or by another client's call on the memory store. A message
//! makes things fast; what counts is the store's state, so a doubtful one causes no more than a sync.

use super::*;
use crate::store::{Listener, Notice};

impl Listener for Engine {
    fn notices(&self, limiter: &str, epoch: u64, notices: Vec<Notice>) {
        self.with_table(|table, now, fx| {
            let Some(limiter) = table.limiter_of(limiter) else { return };
            for notice in notices {
                match is_doubtful(table, notice) {
                    true => self.request_sync(table, limiter, now, fx),
                    false => self.take_notice(table, limiter, epoch, notice, now, fx),
                }
            }
        });
    }

    fn link_up(&self) {
        self.with_table(|table, now, fx| self.store_is_back(table, now, fx));
    }

    fn link_down(&self, detail: &str) {
        self.with_table(|table, now, fx| self.store_is_away(table, detail, now, fx));
    }

    fn subscribed(&self) {
        self.with_table(|table, now, fx| {
            for limiter in 0..table.limiters.len() {
                if !table.limiters[limiter].queued.is_empty() {
                    self.request_sync(table, limiter, now, fx);
                }
            }
        });
    }

    fn wants_link(&self) -> Option<Duration> {
        // After an outage everybody has to have reported within the grace, two thirds of a lease.
        let table = self.lock();
        let shortest = table.limiters.iter().map(|state| state.lease()).min()?;
        table.has_work().then(|| Duration::from_nanos(shortest / 8))
    }
}

fn is_doubtful(table: &Table, notice: Notice) -> bool {
    let Notice::Granted { no, .. } = notice else { return false };
    table.tickets.get(&no).is_some_and(|slot| slot.doubtful)
}

impl Engine {
    pub(super) fn take_notice(
        &self,
        table: &mut Table,
        limiter: LimiterIndex,
        epoch: u64,
        notice: Notice,
        now: Nanos,
        fx: &mut Effects,
    ) {
        match notice {
            Notice::Granted { no, fence, order } if table.tickets.contains_key(&no) => {
                self.grant_if_confirmed(table, no, (fence, order), epoch, now, fx);
            }
            Notice::Granted { no, .. } => self.give_back_orphan(table, limiter, no, now, fx),
            Notice::Impossible { no, limit } => self.place_gone(table, no, epoch, Some(limit), now, fx),
            Notice::PlaceRevoked { no } => self.place_gone(table, no, epoch, None, now, fx),
            Notice::PermitRevoked { no } => {
                let held = table.tickets.get(&no).is_some_and(|slot| slot.phase == Phase::Held);
                if held && self.speaks_of_now(table, no, epoch) {
                    self.lose(table, no, LostReason::Revoked, now, fx);
                }
            }
        }
    }

    /// A grant to a ticket that we do not know (any more): an old command came through after all. Left alone, the slot
    /// would be lost for as long as we live.
    pub(super) fn give_back_orphan(
        &self,
        table: &mut Table,
        limiter: LimiterIndex,
        no: TicketNo,
        now: Nanos,
        fx: &mut Effects,
    ) {
        table.limiters[limiter].orphans.insert(no); // until the store confirms
        let call = table.call(limiter, Verb::Cancel(vec![no]), now);
        fx.calls.push((call, Asked::Leaving { tickets: vec![no] }));
    }

    fn speaks_of_now(&self, table: &Table, no: TicketNo, epoch: u64) -> bool {
        table.tickets.get(&no).is_some_and(|slot| table.limiters[slot.limiter].epoch == epoch)
    }

    fn place_gone(
        &self,
        table: &mut Table,
        no: TicketNo,
        epoch: u64,
        impossible: Option<u64>,
        now: Nanos,
        fx: &mut Effects,
    ) {
        let waits = table.tickets.get(&no).is_some_and(|slot| matches!(slot.phase, Phase::Queued | Phase::InFlight));
        if waits && self.speaks_of_now(table, no, epoch) {
            self.out_of_line(table, no, impossible, now, fx);
        }
    }

    /// The store has dropped a waiting ticket: its cost does not fit under this limit, or an operator took its place.
    pub(super) fn out_of_line(
        &self,
        table: &mut Table,
        no: TicketNo,
        impossible: Option<u64>,
        now: Nanos,
        fx: &mut Effects,
    ) {
        let Some(slot) = table.tickets.get(&no) else { return };
        let waiter = slot.waiter.clone();
        let why = match impossible {
            Some(limit) => (TicketState::Rejected, Error::Impossible { cost: waiter.cost(), limit }),
            None => (TicketState::Failed, Error::Revoked),
        };
        self.refuse(table, &waiter, why, now, fx);
    }
}
