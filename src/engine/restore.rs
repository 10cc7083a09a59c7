//! Bringing back what the store has lost, or has given up on us.

use super::limiter_state::RestoreState;
use super::*;
use crate::store::{Answer, Restored, Standing, StoreError, Verdict};

/// So many tickets travel in one call.
const CHUNK: usize = 100;

impl Engine {
    /// The store does not know us, or is in another epoch. In the same epoch it has reaped us: what we held was given
    /// away, and its owners learn that before anything new is handed out.
    pub(super) fn resync(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, (known, epoch): (u64, u64)) {
        if turn.table.limiters[limiter].restoring() {
            return;
        }
        if turn.table.limiters[limiter].epoch == epoch {
            if known != epoch {
                // Asked before the restore that has brought us into this epoch: nothing is lost, ask again.
                self.send_unsent(turn, limiter);
                return self.request_sync(turn, limiter);
            }
            self.lose_leases(turn, limiter);
            for slot in turn.table.tickets.values_mut().filter(|slot| slot.limiter == limiter) {
                slot.doubtful = true;
            }
        }
        self.start_restore(turn, limiter);
    }

    fn lose_leases(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let held: Vec<TicketNo> = turn.table.limiters[limiter].held.iter().copied().collect();
        for no in held {
            let local = turn.table.tickets.get(&no).is_some_and(|slot| slot.waiter.ticket.fence() == 0);
            if !local {
                // Its clean-up is a release, which also frees what the store has not got round to reaping.
                self.lose(turn, no, LostReason::LeaseExpired);
            }
        }
    }

    /// Sends everything that is held or waits, in order.
    pub(super) fn start_restore(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &turn.table.limiters[limiter];
        let held = state.held.iter().copied();
        let queued = state.queued.keys().map(|(_, no)| *no);
        let tickets: Vec<TicketNo> = held.chain(queued).collect();
        let all: Vec<Restored> = tickets.iter().filter_map(|no| self.restored(turn.table, *no, None)).collect();
        tracing::info!(limiter = %state.core.name, tickets = all.len(), "restoring");
        self.send_restore(turn, limiter, &all, LostReason::StateLost);
    }

    /// Looks whether what is held is still held.
    pub(super) fn check_held(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let held: Vec<TicketNo> = turn.table.limiters[limiter].held.iter().copied().collect();
        let all: Vec<Restored> =
            held.iter().filter_map(|no| self.restored(turn.table, *no, Some(RestoreKind::Check))).collect();
        self.send_restore(turn, limiter, &all, LostReason::Revoked);
    }

    fn restored(&self, table: &Table, no: TicketNo, kind: Option<RestoreKind>) -> Option<Restored> {
        let slot = table.tickets.get(&no)?;
        let waiter = &slot.waiter;
        let standing = if slot.phase == Phase::Held { held_kind(waiter) } else { RestoreKind::Waiting };
        Some(Restored {
            kind: kind.unwrap_or(standing),
            no,
            order: waiter.order(),
            fence: waiter.ticket.fence(),
            cost: waiter.cost(),
            label: waiter.label(),
        })
    }

    /// `missing`: what it means when a held ticket is not there.
    fn send_restore(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, all: &[Restored], missing: LostReason) {
        // One chunk at least, though empty: it counts us in again.
        let chunks: Vec<&[Restored]> = if all.is_empty() { vec![&[]] } else { all.chunks(CHUNK).collect() };
        let state = &mut turn.table.limiters[limiter];
        state.restores += 1;
        state.restore = RestoreState::Running { chunks_left: chunks.len(), epoch: None };
        let run = state.restores;
        for chunk in chunks {
            let tickets = chunk.iter().map(|t| t.no).collect();
            let call = turn.table.call(limiter, Verb::Restore(chunk.to_vec()), turn.now);
            turn.fx.calls.push((call, Asked::Restore { run, tickets, sent_at: turn.now, missing }));
        }
    }

