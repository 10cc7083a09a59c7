//! One write of calls, and the reading of their answers; then, for scripts that the server did not know, another.

use std::time::{Duration, Instant};

use redis::{Connection, Value};

use super::decode;
use super::encode::{By, Sender, command};
use super::fault::{self, Fault};
use super::script::Script;
use crate::store::{Answer, Call, StoreError, Verb, Verdict};

/// What a round came to.
pub(super) struct Outcome {
    /// For each call.
    pub answers: Vec<Result<Answer, StoreError>>,
    /// What ended the connection, if anything did.
    pub broken: Option<String>,
    /// This is not the server to talk to.
    pub elsewhere: bool,
    /// The answers did not come within the socket's time.
    pub timed_out: bool,
}

/// Which calls of a pass carry the source of their script.
#[derive(Clone, Copy)]
enum Teach {
    Nothing,
    EachOnce,
    Always,
}

/// Sends calls and reads their answers.
pub(super) struct Round<'a> {
    connection: &'a mut Connection,
    /// The whole reading may take so long.
    patience: Duration,
    calls: &'a [&'a Call],
    from: &'a Sender<'a>,
    answers: Vec<Option<Result<Answer, StoreError>>>,
    broken: Option<String>,
    elsewhere: bool,
    timed_out: bool,
}

impl<'a> Round<'a> {
    pub(super) fn new(
        connection: &'a mut Connection,
        patience: Duration,
        calls: &'a [&'a Call],
        from: &'a Sender<'a>,
    ) -> Self {
        let answers = vec![None; calls.len()];
        Round { connection, patience, calls, from, answers, broken: None, elsewhere: false, timed_out: false }
    }

    pub(super) fn run(mut self) -> Outcome {
        let all: Vec<usize> = (0..self.calls.len()).collect();
        // Each script once by source teaches the server; should it forget again between two breaths, every call does.
        let mut left = self.pass(&all, Teach::Nothing);
        for teach in [Teach::EachOnce, Teach::Always] {
            if !left.is_empty() && self.broken.is_none() {
                left = self.pass(&left, teach);
            }
        }
        let lost = self.broken.clone().unwrap_or_else(|| "no answer".into());
        let or_lost = |answer: Option<_>| answer.unwrap_or_else(|| Err(StoreError::Lost { detail: lost.clone() }));
        let answers = self.answers.into_iter().map(or_lost).collect();
        Outcome { answers, broken: self.broken, elsewhere: self.elsewhere, timed_out: self.timed_out }
    }

    /// Returns the calls that have to be sent by source: what the server did not know, and behind it whatever undoes
    /// an earlier call, so that a cancel stays behind its enqueue.
    fn pass(&mut self, which: &[usize], teach: Teach) -> Vec<usize> {
        let bytes = self.packed(which, teach);
        let started = Instant::now();
        if let Err(error) = self.connection.send_packed_command(&bytes) {
            self.broken = Some(error.to_string());
            return Vec::new();
        }
        let mut unknown = Vec::new();
        for index in which {
            if started.elapsed() > self.patience {
                self.broken = Some("the server is too slow".into());
                break;
            }
            match self.connection.recv_response() {
                Ok(value) => self.take(*index, value, &mut unknown),
                Err(error) => {
                    self.timed_out = error.is_timeout();
                    self.broken = Some(error.to_string());
                    break;
                }
            }
        }
        unknown
    }

    fn packed(&self, which: &[usize], teach: Teach) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(which.len() * 256);
        let mut loaded: Vec<&str> = Vec::new();
        for index in which {
            let call = self.calls[*index];
            let name = Script::of(&call.verb).name;
            let by = match teach {
                Teach::Nothing => By::Sha,
                Teach::EachOnce if loaded.contains(&name) => By::Sha,
                Teach::EachOnce | Teach::Always => By::Source,
            };
            loaded.push(name);
            command(call, self.from, by).write_packed_command(&mut bytes);
        }
        bytes
    }

    fn take(&mut self, index: usize, value: Value, unknown: &mut Vec<usize>) {
        let verb = &self.calls[index].verb;
        if !unknown.is_empty() && matches!(verb, Verb::Cancel(_) | Verb::Leave) {
            unknown.push(index);
        }
        let answer = match value {
            Value::ServerError(error) => match fault::of_reply(&error) {
                Fault::NoScript => {
                    if unknown.last() != Some(&index) {
                        unknown.push(index);
                    }
                    return;
                }
                Fault::Reconnect(detail) => {
                    self.elsewhere = true;
                    self.broken.get_or_insert(detail.clone());
                    Err(StoreError::Away { detail })
                }
                Fault::Store(error) => Err(error),
            },
            value => decode::answer(verb, value).map_err(|garbled| {
                let detail = format!("{}: {garbled}", Script::of(verb).name);
                StoreError::Fatal(crate::Error::Server { detail })
            }),
        };
        // The `restore` it should have come after may be among those that are sent again; it has done nothing.
        if !unknown.is_empty() && answer.as_ref().is_ok_and(|answer| answer.verdict == Verdict::Resync) {
            unknown.push(index);
            return;
        }
        self.answers[index] = Some(answer);
    }
}
