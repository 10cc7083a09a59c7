//! What the conformance test needs of this store: single scripts on a connection of its own.

use redis::{Connection, Value};

use super::encode::{By, Sender, command};
use super::{decode, keys};
use crate::store::model::Caller;
use crate::store::{Answer, Call, Notice, Verb};

pub(crate) fn run(connection: &mut Connection, call: &Call, caller: &Caller) -> Value {
    let (probe, listens) = (false, false);
    let from =
        Sender { instance: &caller.instance, generation: caller.generation, run_id: &caller.run, probe, listens };
    connection.send_packed_command(&command(call, &from, By::Source).get_packed_command()).expect("a live connection");
    connection.recv_response().expect("an answer")
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
