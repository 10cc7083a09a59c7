//! What the conformance test and the simulation need of this store: single commands, and what their answers say.

use redis::{Cmd, Value};

use super::encode::{By, Sender};
use super::passes::Said;
use super::{decode, encode, keys};
use crate::store::model::Caller;
use crate::store::{Answer, Call, Notice, StoreError, Verb};

/// The command that carries out a call, with the script's source.
pub(crate) fn command(call: &Call, caller: &Caller) -> Cmd {
    encode::command(call, &sender(caller, false), By::Source)
}

/// The same of one who listens to its channel on this server.
pub(crate) fn command_of_listener(call: &Call, caller: &Caller) -> Cmd {
    encode::command(call, &Sender { listens: true, ..sender(caller, false) }, By::Source)
}

/// The same of one who asks for a message to itself.
pub(crate) fn probing_command(call: &Call, caller: &Caller) -> Cmd {
    encode::command(call, &Sender { listens: true, ..sender(caller, true) }, By::Source)
}

fn sender(caller: &Caller, probe: bool) -> Sender<'_> {
    Sender { instance: &caller.instance, generation: caller.generation, run_id: &caller.run, probe, listens: false }
}

pub(crate) fn read(verb: &Verb, value: Value) -> Answer {
    decode::answer(verb, value).expect("an answer as the script promises it")
}

/// The command as the link sends it.
pub(crate) fn sent(call: &Call, caller: &Caller, by: By, probe: bool) -> Cmd {
    encode::command(call, &sender(caller, probe), by)
}

/// What was said to each call of a round, by a server that is no cluster's.
pub(crate) fn answers(passes: Passes) -> Vec<Result<Answer, StoreError>> {
    let answer = |said| match said {
        Said::Answer(answer) => answer,
        Said::Elsewhere(to) => unreachable!("one server, which is no cluster's: {to:?}"),
    };
    passes.end().into_iter().map(answer).collect()
}

pub(crate) use super::passes::Passes;
pub(crate) use super::script::{files as script_files, with_other as scripts_with_other};

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
