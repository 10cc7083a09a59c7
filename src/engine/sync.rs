//! The heartbeat and the poll, in one call for a limiter.
//!
//! While something is held, an instance reports every third of a lease; while something waits, every poll interval
//! (default one second), whether Pub/Sub seems to work or not: a subscription can die in silence, and a slot that
//! became free must not lie idle for longer than that. The interval is shortened to the next moment at which the
//! store has something to do by itself (a lease that ends). Any number of reasons to sync while one is under way
//! cause one more (see [`crate::coalescer`]).

use super::*;
use crate::settings::{ConfigView, Declaration};
use crate::store::{Answer, Standing, StoreError, Synced, Verdict};

/// So many waiting tickets are asked about at once. Grants follow the order, so mostly the first tells about all.
const HEADS: usize = 16;

/// Two syncs are at least so far apart when the store names a moment for the next.
const SHORTEST_PAUSE: Nanos = 5_000_000;

impl Engine {
    /// Syncs now, or once more when one is under way.
    pub(super) fn request_sync(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        if turn.table.limiters[limiter].core.sync.notify() {
            self.send_sync(turn, limiter);
        }
    }

    fn send_sync(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &turn.table.limiters[limiter];
        let heads: Vec<TicketNo> = state.queued.keys().take(HEADS).map(|(_, no)| *no).collect();
        let call = turn.table.call(limiter, Verb::Sync { version: state.version, heads: heads.clone() }, turn.now);
        turn.fx.calls.push((call, Asked::Sync { sent_at: turn.now, heads }));
    }

    /// Sees to it that the next sync comes in time, when one is needed at all.
    pub(super) fn plan_sync(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        self.plan_sync_within(turn, limiter, NEVER);
    }

    fn plan_sync_within(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, within: Nanos) {
        let state = &mut turn.table.limiters[limiter];
        let pause = match (state.queued.is_empty(), state.held.is_empty()) {
            (false, _) => state.poll.min(state.lease() / 3).min(within.max(SHORTEST_PAUSE)),
            (true, false) => state.lease() / 3,
            (true, true) => return,
        };
        if state.sync_at.is_some_and(|at| at <= turn.now + pause) {
            return; // that one is in time
        }
        let at = turn.now + nanos(crate::jitter::spread(Duration::from_nanos(pause)));
        if let Some(later) = state.sync_at {
            turn.table.disarm(later, Timer::Sync(limiter));
        }
        turn.table.limiters[limiter].sync_at = Some(at);
        turn.table.arm(at, Timer::Sync(limiter), turn.fx);
    }

    /// The time for a sync has come.
    pub(super) fn sync_due(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &mut turn.table.limiters[limiter];
        state.sync_at = None;
        if state.queued.is_empty() && state.held.is_empty() {
            return;
        }
        self.request_sync(turn, limiter);
        self.watch_positions(turn, limiter);
        self.plan_sync(turn, limiter); // should the answer never come
    }

    pub(super) fn sync_answered(
        &self,
        turn: &mut Turn<'_>,
        limiter: LimiterIndex,
        (sent_at, known): (Nanos, u64),
        heads: &[TicketNo],
        result: Result<Answer, StoreError>,
    ) {
        let mut again = false;
        match result {
            Ok(answer) => match answer.verdict {
                Verdict::Synced(synced) => {
                    again = self.synced(turn, limiter, (sent_at, answer.version, answer.epoch), heads, synced);
                }
                Verdict::Resync => self.resync(turn, limiter, (known, answer.epoch)),
                Verdict::Refused => again = true,
                _ => {}
            },
            Err(StoreError::Away { .. } | StoreError::Lost { .. }) => {} // the link's return syncs
            Err(StoreError::Busy { .. } | StoreError::Full { .. }) => self.retry_later(turn, limiter),
            Err(StoreError::Fatal(Error::Closed)) => {} // nobody needs it any more
            Err(StoreError::Fatal(error)) => {
                tracing::error!(limiter = %turn.table.limiters[limiter].core.name, %error, "the heartbeat failed");
            }
        }
        if again {
            turn.table.limiters[limiter].core.sync.notify();
        }
        if turn.table.limiters[limiter].core.sync.finish() {
            self.send_sync(turn, limiter);
        }
    }

    /// Returns whether to sync again at once.
    fn synced(
        &self,
        turn: &mut Turn<'_>,
        limiter: LimiterIndex,
        (sent_at, version, epoch): (Nanos, u64, u64),
        heads: &[TicketNo],
        synced: Synced,
    ) -> bool {
        if let Some(config) = &synced.config {
            self.learn_config(turn, limiter, (sent_at, version), config);
        }
        self.confirm(turn, limiter, sent_at);
        if turn.table.limiters[limiter].restoring() {
            return false;
        }
        self.take_heads(turn, heads, &synced.heads, epoch);
        let state = &mut turn.table.limiters[limiter];
        let revoked = std::mem::replace(&mut state.revokes, synced.revokes) != synced.revokes;
        if revoked && !state.held.is_empty() {
            self.check_held(turn, limiter);
        }
        let within = synced.next.map_or(NEVER, nanos);
        self.plan_sync_within(turn, limiter, within);
        let all_changed = synced.heads.len() == heads.len() && !heads.is_empty();
        let more_wait = !turn.table.limiters[limiter].queued.is_empty();
        synced.more || (all_changed && more_wait && synced.heads.last() != Some(&Standing::Queued))
    }

