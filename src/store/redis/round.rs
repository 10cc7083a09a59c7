//! One write of calls, and the reading of their answers; then, for what was not carried out for a reason that can be
//! mended at once, another: scripts that the server did not know, and calls that seemed to come by an old connection.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use redis::Value;

use super::decode;
use super::encode::{By, Sender, command};
use super::fault::{self, Fault, Redirect};
use super::line::Open;
use super::router::Router;
use super::script::Script;
use super::server_time::ServerTime;
use crate::store::{Answer, Call, StoreError, Verb, Verdict};

/// The time that a command is allowed for each that stands before it in the same write, in microseconds.
const EACH: u64 = 1000;

/// What a round came to.
pub(super) struct Outcome {
    /// For each call.
    pub said: Vec<Said>,
    /// What ended the connection, if anything did.
    pub broken: Option<String>,
    /// This is not the server to talk to.
    pub elsewhere: bool,
    /// The cluster has not agreed yet on who has what.
    pub unsettled: bool,
    /// The answers did not come within the socket's time.
    pub timed_out: bool,
}

/// What a server says to a call.
#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly all are answers, and these are moved on at once")]
pub(super) enum Said {
    Answer(Result<Answer, StoreError>),
    /// To ask another one.
    Elsewhere(Redirect),
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
    open: &'a mut Open,
    router: &'a Router,
    probe: bool,
    /// Each with whether `ASKING` has to go before it.
    calls: &'a [(&'a Call, bool)],
    said: Vec<Option<Said>>,
    broken: Option<String>,
    elsewhere: bool,
    unsettled: bool,
    timed_out: bool,
    /// A limiter has heard of a younger connection of ours: that of another node, from which it has moved here.
    outdated: bool,
}

impl<'a> Round<'a> {
    pub(super) fn new(open: &'a mut Open, router: &'a Router, calls: &'a [(&'a Call, bool)]) -> Self {
        Round {
            open,
            router,
            probe: false,
            calls,
            said: vec![None; calls.len()],
            broken: None,
            elsewhere: false,
            unsettled: false,
            timed_out: false,
            outdated: false,
        }
    }

    /// A sync among the calls is to publish a probe.
    pub(super) fn publishing(mut self, probe: bool) -> Self {
        self.probe = probe;
        self
    }

    /// The whole reading may take as long as `patience`.
    pub(super) fn run(mut self, patience: Duration) -> Outcome {
        if self.open.time.is_old() {
            self.look_at_the_clock();
        }
        let all: Vec<usize> = (0..self.calls.len()).collect();
        // Each script once by source teaches the server; should it forget again between two breaths, every call does.
        let mut left = self.pass(&all, Teach::Nothing, patience);
        for teach in [Teach::EachOnce, Teach::Always] {
            if std::mem::take(&mut self.outdated) {
                // This connection is not older, it only has an older number; or its calls seem to be, by a clock that was set.
                self.look_at_the_clock();
                self.open.generation = self.router.generations.fetch_add(1, Ordering::Relaxed) + 1;
            }
            left = self.pass(&left, teach, patience);
        }
        let lost = self.broken.clone().unwrap_or_else(|| "no answer".into());
        let or_lost =
            |said: Option<Said>| said.unwrap_or_else(|| Said::Answer(Err(StoreError::Lost { detail: lost.clone() })));
        Outcome {
            said: self.said.into_iter().map(or_lost).collect(),
            broken: self.broken,
            elsewhere: self.elsewhere,
            unsettled: self.unsettled,
            timed_out: self.timed_out,
        }
    }

    fn look_at_the_clock(&mut self) {
        if self.broken.is_some() {
            return;
        }
        match ServerTime::ask(&mut self.open.connection) {
            Ok(time) => self.open.time = time,
            Err(error) => {
                self.timed_out = error.is_timeout();
                self.broken = Some(error.to_string());
            }
        }
    }

    /// Returns the calls that have to be sent again. They come behind calls that stood behind them, which the engine bears.
    fn pass(&mut self, which: &[usize], teach: Teach, patience: Duration) -> Vec<usize> {
        if which.is_empty() || self.broken.is_some() {
            return Vec::new();
        }
        let bytes = self.packed(which, teach);
        let started = Instant::now();
        if let Err(error) = self.open.connection.send_packed_command(&bytes) {
            self.broken = Some(error.to_string());
            return Vec::new();
        }
        let mut again = Vec::new();
        for index in which {
            if started.elapsed() > patience {
                self.broken = Some("the server is too slow".into());
                break;
            }
            match self.receive(*index) {
                Ok(value) => self.take(*index, value, &mut again),
                Err(error) => {
                    self.timed_out = error.is_timeout();
                    self.broken = Some(error.to_string());
                    break;
                }
            }
        }
        again
    }

    fn receive(&mut self, index: usize) -> redis::RedisResult<Value> {
        if self.calls[index].1 {
            self.open.connection.recv_response()?; // to ASKING
        }
        self.open.connection.recv_response()
    }

    fn packed(&self, which: &[usize], teach: Teach) -> Vec<u8> {
        let Open { run_id, generation, time, .. } = &*self.open;
        let (instance, probe, listens) = (&self.router.instance, self.probe, self.router.probe.listens_on(run_id));
        let mut from = Sender { instance, generation: *generation, run_id, probe, listens, sent: time.now() };
        let mut bytes = Vec::with_capacity(which.len() * 256);
        let mut loaded: Vec<&str> = Vec::new();
        for index in which {
            let (call, asking) = self.calls[*index];
            let name = Script::of(&call.verb).name;
            let by = match teach {
                Teach::Nothing => By::Sha,
                Teach::EachOnce if loaded.contains(&name) => By::Sha,
                Teach::EachOnce | Teach::Always => By::Source,
            };
            loaded.push(name);
            if asking {
                redis::cmd("ASKING").write_packed_command(&mut bytes);
            }
            command(call, &from, by).write_packed_command(&mut bytes);
            from.sent += EACH; // what stands before it has to be carried out first
        }
        bytes
    }

    fn take(&mut self, index: usize, value: Value, again: &mut Vec<usize>) {
        let verb = &self.calls[index].0.verb;
        let said = match value {
            Value::ServerError(error) => match fault::of_reply(&error) {
                Fault::NoScript => return again.push(index),
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
            value => Said::Answer(read(verb, value)),
        };
        if matches!(&said, Said::Answer(Ok(answer)) if answer.verdict == Verdict::Refused) {
            self.outdated = true;
            again.push(index);
        }
        self.said[index] = Some(said);
    }
}

fn read(verb: &Verb, value: Value) -> Result<Answer, StoreError> {
    decode::answer(verb, value).map_err(|garbled| {
        let detail = format!("{}: {garbled}", Script::of(verb).name);
        StoreError::Fatal(crate::Error::Server { detail })
    })
}
