//! What has become of a round's calls, and which of them are sent once more. Without I/O, so that the simulation goes
//! through the same.
//!
//! Requests of one limiter that follow one another travel in a parcel: one run of a script for all of them, as half of
//! what a call costs the server is what every script begins and ends with.

use redis::Value;

use std::ops::Range;
use std::sync::Arc;

use super::decode;
use super::encode::{By, letter};
use super::fault::{self, Fault, Redirect};
use super::script::Script;
use crate::store::{Answer, Call, StoreError, Verdict};

/// What a server says to a call.
#[derive(Clone)]
pub(super) enum Said {
    Answer(Result<Answer, StoreError>),
    /// To ask another one.
    Elsewhere(Redirect),
}

/// Which calls of a pass carry the source of their script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Teach {
    Nothing,
    /// Once by source teaches the server.
    EachOnce,
    /// It has forgotten again between two breaths.
    Always,
}

/// The most calls in one parcel: the server does nothing else meanwhile.
const LARGEST_PARCEL: usize = 32;

/// Calls that are sent in one command: mostly one, by their places in the pass.
pub(crate) struct Parcel {
    pub place: Range<usize>,
    pub by: By,
}

/// The calls of a round, by their numbers, in passes.
pub(crate) struct Passes {
    said: Vec<Option<Said>>,
    /// Of each call, whether it has to be sent by itself.
    alone: Vec<bool>,
    /// The calls of this pass.
    which: Vec<usize>,
    /// Those of the next.
    again: Vec<usize>,
    teach: Teach,
    /// What ended the connection, if anything did.
    pub(super) broken: Option<String>,
    /// This is not the server to talk to.
    pub(super) elsewhere: bool,
    /// The cluster has not agreed yet on who has what.
    pub(super) unsettled: bool,
    /// A limiter has heard of a younger connection of ours: that of another node, from which it has moved here.
    outdated: bool,
}

impl Passes {
    pub(crate) fn new(calls: usize) -> Self {
        Passes {
            said: vec![None; calls],
            alone: vec![false; calls],
            which: (0..calls).collect(),
            again: Vec::new(),
            teach: Teach::Nothing,
            broken: None,
            elsewhere: false,
            unsettled: false,
            outdated: false,
        }
    }

    /// The calls of this pass, and the parcels they are sent in. `call` tells the call of a number, and whether `ASKING` has
    /// to go before it.
    pub(crate) fn parcels<'a>(&self, call: impl Fn(usize) -> (&'a Call, bool)) -> (Vec<&'a Call>, Vec<Parcel>) {
        let calls: Vec<&Call> = self.which.iter().map(|index| call(*index).0).collect();
        let mut loaded: Vec<&str> = Vec::new();
        let mut parcels = Vec::new();
        let mut start = 0;
        while start < calls.len() {
            let fits = |place: &usize| {
                let index = self.which[*place];
                !self.alone[index] && !call(index).1 && belong_together(calls[start], calls[*place])
            };
            let most = calls.len().min(start + LARGEST_PARCEL);
            let more = if fits(&start) { (start + 1..most).take_while(fits).count() } else { 0 };
            let place = start..start + 1 + more;
            start = place.end;
            let name = Script::for_calls(&calls[place.clone()]).name;
            let by = match self.teach {
                Teach::Nothing => By::Sha,
                Teach::EachOnce if loaded.contains(&name) => By::Sha,
                Teach::EachOnce | Teach::Always => By::Source,
            };
            loaded.push(name);
            parcels.push(Parcel { place, by });
        }
        (calls, parcels)
    }

    /// The number of a call by its place in this pass.
    pub(crate) fn number(&self, place: usize) -> usize {
        self.which[place]
    }

    /// The answer to a parcel of this pass.
    pub(crate) fn take(&mut self, place: Range<usize>, calls: &[&Call], value: Value) {
        let said = match value {
            Value::ServerError(error) => match fault::of_reply(&error) {
                Fault::NoScript => return self.again.extend(&self.which[place]),
                Fault::Redirect(redirect) => Said::Elsewhere(redirect),
                Fault::Reconnect(detail) => {
                    self.elsewhere = true;
                    self.broken.get_or_insert(detail.clone());
                    Said::Answer(Err(StoreError::away(detail)))
                }
                // One of them may be what the server refuses; the others are not to wait for it.
                Fault::Store(_) if calls.len() > 1 => return self.send_apart(place),
                Fault::Store(error) => {
                    self.unsettled |= error.to_string().contains("CLUSTERDOWN");
                    Said::Answer(Err(error))
                }
            },
            value => return self.take_answers(place, calls, value),
        };
        for place in place {
            self.said[self.which[place]] = Some(said.clone());
        }
    }

    fn take_answers(&mut self, place: Range<usize>, calls: &[&Call], value: Value) {
        let read = match calls {
            [call] => decode::answer(call, value).map(|answer| Some(vec![answer])),
            _ => decode::answers(calls, value),
        };
        let answers = match read {
            Ok(Some(answers)) => answers,
            Ok(None) => return self.send_apart(place),
            Err(garbled) => {
                let detail = format!("{}: {garbled}", Script::for_calls(calls).name);
                let error = StoreError::Fatal(crate::Error::Server { detail });
                return place.for_each(|place| self.said[self.which[place]] = Some(Said::Answer(Err(error.clone()))));
            }
        };
        for (place, answer) in place.zip(answers) {
            let index = self.which[place];
            if answer.verdict == Verdict::Refused {
                self.outdated = true;
                self.again.push(index);
            }
            self.said[index] = Some(Said::Answer(Ok(answer)));
        }
    }

    /// The calls of a parcel come once more, each by itself.
    fn send_apart(&mut self, place: Range<usize>) {
        for index in &self.which[place] {
            self.alone[*index] = true;
            self.again.push(*index);
        }
    }

    /// Makes ready for another pass, if there is anything to send once more. It comes behind calls that stood behind it,
    /// which the engine bears.
    pub(crate) fn next(&mut self) -> bool {
        let teach = match self.teach {
            Teach::Nothing => Teach::EachOnce,
            Teach::EachOnce => Teach::Always,
            Teach::Always => return false,
        };
        if self.again.is_empty() || self.broken.is_some() {
            return false;
        }
        self.teach = teach;
        self.which = std::mem::take(&mut self.again);
        true
    }

    /// The calls seem to come by an old connection, or long after they were sent: what is sent next has to say otherwise.
    pub(crate) fn take_outdated(&mut self) -> bool {
        std::mem::take(&mut self.outdated)
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// What was said to each call. Of those to which nothing was, nobody knows.
    pub(super) fn end(self) -> Vec<Said> {
        let lost = self.broken.unwrap_or_else(|| "no answer".into());
        let or_lost =
            |said: Option<Said>| said.unwrap_or_else(|| Said::Answer(Err(StoreError::Lost { detail: lost.clone() })));
        self.said.into_iter().map(or_lost).collect()
    }
}

/// What a script judges by for all of them has to be the same; see `lua/parcel.lua`.
fn belong_together(one: &Call, other: &Call) -> bool {
    let (a, b) = (&one.header, &other.header);
    let same = (a.epoch, a.version) == (b.epoch, b.version) && Arc::ptr_eq(&a.declaration, &b.declaration);
    let told = a.epoch != 0 && a.version != 0 && !a.declaration.declares;
    same && told && one.limiter == other.limiter && letter(one).is_some() && letter(other).is_some()
}
