//! What the store answers, and what follows from it.

use smallvec::smallvec;

use super::limiter_state::{Declare, RestoreState};
use super::*;
use crate::status::Position;
use crate::store::{Answer, Few, StoreError, Verdict, Was};

/// How long to wait before a store that is busy is asked again: this, doubled with each failure.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(1);

impl Engine {
    /// The answer to a call, or why there is none. Called once for each call, by any thread.
    pub(super) fn answered(&self, limiter: &str, sent: Sent, asked: Asked, result: Result<Answer, StoreError>) {
        self.with_table(|turn| {
            let Some(limiter) = turn.table.limiter_of(limiter) else { return };
            self.take_answer(turn, limiter, sent, asked, result);
        });
    }

    pub(super) fn take_answer(
        &self,
        turn: &mut Turn<'_>,
        limiter: LimiterIndex,
        sent: Sent,
        asked: Asked,
        result: Result<Answer, StoreError>,
    ) {
        let known = sent.epoch;
        let mut version = None;
        self.observe_declared(turn.table, limiter, sent, &result);
        if let Ok(answer) = &result {
            self.observe(turn, limiter, asked.counts_alive_from(), answer);
            version = version_told(answer);
        }
        match asked {
            Asked::Ticket { no, .. } => {
                let heard = result.is_ok();
                self.ticket_answered(turn, (limiter, no, known), result);
                if known == 0 && heard {
                    self.send_unsent(turn, limiter); // these had to wait for it
                }
            }
            Asked::Leaving { tickets } => self.leaving_answered(turn, (limiter, known), &tickets, result),
            Asked::Sync { sent_at, heads } => {
                self.sync_answered(turn, limiter, (sent_at, known), &heads, result);
            }
            Asked::Restore { run, tickets, sent_at, missing } => {
                self.restore_answered(turn, limiter, (run, sent_at), (&tickets, missing), result);
            }
            Asked::Positions { tickets } => self.positions_answered(turn, limiter, &tickets, result),
            Asked::Goodbye => self.goodbye_answered(turn),
        }
        // After what was answered has found its place: a sync that does not know of it would count us in again
        // after a long stop, as one who has nothing to lose.
        self.observe_version(turn, limiter, version);
    }

    /// A call that was to declare the limiter has done so, or somebody else has to.
    pub(super) fn observe_declared(
        &self,
        table: &mut Table,
        limiter: LimiterIndex,
        sent: Sent,
        result: &Result<Answer, StoreError>,
    ) {
        let state = &mut table.limiters[limiter];
        if sent.declared && state.declare == Declare::UnderWay {
            let done = matches!(result, Ok(answer) if !matches!(answer.verdict, Verdict::Refused));
            state.declare = if done { Declare::Done } else { Declare::Due };
        }
    }

    /// Another version of the configuration than the known one asks for a sync.
    pub(super) fn observe_version(&self, turn: &mut Turn<'_>, limiter: LimiterIndex, version: Option<u64>) {
        if version.is_some_and(|version| version != turn.table.limiters[limiter].version) && has_work(turn.table) {
            self.request_sync(turn, limiter);
        }
    }

    /// What every answer tells: the epoch, that we are counted alive, and news of our own tickets.
    pub(super) fn observe(
        &self,
        turn: &mut Turn<'_>,
        limiter: LimiterIndex,
        alive_from: Option<Nanos>,
        answer: &Answer,
    ) {
        if matches!(answer.verdict, Verdict::Refused | Verdict::NoSuchLimiter) {
            return;
        }
        let state = &mut turn.table.limiters[limiter];
        state.heard_at = turn.now;
        state.retries = 0;
        let nothing_to_lose = state.queued.is_empty() && state.held.is_empty();
        if state.epoch != answer.epoch && !state.restoring() && !matches!(answer.verdict, Verdict::Resync) {
            match nothing_to_lose {
                true => state.epoch = answer.epoch,
                false => self.start_restore(turn, limiter),
            }
        }
        let state = &turn.table.limiters[limiter];
        let of_now = !matches!(answer.verdict, Verdict::Resync) && answer.epoch == state.epoch && !state.restoring();
        if let Some(sent_at) = alive_from.filter(|_| of_now) {
            // What every verb leaves its caller, at least.
            self.confirm_until(turn, limiter, sent_at + state.lease_known(answer.version) / 4 * 3);
        }
        for notice in &answer.notices {
            self.take_notice(turn, limiter, answer.epoch, *notice);
        }
    }

