//! Calls as commands. Each script says in its head what its KEYS and ARGV are.
//!
//! A command is written straight into the buffer that is sent: nothing is allocated for it, since there are two for each
//! request.

use std::sync::Arc;

use super::keys::{PARTS, hash_tag};
use super::script::Script;
use crate::settings::Declaration;
use crate::store::{Call, RestoreKind, Restored, TicketNo, Verb};

/// What a command says of its connection.
pub(super) struct Sender<'a> {
    pub instance: &'a Arc<str>,
    pub generation: u64,
    pub run_id: &'a str,
    /// A sync on this connection is to publish a probe to the instance's own channel.
    pub probe: bool,
    /// The instance is subscribed to its channel on the same server.
    pub listens: bool,
    /// The server's time, in microseconds.
    pub sent: u64,
}

/// How a script is named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Sha,
    /// Loads and runs it in one, where the server does not know it.
    Source,
}

/// Takes the arguments of a command, each as the parts it is made of.
pub(super) trait Sink {
    fn arg(&mut self, parts: &[&str]);

    fn number(&mut self, number: u64) {
        self.arg(&[itoa::Buffer::new().format(number)]);
    }
}

/// How many there are: the protocol wants to know first.
struct Count(usize);

impl Sink for Count {
    fn arg(&mut self, _: &[&str]) {
        self.0 += 1;
    }

    fn number(&mut self, _: u64) {
        self.0 += 1;
    }
}

/// The bytes for the server.
struct Packed<'a>(&'a mut Vec<u8>);

impl Packed<'_> {
    fn head(&mut self, kind: u8, number: usize) {
        self.0.push(kind);
        self.0.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.0.extend_from_slice(b"\r\n");
    }
}

impl Sink for Packed<'_> {
    fn arg(&mut self, parts: &[&str]) {
        self.head(b'$', parts.iter().map(|part| part.len()).sum());
        for part in parts {
            self.0.extend_from_slice(part.as_bytes());
        }
        self.0.extend_from_slice(b"\r\n");
    }
}

/// Appends the command that carries out a call, or a parcel of them.
pub(super) fn pack(calls: &[&Call], from: &Sender<'_>, by: By, to: &mut Vec<u8>) {
    let mut count = Count(0);
    command(calls, from, by, &mut count);
    let mut packed = Packed(to);
    packed.head(b'*', count.0);
    command(calls, from, by, &mut packed);
}

/// The command that carries out a call, or a parcel of them.
pub(super) fn command(calls: &[&Call], from: &Sender<'_>, by: By, to: &mut impl Sink) {
    let [call, more @ ..] = calls else { return };
    let script = Script::for_calls(calls);
    match by {
        By::Sha => [&["EVALSHA"], &[script.sha.as_str()]].map(|word| to.arg(word)),
        By::Source => [&["EVAL"], &[script.source.as_str()]].map(|word| to.arg(word)),
    };
    let tag = hash_tag(&call.limiter);
    to.number(PARTS.len() as u64);
    for part in PARTS {
        to.arg(&["fq:{", &tag, "}", part]);
    }
    to.arg(&[from.instance]);
    header(call, from, to);
    let may_wait = matches!(call.verb, Verb::Acquire { may_wait: true, .. });
    to.arg(&[digit(call.header.bare), digit(may_wait), itoa::Buffer::new().format(from.sent)]);
    if more.is_empty() {
        return arguments(&call.verb, from, to);
    }
    let letters: Vec<&str> = calls.iter().filter_map(|call| letter(call)).map(|(letter, _)| letter).collect();
    to.arg(&letters);
    calls.iter().for_each(|call| arguments(&call.verb, from, to));
}

