//! What the conformance test and the simulation need of this store: single commands, and what their answers say.

use redis::{Cmd, Value};

use super::encode::{By, Sender};
use super::{decode, encode, keys};
use crate::store::model::Caller;
use crate::store::{Answer, Call, Notice, Verb};

/// The command that carries out a call, with the script's source.
pub(crate) fn command(call: &Call, caller: &Caller) -> Cmd {
    encode::command(call, &sender(caller, false), By::Source)
}

fn sender(caller: &Caller, probe: bool) -> Sender<'_> {
    Sender { instance: &caller.instance, generation: caller.generation, run_id: &caller.run, probe }
}

pub(crate) fn read(verb: &Verb, value: Value) -> Answer {
    decode::answer(verb, value).expect("an answer as the script promises it")
}

pub(crate) fn message(text: &str) -> Vec<Notice> {
    decode::message(text).expect("a message as dispatch promises it").notices
}

pub(crate) fn keys(limiter: &str) -> [String; 5] {
    keys::keys_of(limiter)
}