    fn ticket_answered(
        &self,
        turn: &mut Turn<'_>,
        (limiter, no, known): (LimiterIndex, TicketNo, u64),
        result: Result<Answer, StoreError>,
    ) {
        let slot = turn.table.tickets.get(&no).filter(|slot| slot.phase == Phase::InFlight);
        let Some(waiter) = slot.map(|slot| slot.waiter.clone()) else {
            // Settled meanwhile, or granted by a message.
            return self.entered_late(turn, (limiter, no), result.as_ref().ok().map(|answer| &answer.verdict));
        };
        let answer = match result {
            Ok(answer) => answer,
            Err(error) => return self.ticket_failed(turn, no, error),
        };
        match answer.verdict {
            Verdict::Granted { fence, order } => {
                self.grant_if_confirmed(turn, no, (fence, order), answer.epoch);
                if turn.table.tickets.get(&no).is_some_and(|slot| slot.phase == Phase::InFlight) {
                    self.doubt(turn, no);
                }
            }
            Verdict::Queued { order, .. } if !turn.table.limiters[limiter].is_confirmed(turn.now) => {
                // Too old to be believed: we may have been reaped since.
                waiter.set_order(order);
                self.doubt(turn, no);
            }
            Verdict::Queued { order, position, estimate } => {
                waiter.set_order(order);
                self.set_position(turn, no, Position { position, estimate }, true);
                turn.table.enter_phase(no, Phase::Queued);
                if !waiter.may_wait() {
                    // Put back, and not to wait: an enqueue would have been answered with `busy`.
                    let why = (TicketState::TimedOut, self.timed_out(&waiter, turn.now));
                    return self.refuse(turn, &waiter, why);
                }
                self.plan_sync(turn, limiter);
                if turn.table.tickets.get_mut(&no).is_some_and(|slot| std::mem::take(&mut slot.told)) {
                    self.request_sync(turn, limiter);
                }
            }
            Verdict::Resync => {
                self.unsend(turn.table, no, None);
                self.resync(turn, limiter, (known, answer.epoch));
            }
            Verdict::Gone => {
                if let Some(slot) = turn.table.tickets.get_mut(&no) {
                    slot.puts_back = false; // no permit to return: it enters again, at its order
                }
                self.unsend(turn.table, no, None);
                self.send_ticket(turn, no);
            }
            Verdict::Refused => {
                self.unsend(turn.table, no, None);
                self.retry_later(turn, limiter);
            }
            refusal => {
                let why = self.why_refused(&waiter, refusal, turn.now);
                // The store has nothing of it: there is nothing to clean up there.
                turn.table.enter_phase(no, Phase::Unsent);
                if let Some(slot) = turn.table.tickets.get_mut(&no) {
                    slot.arrived = false;
                }
                self.refuse(turn, &waiter, why);
            }
        }
    }

    fn why_refused(&self, waiter: &Waiter, verdict: Verdict, now: Nanos) -> (TicketState, Error) {
        match verdict {
            Verdict::Busy => (TicketState::TimedOut, self.timed_out(waiter, now)),
            Verdict::Impossible { limit } => (TicketState::Rejected, Error::Impossible { cost: waiter.cost(), limit }),
            Verdict::Full { waiting, max_queue, retry_after } => {
                (TicketState::Rejected, Error::QueueFull { waiting, max_queue, retry_after })
            }
            Verdict::NoSuchLimiter => {
                (TicketState::Failed, Error::NoSuchLimiter { name: waiter.limiter().name.to_string() })
            }
            other => (TicketState::Failed, Error::Internal { detail: format!("an answer to another verb: {other:?}") }),
        }
    }

    pub(super) fn timed_out(&self, waiter: &Waiter, now: Nanos) -> Error {
        let waited = Duration::from_nanos(now.saturating_sub(waiter.started()));
        Error::TimedOut { waited, limiter: waiter.limiter().name.to_string() }
    }