/// What a call is in a parcel, and of which ticket. `None`: it has to come by itself.
pub(super) fn letter(call: &Call) -> Option<(&'static str, TicketNo)> {
    match &call.verb {
        Verb::Acquire { no, may_wait, .. } => {
            let letter = match (is_plain(&call.verb), *may_wait) {
                (true, true) => "a",
                (true, false) => "b",
                (false, true) => "x",
                (false, false) => "y",
            };
            Some((letter, *no))
        }
        Verb::Release(permits) => (permits.len() == 1).then(|| ("r", permits[0].0)),
        Verb::Cancel(tickets) => (tickets.len() == 1).then(|| ("c", tickets[0])),
        _ => None,
    }
}

/// Of an acquire: there is nothing to say but its ticket.
fn is_plain(verb: &Verb) -> bool {
    matches!(verb, Verb::Acquire { cost: 1, order: 0, label, .. } if label.is_empty())
}

fn digit(yes: bool) -> &'static str {
    if yes { "1" } else { "0" }
}

/// What is the same in one call after the other, in one argument: a script that has read it once only compares it.
fn header(call: &Call, from: &Sender<'_>, to: &mut impl Sink) {
    let mut digits = [itoa::Buffer::new(); 5];
    let Declaration { declared, declared_at, overrides, override_at, declares, description } =
        &*call.header.declaration;
    let numbers = [from.generation, call.header.epoch, call.header.version, *declared_at, *override_at];
    let mut written = digits.iter_mut().zip(numbers).map(|(buffer, number)| buffer.format(number) as &str);
    let mut next = || written.next().unwrap_or_default();
    let (generation, epoch, version, declared_at, override_at) = (next(), next(), next(), next(), next());
    to.arg(&[
        generation,
        " ",
        from.run_id,
        " ",
        epoch,
        " ",
        digit(from.listens),
        " ",
        version,
        " ",
        digit(*declares),
        declared,
        "|",
        declared_at,
        "|",
        overrides,
        "|",
        override_at,
        "|",
        description,
    ]);
}

fn arguments(verb: &Verb, from: &Sender<'_>, to: &mut impl Sink) {
    match verb {
        Verb::Acquire { no, cost, order, label, .. } => {
            name(*no, from, to);
            if !is_plain(verb) {
                to.number(*cost);
                to.number(*order);
                to.arg(&[&**label]);
            }
        }
        Verb::Release(permits) => {
            for (no, fence) in permits {
                name(*no, from, to);
                to.number(*fence);
            }
        }
        Verb::Cancel(tickets) | Verb::Position(tickets) => tickets.iter().for_each(|no| name(*no, from, to)),
        Verb::PutBack { no, fence } => {
            name(*no, from, to);
            to.number(*fence);
        }
        Verb::Sync { version, heads } => {
            to.number(*version);
            to.number(u64::from(from.probe));
            heads.iter().for_each(|no| name(*no, from, to));
        }
        Verb::Restore(tickets) => {
            for Restored { kind, no, order, fence, cost, label } in tickets {
                to.arg(&[kind_word(*kind)]);
                name(*no, from, to);
                [order, fence, cost].into_iter().for_each(|number| to.number(*number));
                to.arg(&[&**label]);
            }
        }
        Verb::Configure(change) => {
            to.number(u64::from(change.reset));
            for value in change.values {
                match value {
                    Some(value) => to.number(value),
                    None => to.arg(&[]),
                }
            }
        }
        Verb::Revoke(ticket) => to.arg(&[ticket]),
        Verb::List { held, offset, count } => {
            to.arg(&[if *held { "held" } else { "queue" }]);
            to.number(*offset);
            to.number(*count);
        }
        Verb::Leave | Verb::Status => {}
    }
}

fn name(no: TicketNo, from: &Sender<'_>, to: &mut impl Sink) {
    to.arg(&[from.instance, ":", itoa::Buffer::new().format(no)]);
}

fn kind_word(kind: RestoreKind) -> &'static str {
    match kind {
        RestoreKind::Held => "h",
        RestoreKind::Local => "l",
        RestoreKind::Waiting => "q",
        RestoreKind::Check => "c",
    }
}
