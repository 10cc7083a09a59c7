//! One row of a history: a script that was carried out, or something that was done to the server.

use std::sync::Arc;

use ::redis::Value;

use crate::settings::{Change, Declaration};
use crate::store::model::Caller;
use crate::store::redis::test_access as scripts;
use crate::store::{Answer, Call, Header, RestoreKind, Restored, Verb};

/// What the recorder has written down.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry {
    /// The script; or `-flush`, `-delete` (with the key's place as its argument).
    pub script: String,
    pub key: String,
    /// The server's clock, in microseconds.
    pub wall: u64,
    pub args: Vec<String>,
    pub answer: Vec<String>,
    pub writes: Vec<Write>,
}

/// A change that a script made, by the place of its key in KEYS.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Add {
        place: usize,
        member: String,
        score: f64,
    },
    Remove {
        place: usize,
        member: String,
    },
    /// All keys of the limiter.
    Unlink,
    Publish {
        to: String,
        text: String,
    },
}

/// How many arguments are about the caller and the limiter (`store::redis::encode`); the verb's own come behind them.
const HEADER: usize = 3;

/// Places in KEYS.
pub(super) const QUEUE: usize = 2;
pub(super) const HELD: usize = 3;
pub(super) const INSTANCES: usize = 4;

impl Entry {
    /// From the words of a row: kinds and values in turn.
    pub(super) fn of(words: &[String]) -> Entry {
        let mut entry = Entry::default();
        for pair in words.chunks(2) {
            let [kind, value] = pair else { panic!("a kind without its value: {words:?}") };
            match kind.as_str() {
                "script" => entry.script = value.clone(),
                "key" => entry.key = value.clone(),
                "wall" => entry.wall = number(value),
                "a" => entry.args.push(value.clone()),
                "r" => entry.answer.push(value.clone()),
                "w" => entry.writes.push(Write::of(value)),
                _ => panic!("an unknown kind: {words:?}"),
            }
        }
        entry
    }

    pub(super) fn caller(&self) -> Caller {
        Caller {
            instance: self.instance().into(),
            generation: number(self.header(0)),
            run: self.header(1).into(),
            sent: number(&self.args[2][2..]),
        }
    }

    /// A word of the caller's header (`lua/lib/load.lua`).
    fn header(&self, place: usize) -> &str {
        self.args[1].splitn(6, ' ').nth(place).expect("a header of six words")
    }

    /// The caller listens to its channel on this server.
    pub(super) fn listens(&self) -> bool {
        self.header(3) == "1"
    }

    /// What was asked: the inverse of `store::redis::encode`. Nothing, when a parcel was sent back.
    pub(super) fn calls(&self) -> Vec<Call> {
        let header = Header {
            epoch: number(self.header(2)),
            bare: self.args[2].starts_with('1'),
            version: number(self.header(4)),
            declaration: Arc::new(declaration(self.header(5))),
        };
        let call = |verb| Call { limiter: self.key.as_str().into(), header: header.clone(), verb };
        match self.script.as_str() {
            "parcel" if self.answer.len() > 1 && self.answer[0] == "apart" => Vec::new(),
            "parcel" => self.parcel().into_iter().map(call).collect(),
            _ => vec![call(self.verb())],
        }
    }

    /// The verbs of a parcel (`lua/parcel.lua`).
    fn parcel(&self) -> Vec<Verb> {
        let mut args = self.own()[1..].iter();
        let mut next = || args.next().expect("as many tickets as letters");
        let verb = |letter| match letter {
            'r' => Verb::Release([(ticket(next()), number(next()))].into()),
            'c' => Verb::Cancel([ticket(next())].into()),
            'a' | 'b' => {
                Verb::Acquire { no: ticket(next()), cost: 1, may_wait: letter == 'a', order: 0, label: "".into() }
            }
            _ => Verb::Acquire {
                no: ticket(next()),
                cost: number(next()),
                may_wait: letter == 'x',
                order: number(next()),
                label: next().as_str().into(),
            },
        };
        self.own()[0].chars().map(verb).collect()
    }