    fn take_heads(&self, turn: &mut Turn<'_>, heads: &[TicketNo], standings: &[Standing], epoch: u64) {
        for (no, standing) in heads.iter().zip(standings) {
            let Some(slot) = turn.table.tickets.get(no).filter(|slot| slot.phase == Phase::Queued) else { continue };
            let limit = turn.table.limiters[slot.limiter].settings.limit;
            let impossible = Some(limit).filter(|limit| slot.waiter.cost() > *limit && *limit > 0);
            match *standing {
                Standing::Queued => {}
                Standing::Held { fence, order } => self.grant_if_confirmed(turn, *no, (fence, order), epoch),
                Standing::Gone => self.out_of_line(turn, *no, impossible),
            }
        }
    }

    /// The store has counted us alive; what is held is ours for a lease from before the question was sent.
    pub(super) fn confirm(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, sent_at: Nanos) {
        let until = sent_at + turn.table.limiters[limiter].lease();
        self.confirm_until(turn, limiter, until);
    }

    pub(super) fn confirm_until(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, until: Nanos) {
        let state = &mut turn.table.limiters[limiter];
        state.confirm_until(until);
        if turn.now >= until {
            return;
        }
        if std::mem::take(&mut state.unconfirmed) {
            let held: Vec<TicketNo> = state.held.iter().copied().collect();
            for slot in held.iter().filter_map(|no| turn.table.tickets.get(no)) {
                turn.fx.events.push((slot.waiter.clone(), PermitEvent::Confirmed));
            }
        }
        self.watch_lease(turn, limiter);
    }

    /// Sees to it that the owners of what is held are told when a lease passes without an answer.
    pub(super) fn watch_lease(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &mut turn.table.limiters[limiter];
        let end = state.core.valid_until.load(Ordering::Acquire);
        if state.held.is_empty() || state.watch_at.is_some_and(|at| at <= end) {
            return;
        }
        if let Some(later) = state.watch_at.replace(end) {
            turn.table.disarm(later, Timer::Unconfirmed(limiter));
        }
        turn.table.arm(end, Timer::Unconfirmed(limiter), turn.fx);
    }

    /// A lease has passed since the store last counted us alive, or it has done so meanwhile.
    pub(super) fn check_confirmed(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &mut turn.table.limiters[limiter];
        state.watch_at = None;
        if state.unconfirmed || state.held.is_empty() {
            return;
        }
        if state.is_confirmed(turn.now) {
            return self.watch_lease(turn, limiter);
        }
        state.unconfirmed = true;
        tracing::warn!(limiter = %state.core.name, held = state.held.len(), "the store is silent; permits may be lost");
        let held: Vec<TicketNo> = state.held.iter().copied().collect();
        for slot in held.iter().filter_map(|no| turn.table.tickets.get(no)) {
            if slot.waiter.ticket.fence() != 0 {
                turn.fx.events.push((slot.waiter.clone(), PermitEvent::Unconfirmed));
            }
        }
    }

    fn learn_config(
        &self,
        turn: &mut Turn<'_>,
        limiter: LimiterIndex,
        (sent_at, version): (Nanos, u64),
        config: &ConfigView,
    ) {
        let state = &mut turn.table.limiters[limiter];
        let ours = &state.own;
        let another_won = !ours.is_empty() && !config.declared.is_empty() && config.declared != *ours;
        if another_won && state.version != version {
            tracing::warn!(
                limiter = %state.core.name, ours, theirs = %config.declared,
                "another process declared this limiter differently; the newest open wins"
            );
        }
        // Whoever has to call the limiter into being again does so with what was in force.
        state.set_declaration(Declaration {
            declared: config.declared.clone(),
            declared_at: config.declared_at,
            overrides: config.overrides.clone(),
            override_at: config.override_at,
            declares: false,
            description: state.declaration().description.clone(),
        });
        let before = std::mem::replace(&mut state.settings, config.settings());
        // A lease that became shorter holds at once.
        state.core.valid_until.fetch_min(sent_at + state.lease(), Ordering::AcqRel);
        state.version = version;
        if state.settings.max_wait != before.max_wait {
            self.wait_as_declared(turn, limiter);
        }
    }

    /// Who waits as long as the limiter says does so by its new word, counted from the start: the first request after a
    /// change was made elsewhere begins by the old one.
    fn wait_as_declared(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &turn.table.limiters[limiter];
        let max_wait = nanos(crate::settings::from_millis(state.settings.max_wait));
        let unsent = state.unsent.iter().map(|(_, no)| *no);
        let queued = state.queued.keys().map(|(_, no)| *no);
        let waiting: Vec<TicketNo> = unsent.chain(queued).chain(state.in_flight.iter().copied()).collect();
        for no in waiting {
            let Some(slot) = turn.table.tickets.get(&no) else { continue };
            let waiter = slot.waiter.clone();
            if !waiter.may_wait() || !waiter.terms.get().is_some_and(|terms| terms.waits_as_declared) {
                continue;
            }
            turn.table.disarm(waiter.deadline(), Timer::Deadline(no));
            waiter.set_deadline(waiter.started().saturating_add(max_wait));
            turn.table.arm(waiter.deadline(), Timer::Deadline(no), turn.fx);
        }
    }
}