    /// The last attempt failed: whether it arrived is unknown, so the ticket is sent again, or cleaned up.
    fn ticket_failed(&self, turn: &mut Turn<'_>, no: TicketNo, error: StoreError) {
        let Some(slot) = turn.table.tickets.get(&no) else { return };
        let (waiter, limiter) = (slot.waiter.clone(), slot.limiter);
        let arrived = slot.arrived || !matches!(error, StoreError::Away { .. });
        match error {
            StoreError::Fatal(error) => {
                // Refused before anything was written; a clean-up would only be refused as well.
                turn.table.enter_phase(no, Phase::Unsent);
                self.refuse(turn, &waiter, (TicketState::Failed, error));
            }
            StoreError::Away { .. } | StoreError::Lost { .. } => {
                let (why, down) = (error.to_string(), matches!(error, StoreError::Away { down: true, .. }));
                self.unsend(turn.table, no, Some(unavailable(why.clone())));
                if !arrived && let Some(slot) = turn.table.tickets.get_mut(&no) {
                    slot.arrived = false; // while the store is away, a ticket leaves no trace when it ends
                }
                match down {
                    true => self.limiter_is_away(turn, limiter, &why),
                    false if turn.table.limiters[limiter].away.is_some() => {
                        self.admit_by_outage_policy(turn, limiter);
                    }
                    false => {}
                }
            }
            StoreError::Busy { detail } => {
                self.unsend(turn.table, no, Some(unavailable(detail)));
                self.retry_later(turn, limiter);
            }
            StoreError::Full { detail } => {
                self.unsend(turn.table, no, Some(Error::Overloaded { detail }));
                self.retry_later(turn, limiter);
            }
        }
    }

    /// What is known of the ticket is too old: it is asked about anew, and messages about that time are not believed.
    fn doubt(&self, turn: &mut Turn<'_>, no: TicketNo) {
        self.unsend(turn.table, no, None);
        if let Some(slot) = turn.table.tickets.get_mut(&no) {
            slot.doubtful = true;
            let limiter = slot.limiter;
            self.retry_later(turn, limiter);
        }
    }

    fn unsend(&self, table: &mut Table, no: TicketNo, why: Option<Error>) {
        table.enter_phase(no, Phase::Unsent);
        if let Some(slot) = table.tickets.get_mut(&no) {
            slot.arrived = true;
            slot.last_error = why.map(Box::new).or(slot.last_error.take());
        }
    }

    /// A grant counts only in the epoch we know, and while the store certainly believes in us: after a long stop it
    /// may have been taken back already. Otherwise a sync tells.
    pub(super) fn grant_if_confirmed(&self, turn: &mut Turn<'_>, no: TicketNo, (fence, order): (u64, u64), epoch: u64) {
        let Some(slot) = turn.table.tickets.get(&no) else { return };
        let limiter = slot.limiter;
        let state = &turn.table.limiters[limiter];
        if epoch == state.epoch && !state.restoring() && state.is_confirmed(turn.now) {
            self.grant(turn, no, fence, order);
        } else {
            if let Some(slot) = turn.table.tickets.get_mut(&no) {
                slot.told = true; // a message may have overtaken the answer, which is to be followed by a sync then
            }
            self.request_sync(turn, limiter);
        }
    }

