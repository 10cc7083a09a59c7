//! The end: nobody new is admitted, every waiter is told `closed`, what is held is renewed until it is given back or
//! the drain time is over, then everything is given back and the store forgets the instance.

use super::*;

/// For how long the store's answers are waited for at the end.
const FAREWELL: Duration = Duration::from_secs(2);

impl Engine {
    /// Begins to close. Does not wait.
    pub(super) fn start_closing(&self, drain: Duration) {
        let no_thread = self.scheduler.get().is_none();
        self.with_table(|turn| {
            let until = turn.now.saturating_add(nanos(drain));
            match turn.table.stage {
                Stage::Running => {}
                Stage::Draining { until: later } if until < later => {}
                _ => return,
            }
            turn.table.stage = Stage::Draining { until };
            turn.table.arm(until, Timer::Closing, turn.fx);
            turn.fx.wake_scheduler = true;
            let mut waiters: Vec<Arc<Waiter>> = turn.table.tickets.values().map(|slot| slot.waiter.clone()).collect();
            waiters.sort_unstable_by_key(|waiter| waiter.no); // the same each time
            for waiter in waiters {
                self.refuse(turn, &waiter, (TicketState::Closed, Error::Closed));
            }
            if no_thread {
                turn.table.stage = Stage::Closed; // nothing was ever started
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
            table = self.wake.wait(table);
        }
        Ok(())
    }

    /// Takes the next step of the end, when it is time.
    pub(super) fn advance_closing(&self, turn: &mut Turn<'_>) {
        if let Stage::Draining { until } = turn.table.stage {
            let held = turn.table.limiters.iter().any(|state| !state.held.is_empty());
            if held && turn.now < until {
                return;
            }
            self.give_everything_back(turn);
            let until = turn.now.saturating_add(nanos(FAREWELL));
            turn.table.stage = Stage::Leaving { until, sent: false, answers_left: 0 };
            turn.table.arm(until, Timer::Closing, turn.fx);
        }
        if let Stage::Leaving { until, sent, answers_left } = turn.table.stage {
            // What is away is not waited for.
            let told = turn.table.limiters.iter().all(|state| state.is_empty() || state.away.is_some());
            let over = turn.now >= until;
            if told && !sent && !over {
                self.say_goodbye(turn, until);
            } else if over || (sent && answers_left == 0) {
                self.drop_the_rest(turn);
                turn.table.stage = Stage::Closed;
            }
        }
    }

    fn give_everything_back(&self, turn: &mut Turn<'_>) {
        let held: Vec<TicketNo> = turn.table.limiters.iter().flat_map(|state| state.held.iter().copied()).collect();
        for no in held {
            self.lose(turn, no, LostReason::Closed);
        }
    }

    fn say_goodbye(&self, turn: &mut Turn<'_>, until: Nanos) {
        let known = turn.table.limiters.iter().enumerate();
        let known = known.filter(|(_, state)| state.epoch != 0 && state.away.is_none());
        let known: Vec<LimiterIndex> = known.map(|(limiter, _)| limiter).collect();
        turn.table.stage = Stage::Leaving { until, sent: true, answers_left: known.len() };
        for limiter in &known {
            let call = turn.table.call(*limiter, Verb::Leave, turn.now);
            turn.fx.calls.push((call, Asked::Goodbye));
        }
        if known.is_empty() {
            self.drop_the_rest(turn);
            turn.table.stage = Stage::Closed;
        }
    }

    pub(super) fn goodbye_answered(&self, turn: &mut Turn<'_>) {
        if let Stage::Leaving { answers_left, .. } = &mut turn.table.stage {
            *answers_left = answers_left.saturating_sub(1);
            turn.fx.wake_scheduler = true;
        }
    }

    /// What the store could not be told; the lease ends it there.
    fn drop_the_rest(&self, turn: &mut Turn<'_>) {
        for no in turn.table.tickets.keys().copied().collect::<Vec<_>>() {
            turn.table.remove(no, turn.fx);
        }
    }
}
