//! What the conformance test and the simulation need of this store: single commands, and what their answers say.

use redis::{Cmd, Value};

pub(crate) use super::encode::By;
use super::encode::{Sender, Sink};
use super::passes::Said;
use super::{decode, encode, keys};
use crate::store::model::Caller;
use crate::store::{Answer, Call, Notice, StoreError};

/// The command that carries out a call, with the script's source.
pub(crate) fn command(call: &Call, caller: &Caller) -> Cmd {
    words(&[call], &sender(caller, (false, false)), By::Source)
}

fn words(calls: &[&Call], from: &Sender<'_>, by: By) -> Cmd {
    let mut cmd = Cmd::new();
    encode::command(calls, from, by, &mut cmd);
    cmd
}

impl Sink for Cmd {
    fn arg(&mut self, parts: &[&str]) {
        Cmd::arg(self, parts.concat());
    }
}

/// The same of one who listens to its channel on this server.
pub(crate) fn command_of_listener(call: &Call, caller: &Caller) -> Cmd {
    words(&[call], &sender(caller, (false, true)), By::Source)
}

/// The same of one who asks for a message to itself.
pub(crate) fn probing_command(call: &Call, caller: &Caller) -> Cmd {
    words(&[call], &sender(caller, (true, true)), By::Source)
}

fn sender(caller: &Caller, (probe, listens): (bool, bool)) -> Sender<'_> {
    let Caller { instance, generation, run, sent } = caller;
    Sender { instance, generation: *generation, run_id: run, probe, listens, sent: *sent }
}

pub(crate) fn read(call: &Call, value: Value) -> Answer {
    decode::answer(call, value).expect("an answer as the script promises it")
}

/// The answers to a parcel, which was not sent back.
pub(crate) fn read_all(calls: &[&Call], value: &Value) -> Vec<Answer> {
    match calls {
        [] => Vec::new(),
        [call] => vec![read(call, value.clone())],
        _ => read_parcel(calls, value).expect("it was not sent back"),
    }
}

/// `None`: it was sent back.
pub(crate) fn read_parcel(calls: &[&Call], value: &Value) -> Option<Vec<Answer>> {
    if let Value::ServerError(error) = value {
        panic!("{calls:?}: {} {:?}", error.code(), error.details());
    }
    decode::answers(calls, value.clone()).expect("answers as the script promises them")
}

/// The command as the link sends it; with a probe, and of one who listens.
pub(crate) fn sent(calls: &[&Call], caller: &Caller, by: By, says: (bool, bool)) -> Cmd {
    words(calls, &sender(caller, says), by)
}

/// What was said to each call of a round, by a server that is no cluster's.
pub(crate) fn answers(passes: Passes) -> Vec<Result<Answer, StoreError>> {
    let answer = |said| match said {
        Said::Answer(answer) => answer,
        Said::Elsewhere(to) => unreachable!("one server, which is no cluster's: {to:?}"),
    };
    passes.end().into_iter().map(answer).collect()
}

pub(crate) use super::passes::{Parcel, Passes};
pub(crate) use super::script::{files as script_files, with_other as scripts_with_other};

/// The limiter, its epoch, and what a message tells of it.
pub(crate) fn told(text: &str) -> (String, u64, Vec<Notice>) {
    let message = decode::message(text).expect("a message as dispatch promises it");
    (message.limiter, message.epoch, message.notices)
}

pub(crate) fn message(text: &str) -> Vec<Notice> {
    decode::message(text).expect("a message as dispatch promises it").notices
}

pub(crate) fn keys(limiter: &str) -> [String; 4] {
    keys::keys_of(limiter)
}
