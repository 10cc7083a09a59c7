//! Redis being away is a normal state. What waits is held until its deadline, failed, or admitted locally, as the
//! limiter's outage policy says; what is held stays held; and when the store is back, everything is asked again.

use super::*;
use crate::settings::Outage;

impl Engine {
    /// An attempt to connect has failed.
    pub(super) fn store_is_away(&self, turn: &mut Turn<'_>, detail: &str) {
        if turn.table.away.replace(detail.to_owned()).is_none() {
            tracing::warn!(detail, "the store is away");
        }
        for limiter in 0..turn.table.limiters.len() {
            self.admit_by_outage_policy(turn, limiter);
        }
        turn.fx.wake_scheduler |= turn.table.stage != Stage::Running;
    }

    /// Connected. Whatever was not answered is asked again; that is safe, because every verb is idempotent.
    pub(super) fn store_is_back(&self, turn: &mut Turn<'_>) {
        if turn.table.away.take().is_some() {
            tracing::info!("the store is back");
        }
        for limiter in 0..turn.table.limiters.len() {
            let state = &turn.table.limiters[limiter];
            let has_local = state
                .held
                .iter()
                .any(|no| turn.table.tickets.get(no).is_some_and(|slot| slot.waiter.ticket.fence() == 0));
            let has_tickets = !state.queued.is_empty() || !state.held.is_empty();
            if has_local || state.restoring() {
                self.start_restore(turn, limiter);
            } else if has_tickets {
                self.request_sync(turn, limiter);
            }
            self.send_unsent(turn, limiter);
            turn.table.send_leaving(limiter, None, turn.now, turn.fx);
        }
    }

    /// Acts on what waits while the store is away. True: the policy has taken the decision from the store.
    pub(super) fn admit_by_outage_policy(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) -> bool {
        match turn.table.limiters[limiter].outage {
            Outage::Wait => false,
            Outage::Fail => {
                self.fail_waiting(turn, limiter);
                true
            }
            Outage::Local { .. } => {
                self.fill_local(turn, limiter);
                true
            }
        }
    }

    fn fail_waiting(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let detail = turn.table.away.clone().unwrap_or_default();
        for no in self.waiting_here(turn.table, limiter) {
            let Some(slot) = turn.table.tickets.get(&no) else { continue };
            let waiter = slot.waiter.clone();
            let why = (TicketState::Failed, super::answers::unavailable(detail.clone()));
            self.refuse(turn, &waiter, why);
        }
    }

    /// In line order, then by arrival here.
    fn waiting_here(&self, table: &Table, limiter: LimiterIndex) -> Vec<TicketNo> {
        let state = &table.limiters[limiter];
        state.queued.keys().map(|(_, no)| *no).chain(state.unsent.iter().map(|(_, no)| *no)).collect()
    }

    /// With policy `local`, while the store is away: admits from the head of the local line up to the local limit.
    /// What the store granted before counts too.
    pub(super) fn fill_local(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let Outage::Local { limit } = turn.table.limiters[limiter].outage else { return };
        if turn.table.away.is_none() {
            return;
        }
        let cost_of = |table: &Table, no: &TicketNo| table.tickets.get(no).map_or(0, |slot| slot.waiter.cost());
        let mut used: u64 = turn.table.limiters[limiter].held.iter().map(|no| cost_of(turn.table, no)).sum();
        for no in self.waiting_here(turn.table, limiter) {
            let cost = cost_of(turn.table, &no);
            if used + cost > limit {
                return; // nobody passes the head
            }
            let order = turn.table.tickets.get(&no).map_or(0, |slot| slot.waiter.order());
            if self.grant(turn, no, 0, order) {
                used += cost;
            }
        }
    }
}
