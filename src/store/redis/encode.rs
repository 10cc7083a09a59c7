//! Calls as commands. Each script says in its head what its KEYS and ARGV are.

use std::sync::Arc;

use redis::Cmd;

use super::keys::keys_of;
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
pub(super) enum By {
    Sha,
    /// Loads and runs it in one, where the server does not know it.
    Source,
}

/// The command that carries out a call.
pub(super) fn command(call: &Call, from: &Sender<'_>, by: By) -> Cmd {
    let script = Script::of(&call.verb);
    let mut cmd = match by {
        By::Sha => redis::cmd("EVALSHA"),
        By::Source => redis::cmd("EVAL"),
    };
    cmd.arg(if by == By::Sha { script.sha.as_str() } else { script.source.as_str() });
    let keys = keys_of(&call.limiter);
    cmd.arg(keys.len()).arg(&keys[..]);
    cmd.arg(from.instance.as_bytes()).arg(from.generation).arg(from.run_id);
    cmd.arg(call.header.epoch).arg(about(call, from)).arg(configuration(&call.header.declaration));
    arguments(&mut cmd, &call.verb, from);
    cmd
}

fn about(call: &Call, from: &Sender<'_>) -> String {
    format!("{}{}{}", u8::from(call.header.bare), u8::from(from.listens), from.sent)
}

fn configuration(declaration: &Declaration) -> String {
    let Declaration { declared, declared_at, overrides, override_at, declares, description } = declaration;
    format!("{}{declared}|{declared_at}|{overrides}|{override_at}|{description}", u8::from(*declares))
}

fn arguments(cmd: &mut Cmd, verb: &Verb, from: &Sender<'_>) {
    let name = |no: &TicketNo| format!("{}:{no}", from.instance);
    match verb {
        Verb::Acquire { no, cost, may_wait, order, label } => {
            cmd.arg(name(no)).arg(*cost).arg(u8::from(*may_wait)).arg(*order).arg(label.as_bytes());
        }
        Verb::Release(permits) => {
            for (no, fence) in permits {
                cmd.arg(name(no)).arg(*fence);
            }
        }
        Verb::Cancel(tickets) | Verb::Position(tickets) => {
            for no in tickets {
                cmd.arg(name(no));
            }
        }
        Verb::PutBack { no, fence } => {
            cmd.arg(name(no)).arg(*fence);
        }
        Verb::Sync { version, heads } => {
            cmd.arg(*version).arg(u8::from(from.probe));
            for no in heads {
                cmd.arg(name(no));
            }
        }
        Verb::Restore(tickets) => {
            for Restored { kind, no, order, fence, cost, label } in tickets {
                cmd.arg(kind_word(*kind)).arg(name(no)).arg(*order).arg(*fence).arg(*cost).arg(label.as_bytes());
            }
        }
        Verb::Configure(change) => {
            cmd.arg(u8::from(change.reset));
            for value in change.values {
                cmd.arg(value.map(|v| v.to_string()).unwrap_or_default());
            }
        }
        Verb::Revoke(ticket) => {
            cmd.arg(ticket);
        }
        Verb::List { held, offset, count } => {
            cmd.arg(if *held { "held" } else { "queue" }).arg(*offset).arg(*count);
        }
        Verb::Leave | Verb::Status => {}
    }
}

fn kind_word(kind: RestoreKind) -> &'static str {
    match kind {
        RestoreKind::Held => "h",
        RestoreKind::Local => "l",
        RestoreKind::Waiting => "q",
        RestoreKind::Check => "c",
    }
}
