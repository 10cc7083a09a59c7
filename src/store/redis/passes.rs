//! What has become of a round's calls, and which of them are sent once more. Without I/O, so that the simulation goes
//! through the same.

use redis::Value;

use super::decode;
use super::encode::By;
use super::fault::{self, Fault, Redirect};
use super::script::Script;
use crate::store::{Answer, Call, StoreError, Verb, Verdict};

/// What a server says to a call.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly all are answers, and these are moved on at once")]
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

/// The calls of a round, by their numbers, in passes.
pub(crate) struct Passes {
    said: Vec<Option<Said>>,
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
            which: (0..calls).collect(),
            again: Vec::new(),
            teach: Teach::Nothing,
            broken: None,
            elsewhere: false,
            unsettled: false,
            outdated: false,
        }
    }

    /// The calls of this pass, and how each names its script.
    pub(crate) fn calls<'a>(&self, verb: impl Fn(usize) -> &'a Verb) -> Vec<(usize, By)> {
        let mut loaded: Vec<&str> = Vec::new();
        let named = self.which.iter().map(|index| {
            let name = Script::of(verb(*index)).name;
            let by = match self.teach {
                Teach::Nothing => By::Sha,
                Teach::EachOnce if loaded.contains(&name) => By::Sha,
                Teach::EachOnce | Teach::Always => By::Source,
            };
            loaded.push(name);
            (*index, by)
        });
        named.collect()
    }

    /// The answer to a call of this pass.
    pub(crate) fn take(&mut self, index: usize, call: &Call, value: Value) {
        let said = match value {
            Value::ServerError(error) => match fault::of_reply(&error) {
                Fault::NoScript => return self.again.push(index),
                Fault::Redirect(redirect) => Said::Elsewhere(redirect),
                Fault::Reconnect(detail) => {
                    self.elsewhere = true;
                    self.broken.get_or_insert(detail.clone());
                    Said::Answer(Err(StoreError::away(detail)))
                }
                Fault::Store(error) => {
                    self.unsettled |= error.to_string().contains("CLUSTERDOWN");
                    Said::Answer(Err(error))
                }
            },
            value => Said::Answer(read(call, value)),
        };
        if matches!(&said, Said::Answer(Ok(answer)) if answer.verdict == Verdict::Refused) {
            self.outdated = true;
            self.again.push(index);
        }
        self.said[index] = Some(said);
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

fn read(call: &Call, value: Value) -> Result<Answer, StoreError> {
    decode::answer(call, value).map_err(|garbled| {
        let detail = format!("{}: {garbled}", Script::of(&call.verb).name);
        StoreError::Fatal(crate::Error::Server { detail })
    })
}