    /// The answers to its calls; what was told on the way is with the last.
    pub(super) fn answers(&self, calls: &[Call]) -> Vec<Answer> {
        let calls: Vec<&Call> = calls.iter().collect();
        scripts::read_all(&calls, &self.value())
    }

    pub(super) fn instance(&self) -> &str {
        &self.args[0]
    }

    /// The verb's own arguments.
    pub(super) fn own(&self) -> &[String] {
        &self.args[HEADER..]
    }

    /// A sync that asks for a message to itself, and is reminded of what it holds.
    pub(super) fn is_probe(&self) -> bool {
        self.script == "sync" && self.own()[1] == "1"
    }

    /// The answer as it was sent.
    fn value(&self) -> Value {
        let text = |text: &String| Value::BulkString(text.clone().into());
        match &self.answer[..] {
            [brief] => text(brief),
            fields => Value::Array(fields.iter().map(text).collect()),
        }
    }

    fn verb(&self) -> Verb {
        let args = self.own();
        match self.script.as_str() {
            "acquire" => Verb::Acquire {
                no: ticket(&args[0]),
                cost: args.get(1).map_or(1, |cost| number(cost)),
                may_wait: &self.args[2][1..2] == "1",
                order: args.get(2).map_or(0, |order| number(order)),
                label: args.get(3).map_or("", String::as_str).into(),
            },
            "release" => Verb::Release(args.chunks(2).map(|pair| (ticket(&pair[0]), number(&pair[1]))).collect()),
            "cancel" => Verb::Cancel(args.iter().map(|name| ticket(name)).collect()),
            "put_back" => Verb::PutBack { no: ticket(&args[0]), fence: number(&args[1]) },
            "sync" => {
                Verb::Sync { version: number(&args[0]), heads: args[2..].iter().map(|name| ticket(name)).collect() }
            }
            "restore" => Verb::Restore(args.chunks(6).map(restored).collect()),
            "configure" => Verb::Configure(change(args)),
            "revoke" => Verb::Revoke(args[0].clone()),
            "leave" => Verb::Leave,
            "status" => Verb::Status,
            "list" => Verb::List { held: args[0] == "held", offset: number(&args[1]), count: number(&args[2]) },
            "position" => Verb::Position(args.iter().map(|name| ticket(name)).collect()),
            other => panic!("an unknown script: {other}"),
        }
    }
}

impl Write {
    fn of(text: &str) -> Write {
        let words: Vec<&str> = text.splitn(4, ' ').collect();
        let place = || words[1].parse().expect("a place in KEYS");
        match words[0] {
            "ZADD" => {
                Write::Add { place: place(), score: words[2].parse().expect("a score"), member: words[3].to_owned() }
            }
            "ZREM" => Write::Remove { place: place(), member: words[2].to_owned() },
            "UNLINK" => Write::Unlink,
            "PUBLISH" => Write::Publish { to: words[1].to_owned(), text: words[2..].join(" ") },
            _ => panic!("an unknown write: {text}"),
        }
    }
}

pub(super) fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn ticket(name: &str) -> u64 {
    number(name.rsplit_once(':').expect("an instance's ticket").1)
}

fn declaration(text: &str) -> Declaration {
    let parts: Vec<&str> = text[1..].splitn(5, '|').collect();
    Declaration {
        declared: parts[0].into(),
        declared_at: number(parts[1]),
        overrides: parts[2].into(),
        override_at: number(parts[3]),
        declares: text.starts_with('1'),
        description: parts[4].into(),
    }
}

fn restored(words: &[String]) -> Restored {
    let kind = match words[0].as_str() {
        "h" => RestoreKind::Held,
        "l" => RestoreKind::Local,
        "q" => RestoreKind::Waiting,
        "c" => RestoreKind::Check,
        other => panic!("an unknown kind of ticket: {other}"),
    };
    let [order, fence, cost] = [&words[2], &words[3], &words[4]].map(|word| number(word));
    Restored { kind, no: ticket(&words[1]), order, fence, cost, label: words[5].as_str().into() }
}

fn change(words: &[String]) -> Change {
    let mut change = Change { reset: words[0] == "1", ..Change::default() };
    for (value, word) in change.values.iter_mut().zip(&words[1..]) {
        *value = word.parse().ok();
    }
    change
}