    fn leaving_answered(
        &self,
        turn: &mut Turn<'_>,
        (limiter, known): (LimiterIndex, u64),
        tickets: &[TicketNo],
        result: Result<Answer, StoreError>,
    ) {
        let undone: Few<bool> = match &result {
            Ok(Answer { verdict: Verdict::Cancelled(were), .. }) => {
                were.iter().map(|was| *was != Was::Unknown).collect()
            }
            _ => smallvec![false; tickets.len()],
        };
        let freed: Few<bool> = match result {
            Ok(Answer { verdict: Verdict::Refused, .. }) => {
                self.stay(turn.table, limiter, tickets);
                return self.retry_later(turn, limiter);
            }
            // In another epoch nobody has taken it back: it was lost with all the rest.
            Ok(Answer { epoch, .. }) if known != 0 && epoch != known => smallvec![true; tickets.len()],
            Ok(Answer { verdict: Verdict::Released(freed), .. }) => freed,
            Ok(_) => smallvec![true; tickets.len()],
            Err(StoreError::Fatal(Error::Closed)) => return self.stay(turn.table, limiter, tickets),
            Err(StoreError::Fatal(error)) => {
                // Whoever waits for it is told; but left alone, the slot would be lost for as long as we live.
                tracing::error!(limiter = %turn.table.limiters[limiter].core.name, %error, "a permit cannot be given back");
                let acks = tickets.iter().filter_map(|no| turn.table.tickets.get_mut(no)?.ack.take());
                turn.fx.acks.extend(acks.map(|ack| (ack, Err(error.clone()))));
                self.stay(turn.table, limiter, tickets);
                return self.retry_later(turn, limiter);
            }
            Err(StoreError::Away { .. } | StoreError::Lost { .. }) => return self.stay(turn.table, limiter, tickets),
            Err(StoreError::Busy { .. } | StoreError::Full { .. }) => {
                self.stay(turn.table, limiter, tickets);
                return self.retry_later(turn, limiter);
            }
        };
        for ((no, freed), undone) in tickets.iter().zip(freed).zip(undone) {
            let was_orphan = turn.table.limiters[limiter].orphans.remove(no).is_some();
            let Some(slot) = turn.table.tickets.get_mut(no) else { continue };
            if !matches!(slot.phase, Phase::Leaving { .. }) {
                if was_orphan {
                    self.send_ticket(turn, *no); // the question was about its number: a message that lied
                }
                continue;
            }
            // A release that was sent before may have arrived then, and only its answer was lost.
            let tried = matches!(slot.phase, Phase::Leaving { tried: true, .. });
            if let Some(ack) = slot.ack.take() {
                turn.fx.acks.push((ack, Ok(freed || tried)));
            }
            let overtook = slot.entered_late && !undone;
            turn.table.remove(*no, turn.fx);
            if overtook {
                self.give_back_orphan(turn, limiter, *no);
            }
        }
        turn.fx.wake_scheduler |= turn.table.stage != Stage::Running;
    }

    /// The store has not been told: these are asked for again.
    fn stay(&self, table: &mut Table, limiter: LimiterIndex, tickets: &[TicketNo]) {
        for no in tickets {
            if let Some(busy) = table.limiters[limiter].orphans.get_mut(no) {
                *busy = false;
            }
            if let Some(Slot { phase: Phase::Leaving { busy, tried, .. }, .. }) = table.tickets.get_mut(no) {
                (*busy, *tried) = (false, true);
            }
        }
    }

    /// Asks again what the store did not take, after a pause that grows.
    pub(super) fn retry_later(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        let state = &mut turn.table.limiters[limiter];
        if state.retry_at.is_some() {
            return;
        }
        let pause = FIRST_RETRY.saturating_mul(1 << state.retries.min(5)).min(LAST_RETRY);
        state.retries += 1;
        let at = turn.now + nanos(crate::jitter::spread(pause));
        state.retry_at = Some(at);
        turn.table.arm(at, Timer::Retry(limiter), turn.fx);
    }

    pub(super) fn retry(&self, turn: &mut Turn<'_>, limiter: LimiterIndex) {
        turn.table.limiters[limiter].retry_at = None;
        if turn.table.limiters[limiter].restore == RestoreState::Wanted {
            self.start_restore(turn, limiter);
        }
        self.send_unsent(turn, limiter);
        turn.table.send_leaving(limiter, None, turn.now, turn.fx);
    }
}

pub(super) fn unavailable(detail: String) -> Error {
    Error::Unavailable { detail, retry_after: Duration::from_secs(1) }
}

/// Whether anything is left for which news are of use.
fn has_work(table: &Table) -> bool {
    table.limiters.iter().any(|state| table.has_work(state))
}

/// The version of the configuration in force, if the answer tells it and not the configuration itself.
pub(super) fn version_told(answer: &Answer) -> Option<u64> {
    let untold = matches!(answer.verdict, Verdict::Refused | Verdict::NoSuchLimiter | Verdict::Synced(_));
    (!untold).then_some(answer.version)
}
