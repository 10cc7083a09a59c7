//! Questions and orders that are not about a ticket of ours: each one call, with its answer waited for.

use super::table::Sent;
use super::*;
use crate::status::Position;
use crate::store::{Answer, StoreError, Verdict};

impl Engine {
    /// Asks the store and waits for the answer, for as long as the client's patience lasts. A question that went under
    /// with its connection is asked once more on the next.
    pub(crate) fn ask(&self, limiter: LimiterIndex, verb: Verb) -> Result<Answer, Error> {
        self.check_process()?;
        let changes = matches!(verb, Verb::Revoke(_) | Verb::Configure(_));
        let again = (!matches!(verb, Verb::Revoke(_))).then(|| verb.clone()); // a second one would find nothing
        let answer = match (self.ask_once(limiter, verb), again) {
            (Err(StoreError::Lost { .. }), Some(verb)) => self.ask_once(limiter, verb),
            (other, _) => other,
        };
        let answer = answer.map_err(|error| match error {
            StoreError::Lost { detail } if changes => Error::UnknownOutcome { detail },
            error => to_error(error),
        });
        match answer? {
            Answer { verdict: Verdict::NoSuchLimiter, .. } => {
                Err(Error::NoSuchLimiter { name: self.lock().limiters[limiter].core.name.to_string() })
            }
            answer => Ok(answer),
        }
    }

    fn ask_once(&self, limiter: LimiterIndex, verb: Verb) -> Result<Answer, StoreError> {
        let (sender, answer) = crossbeam_channel::bounded(1);
        // The one who asked may have given up.
        self.ask_start(limiter, verb, move |result| drop(sender.send(result)))?;
        answer
            .recv_timeout(self.patience)
            .unwrap_or_else(|_| Err(StoreError::Busy { detail: "the store did not answer in time".into() }))
    }

    /// Asks the store. `then` takes the answer, after the engine has.
    pub(crate) fn ask_start(
        &self,
        limiter: LimiterIndex,
        verb: Verb,
        then: impl FnOnce(Result<Answer, StoreError>) + Send + 'static,
    ) -> Result<(), StoreError> {
        self.ensure_scheduler().map_err(StoreError::Fatal)?; // it also closes in the background
        let (call, core) = {
            let mut table = self.lock();
            check_open(&table).map_err(StoreError::Fatal)?;
            // Held until the answer is there, so that the limiter is not forgotten before.
            let core = table.limiters[limiter].core.clone();
            (table.call(limiter, verb, self.clock.now()), core)
        };
        let sent = Sent::with(&call.header);
        let me = self.me.clone();
        let reply = move |result: Result<Answer, StoreError>| {
            if let Some(me) = me.upgrade() {
                me.question_answered(core.index, sent, &result);
            }
            then(result);
        };
        self.store().submit(call, Box::new(reply));
        Ok(())
    }

    /// An operator's order may concern tickets of its own instance, and every answer tells the epoch.
    fn question_answered(&self, limiter: LimiterIndex, sent: Sent, result: &Result<Answer, StoreError>) {
        self.with_table(|turn| {
            self.observe_declared(turn.table, limiter, sent, result);
            if let Ok(answer) = result {
                self.observe(turn, limiter, None, answer);
                self.observe_version(turn, limiter, super::answers::version_told(answer));
            }
        });
    }

    /// Where a ticket stands in line; `None` when it does not wait there.
    pub(crate) fn ask_position(&self, waiter: &Waiter) -> Result<Option<Position>, Error> {
        let answer = self.ask(waiter.limiter().index, Verb::Position([waiter.no].into()))?;
        let Verdict::Positions(positions) = answer.verdict else {
            return Err(Error::Internal { detail: "an answer to another verb".into() });
        };
        let waits = positions.first().filter(|(position, _)| *position > 0);
        let position = waits.map(|(position, estimate)| Position { position: *position, estimate: *estimate });
        match position {
            Some(position) => self.with_table(|turn| self.set_position(turn, waiter.no, position, true)),
            None => waiter.set_position(None),
        }
        Ok(position)
    }

    /// Looks whether the store is fit for use.
    pub(crate) fn check_store(&self) -> Result<crate::ServerInfo, Error> {
        self.check_process()?;
        check_open(&self.lock())?;
        self.store().check().map_err(to_error)
    }

    /// The names of all limiters in the store, sorted.
    pub(crate) fn limiter_names(&self) -> Result<Vec<String>, Error> {
        self.check_process()?;
        check_open(&self.lock())?;
        let mut names = self.store().limiters().map_err(to_error)?;
        names.sort();
        Ok(names)
    }
}

fn check_open(table: &Table) -> Result<(), Error> {
    if matches!(table.stage, Stage::Closed | Stage::Ended) { Err(Error::Closed) } else { Ok(()) }
}

fn to_error(error: StoreError) -> Error {
    match error {
        StoreError::Away { detail, .. } | StoreError::Lost { detail } | StoreError::Busy { detail } => {
            super::answers::unavailable(detail)
        }
        StoreError::Full { detail } => Error::Overloaded { detail },
        StoreError::Fatal(error) => error,
    }
}
