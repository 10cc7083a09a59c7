//! The end: nobody new is admitted, every waiter is told `closed`, what is held is renewed until it is given back or
//! the drain time is over, then everything is given back and the store forgets the instance.

use super::*;

/// For how long the store's answers are waited for at the end.
const FAREWELL: Duration = Duration::from_secs(2);

impl Engine {
    /// Begins to close. Does not wait.
    pub(super) fn start_closing(&self, drain: Duration) {
        let no_thread = self.scheduler.get().is_none();
        self.with_table(|table, now, fx| {
            let until = now.saturating_add(nanos(drain));
            match table.stage {
                Stage::Running => {}
                Stage::Draining { until: later } if until < later => {}
                _ => return,
            }
            table.stage = Stage::Draining { until };
            table.arm(until, Timer::Closing, fx);
            fx.wake_scheduler = true;
            let waiters: Vec<Arc<Waiter>> = table.tickets.values().map(|slot| slot.waiter.clone()).collect();
            for waiter in waiters {
                self.refuse(table, &waiter, (TicketState::Closed, Error::Closed), now, fx);
            }
            if no_thread {
                table.stage = Stage::Closed; // nothing was ever started
            }
        });
        if no_thread {
            self.end();
        }
    }

    /// Ends the store's threads, and tells whoever waits for the end.
    pub(super) fn end(&self) {
        if let Some(store) = self.store.get() {
            store.close();
        }
        self.lock().stage = Stage::Ended;
        self.wake.notify_all();
    }

    /// Closes, and waits until no thread of the engine is left at work.
    pub(crate) fn close(&self, drain: Duration) -> Result<(), Error> {
        self.check_process()?;
        self.start_closing(drain);
        let mut table = self.lock();
        while table.stage != Stage::Ended {
            self.wake.wait(&mut table);
        }
        Ok(())
    }

    /// Takes the next step of the end, when it is time.
    pub(super) fn advance_closing(&self, table: &mut Table, now: Nanos, fx: &mut Effects) {
        if let Stage::Draining { until } = table.stage {
            let held = table.limiters.iter().any(|state| !state.held.is_empty());
            if held && now < until {
                return;
            }
            self.give_everything_back(table, now, fx);
            let until = now.saturating_add(nanos(FAREWELL));
            table.stage = Stage::Leaving { until, sent: false, answers_left: 0 };
            table.arm(until, Timer::Closing, fx);
        }
        if let Stage::Leaving { until, sent, answers_left } = table.stage {
            let over = now >= until || table.away.is_some();
            let told = table.tickets.is_empty();
            if told && !sent && !over {
                self.say_goodbye(table, until, now, fx);
            } else if over || (sent && answers_left == 0) {
                self.drop_the_rest(table, fx);
                table.stage = Stage::Closed;
            }
        }
    }

    fn give_everything_back(&self, table: &mut Table, now: Nanos, fx: &mut Effects) {
        let held: Vec<TicketNo> = table.limiters.iter().flat_map(|state| state.held.iter().copied()).collect();
        for no in held {
            self.lose(table, no, LostReason::Closed, now, fx);
        }
    }

    fn say_goodbye(&self, table: &mut Table, until: Nanos, now: Nanos, fx: &mut Effects) {
        let known: Vec<LimiterIndex> =
            (0..table.limiters.len()).filter(|limiter| table.limiters[*limiter].epoch != 0).collect();
        table.stage = Stage::Leaving { until, sent: true, answers_left: known.len() };
        for limiter in &known {
            let call = table.call(*limiter, Verb::Leave, now);
            fx.calls.push((call, Asked::Goodbye));
        }
        if known.is_empty() {
            table.stage = Stage::Closed;
        }
    }

    pub(super) fn goodbye_answered(&self, table: &mut Table, fx: &mut Effects) {
        if let Stage::Leaving { answers_left, .. } = &mut table.stage {
            *answers_left = answers_left.saturating_sub(1);
            fx.wake_scheduler = true;
        }
    }

    /// What the store could not be told; the lease ends it there.
    fn drop_the_rest(&self, table: &mut Table, fx: &mut Effects) {
        for no in table.tickets.keys().copied().collect::<Vec<_>>() {
            table.remove(no, fx);
        }
    }
}
