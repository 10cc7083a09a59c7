//! Redis being away is a normal state. What waits is held until its deadline, failed, or admitted locally, as the
//! limiter's outage policy says; what is held stays held; and when the store is back, everything is asked again.

use super::*;
use crate::settings::Outage;
use crate::store::Concerns;

impl Engine {
    /// An attempt to connect with the place where these limiters live has failed.
    pub(super) fn store_is_away(&self, turn: &mut Turn<'_>, of: Concerns<'_>, detail: &str) {
        let concerned = self.concerned(turn.table, of);
        if !concerned.is_empty() && turn.table.limiters.iter().all(|state| state.away.is_none()) {
            tracing::warn!(detail, "the store is away");
        }
        for limiter in concerned {
            self.limiter_is_away(turn, limiter, detail);
        }
        turn.fx.wake_scheduler |= turn.table.stage != Stage::Running;
    }

    /// A limiter's place is known to be away.
    pub(super) fn limiter_is_away(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, detail: &str) {
        let state = &mut turn.table.limiters[limiter];
        if state.away.as_deref() != Some(detail) {
            state.away = Some(detail.into());
        }
        self.admit_by_outage_policy(turn, limiter);
    }

    fn concerned(&self, table: &Table, of: Concerns<'_>) -> Vec<LimiterIndex> {
        let all = table.limiters.iter().enumerate();
        all.filter(|(_, state)| of(&state.core.name)).map(|(limiter, _)| limiter).collect()
    }

    /// Connected. Whatever was not answered is asked again; that is safe, because every verb is idempotent.
    pub(super) fn store_is_back(&self, turn: &mut Turn<'_>, of: Concerns<'_>) {
        let mut was_away = false;
        for limiter in self.concerned(turn.table, of) {
            was_away |= turn.table.limiters[limiter].away.take().is_some();
            self.ask_all_again(turn, limiter);
        }
        if was_away && turn.table.limiters.iter().all(|state| state.away.is_none()) {
            tracing::info!("the store is back");
        }
    }

    fn ask_all_again(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &turn.table.limiters[limiter];
        let is_local = |no: &TicketNo| turn.table.tickets.get(no).is_some_and(|slot| slot.waiter.ticket.fence() == 0);
        let has_local = state.held.iter().any(is_local);
        let has_tickets = !state.queued.is_empty() || !state.held.is_empty();
        if has_local || state.restoring() {
            self.start_restore(turn, limiter);
        } else if has_tickets {
            self.request_sync(turn, limiter);
        }
        self.send_unsent(turn, limiter);
        turn.table.send_leaving(limiter, None, turn.now, turn.fx);
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
        let detail = turn.table.limiters[limiter].away.as_deref().unwrap_or_default().to_owned();
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
        if turn.table.limiters[limiter].away.is_none() {
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
