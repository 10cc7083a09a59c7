//! The one thread of an instance that minds the time: deadlines, heartbeats, retries, and the end. It does no I/O, so
//! a stalled store delays none of them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// What there was to do.
pub(super) enum Looked<'a> {
    /// Something, and perhaps more.
    Acted,
    /// Nothing before the table's `next_look`.
    Idle(MutexGuard<'a, Table>),
    /// The engine has ended.
    Closed,
}

impl Engine {
    /// Starts the thread with the first request.
    pub(super) fn ensure_scheduler(&self) -> Result<(), Error> {
        self.scheduler.get_or_try_init(|| self.spawn_scheduler()).map(|_| ())
    }

    fn spawn_scheduler(&self) -> Result<(), Error> {
        let Some(me) = self.me.upgrade() else { return Err(Error::Closed) };
        let waker = self.me.clone();
        self.clock.on_advance(move || {
            if let Some(engine) = waker.upgrade() {
                drop(engine.table.lock());
                engine.wake.notify_all();
            }
        });
        let thread = std::thread::Builder::new().name("fairq-scheduler".into()).spawn(move || me.schedule());
        thread.map(|_| ()).map_err(|e| Error::Internal { detail: format!("no thread to be had: {e}") })
    }

    fn schedule(&self) {
        let outcome = catch_unwind(AssertUnwindSafe(|| while self.tick() {}));
        if outcome.is_err() {
            self.settle_after_panic();
        }
    }

    /// Does what is due, or sleeps until something is. False: the engine is closed.
    fn tick(&self) -> bool {
        match self.look() {
            Looked::Closed => return false,
            Looked::Acted => {}
            Looked::Idle(mut table) => {
                let until = table.next_look;
                table = self.clock.wait(&self.wake, table, until);
                table.next_look = 0; // awake: nobody needs to wake me
            }
        }
        true
    }

    /// Does what is due now.
    pub(super) fn look(&self) -> Looked<'_> {
        let mut fx = Effects::default();
        let mut table = self.table.lock();
        let now = self.clock.now();
        self.do_what_is_due(&mut Turn { table: &mut table, now, fx: &mut fx });
        if matches!(table.stage, Stage::Closed | Stage::Ended) {
            self.run(table, now, fx);
            self.end();
            return Looked::Closed;
        }
        if fx.is_empty() && (table.outbox.is_empty() || table.submitting) {
            table.next_look = table.timers.first().map_or(NEVER, |(at, _)| *at);
            return Looked::Idle(table);
        }
        self.run(table, now, fx);
        Looked::Acted
    }

    fn do_what_is_due(&self, turn: &mut Turn<'_>) {
        while let Some((at, timer)) = turn.table.timers.first().copied()
            && at <= turn.now
        {
            turn.table.timers.pop_first();
            self.due(turn, timer);
        }
        self.advance_closing(turn);
    }

    fn due(&self, turn: &mut Turn<'_>, timer: Timer) {
        match timer {
            Timer::Deadline(no) => self.deadline_passed(turn, no),
            Timer::MaxHold(no) => self.lose(turn, no, LostReason::MaxHold),
            Timer::Sync(limiter) => self.sync_due(turn, limiter),
            Timer::Retry(limiter) => self.retry(turn, limiter),
            Timer::Unconfirmed(limiter) => self.check_confirmed(turn, limiter),
            Timer::Closing => {}
        }
    }

    /// The ticket has waited as long as it may. Whether it was in line or never got there makes the difference
    /// between "timed out" and "unavailable".
    fn deadline_passed(&self, turn: &mut Turn<'_>, no: TicketNo) {
        let Some(slot) = turn.table.tickets.get(&no) else { return };
        let waiter = slot.waiter.clone();
        let never_in_line = slot.phase != Phase::Queued && waiter.order() == 0;
        let away = turn.table.limiters[slot.limiter].away.as_deref().map(str::to_owned);
        let away = away.map(super::answers::unavailable);
        let patience_over = !waiter.may_wait();
        let why_not =
            slot.last_error.as_deref().cloned().or(away).or_else(|| {
                patience_over.then(|| super::answers::unavailable("the store did not answer in time".into()))
            });
        let why = match why_not.filter(|_| never_in_line) {
            Some(error) => (TicketState::Failed, error),
            None => (TicketState::TimedOut, self.timed_out(&waiter, turn.now)),
        };
        self.refuse(turn, &waiter, why);
    }

    /// A bug must not leave anybody waiting for ever.
    fn settle_after_panic(&self) {
        tracing::error!("the scheduler panicked; the client is closed");
        self.with_table(|turn| {
            turn.table.stage = Stage::Closed;
            let waiters: Vec<Arc<Waiter>> = turn.table.tickets.values().map(|slot| slot.waiter.clone()).collect();
            for waiter in waiters {
                let error = Error::Internal { detail: "the scheduler panicked".into() };
                self.refuse(turn, &waiter, (TicketState::Failed, error));
            }
        });
        self.end();
    }
}
