//! What the conformance test and the simulation need of this store: single commands, and what their answers say.

use redis::{Cmd, Value};

use super::encode::{By, Sender};
use super::fault::{self, Fault};
use super::{decode, encode, keys};
use crate::store::model::Caller;
use crate::store::{Answer, Call, Notice, StoreError, Verb};

/// The command that carries out a call, with the script's source.
pub(crate) fn command(call: &Call, caller: &Caller) -> Cmd {
    encode::command(call, &sender(caller, (false, false)), By::Source)
}

fn sender(caller: &Caller, (probe, listens): (bool, bool)) -> Sender<'_> {
    let Caller { instance, generation, run, sent } = caller;
    Sender { instance, generation: *generation, run_id: run, probe, listens, sent: *sent }
}

pub(crate) fn read(verb: &Verb, value: Value) -> Answer {
    decode::answer(verb, value).expect("an answer as the script promises it")
}

/// The command as the link sends it: by the script's name, or by its source; with a probe, and of one who listens.
pub(crate) fn sent(call: &Call, caller: &Caller, by_source: bool, says: (bool, bool)) -> Cmd {
    encode::command(call, &sender(caller, says), if by_source { By::Source } else { By::Sha })
}

/// What the link makes of an answer. `None`: the server does not know the script.
pub(crate) fn judge(verb: &Verb, value: Value) -> Option<Result<Answer, StoreError>> {
    match value {
        Value::ServerError(error) => match fault::of_reply(&error) {
            Fault::NoScript => None,
            Fault::Reconnect(detail) => Some(Err(StoreError::away(detail))),
            Fault::Redirect(to) => unreachable!("one server, which is no cluster's: {to:?}"),
            Fault::Store(error) => Some(Err(error)),
        },
        value => Some(Ok(read(verb, value))),
    }
}

pub(crate) use super::script::{files as script_files, with_other as scripts_with_other};

pub(crate) fn script_name(verb: &Verb) -> &'static str {
    super::script::Script::of(verb).name
}

/// The limiter, its epoch, and what a message tells of it.
pub(crate) fn told(text: &str) -> (String, u64, Vec<Notice>) {
    let message = decode::message(text).expect("a message as dispatch promises it");
    (message.limiter, message.epoch, message.notices)
}

pub(crate) fn message(text: &str) -> Vec<Notice> {
    decode::message(text).expect("a message as dispatch promises it").notices
}

pub(crate) fn keys(limiter: &str) -> [String; 5] {
    keys::keys_of(limiter)
}