    pub(super) fn restore_answered(
        &self,
        turn: &mut Turn<'_>,
        limiter: LimiterIndex,
        (run, sent_at): (u64, Nanos),
        (tickets, missing): (&[TicketNo], LostReason),
        result: Result<Answer, StoreError>,
    ) {
        if let Ok(Answer { verdict: Verdict::Restored(standings), .. }) = &result {
            self.restored_late(turn, limiter, tickets, standings);
        }
        let state = &mut turn.table.limiters[limiter];
        let RestoreState::Running { chunks_left, epoch } = state.restore else { return };
        if run != state.restores {
            return; // of an earlier attempt
        }
        let Ok(Answer { verdict: Verdict::Restored(standings), epoch: answered, version, .. }) = result else {
            if missing == LostReason::Revoked {
                // It was only a look: the next sync asks for another, and nothing is to be brought back.
                (state.restore, state.revokes) = (RestoreState::Settled, u64::MAX);
                return;
            }
            state.restore = RestoreState::Wanted; // the link's return, or a retry, begins anew
            if !matches!(result, Err(StoreError::Away { .. } | StoreError::Lost { .. })) {
                self.retry_later(turn, limiter);
            }
            return;
        };
        let only_looked = missing == LostReason::Revoked;
        if epoch.is_some_and(|first| first != answered) || only_looked && state.epoch != answered {
            return self.start_restore(turn, limiter); // lost (once more) half-way
        }
        state.restore = RestoreState::Running { chunks_left: chunks_left - 1, epoch: Some(answered) };
        let grants = self.take_standings(turn, (tickets, missing), &standings);
        if chunks_left == 1 {
            self.restore_done(turn, limiter, (answered, version), sent_at);
        }
        // After the epoch is known: these were granted while nobody could tell us.
        for (no, fence, order) in grants {
            match turn.table.limiters[limiter].restoring() {
                true => self.request_sync(turn, limiter),
                false => self.grant_if_confirmed(turn, no, (fence, order), answered),
            }
        }
    }

    /// What had ended before it was brought back. Mostly its clean-up comes behind and undoes that; see `entered_late`.
    fn restored_late(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, tickets: &[TicketNo], standings: &[Standing]) {
        for (no, _) in tickets.iter().zip(standings).filter(|(_, standing)| **standing != Standing::Gone) {
            match turn.table.tickets.get_mut(no) {
                None => self.give_back_orphan(turn, limiter, *no),
                Some(slot) => slot.entered_late |= matches!(slot.phase, Phase::Leaving { .. }),
            }
        }
    }

    fn take_standings(
        &self,
        turn: &mut Turn<'_>,
        (tickets, missing): (&[TicketNo], LostReason),
        standings: &[Standing],
    ) -> Vec<(TicketNo, u64, u64)> {
        let mut grants = Vec::new();
        for (no, standing) in tickets.iter().zip(standings) {
            let Some(slot) = turn.table.tickets.get(no) else { continue };
            match (slot.phase, *standing) {
                (Phase::Held, Standing::Held { fence, order }) => {
                    slot.waiter.ticket.adopt_fence(fence);
                    slot.waiter.set_order(order);
                }
                (Phase::Held, _) => self.lose(turn, *no, missing),
                (Phase::Queued, Standing::Held { fence, order }) => grants.push((*no, fence, order)),
                _ => {}
            }
        }
        grants
    }

    fn restore_done(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, (epoch, version): (u64, u64), sent_at: Nanos) {
        let state = &mut turn.table.limiters[limiter];
        state.restore = RestoreState::Settled;
        state.epoch = epoch;
        if state.version == version {
            self.confirm(turn, limiter, sent_at);
        }
        self.send_unsent(turn, limiter);
        turn.table.send_leaving(limiter, None, turn.now, turn.fx);
        self.plan_sync(turn, limiter);
        self.request_sync(turn, limiter);
    }
}

/// How a held ticket is brought back to the store.
fn held_kind(waiter: &Waiter) -> RestoreKind {
    if waiter.ticket.fence() == 0 { RestoreKind::Local } else { RestoreKind::Held }
}
