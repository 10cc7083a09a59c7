//! What is compared: answers and state, without what is a matter of time.

use std::collections::HashMap;

use redis::Value;

use super::plan::Memory;
use super::wire::{Sockets, Wire};
use super::*;
use crate::store::redis::test_access as scripts;

fn is_oom(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.code() == "OOM")
}

/// Takes out of an answer what is a matter of time.
pub(super) fn timeless(mut answer: Answer) -> (Verdict, Vec<Notice>) {
    let hide = |notice: &Notice| match notice {
        Notice::Granted { no, .. } => Notice::Granted { no: *no, fence: 0, order: 0 },
        other => *other,
    };
    answer.notices = answer.notices.iter().map(hide).collect();
    answer.notices.sort_by_key(|notice| format!("{notice:?}")); // the order says nothing
    match &mut answer.verdict {
        Verdict::Granted { fence, order } => (*fence, *order) = (0, 0),
        Verdict::Queued { order, estimate, .. } => (*order, *estimate) = (0, None),
        Verdict::Full { retry_after, .. } => *retry_after = None,
        Verdict::Synced(synced) => {
            synced.next = synced.next.map(|_| Duration::ZERO);
            synced.config.iter_mut().for_each(|config| hide_stamps(config));
            synced.heads.iter_mut().for_each(hide_standing);
        }
        Verdict::Restored(standings) => standings.iter_mut().for_each(hide_standing),
        Verdict::Status(view) => {
            hide_stamps(&mut view.config);
            (view.grace, view.typical_hold) = (Duration::ZERO, None);
            let at_once = view.used < view.config.values[0] && view.waiting == 0;
            view.estimate = view.estimate.filter(|_| at_once); // else it is made of measured times
        }
        Verdict::List { rows, now } => {
            *now = 0;
            rows.iter_mut().for_each(|row| (row.order, row.fence) = (0, row.fence.min(1)));
        }
        Verdict::Positions(positions) => positions.iter_mut().for_each(|p| p.1 = None),
        _ => {}
    }
    (answer.verdict, answer.notices)
}

pub(super) fn hide_stamps(config: &mut ConfigView) {
    (config.declared_at, config.override_at) = (0, 0);
}

pub(super) fn hide_standing(standing: &mut Standing) {
    if let Standing::Held { fence, order } = standing {
        (*fence, *order) = (0, 0);
    }
}

/// The limiter's state in terms that do not depend on time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// In line order, with cost and label.
    pub queue: Vec<(String, u64, String)>,
    /// By fence.
    pub held: Vec<(String, u64, String)>,
    /// With their generation.
    pub instances: Vec<(String, u64)>,
    pub used: u64,
    pub granted: u64,
    pub revokes: u64,
    pub limit: u64,
    pub paused: bool,
    pub declared: String,
    pub in_grace: bool,
    pub sweeping: bool,
}

/// Where the packed state has what (`lua/lib/finish.lua`).
pub(super) mod field {
    pub const NOW: usize = 0;
    pub const USED: usize = 3;
    pub const LIMIT: usize = 13;
    pub const PAUSED: usize = 17;
    pub const GRACE: usize = 19;
    pub const DUE: usize = 6;
    pub const SWEEPING: usize = 23;
    pub const REVOKES: usize = 26;
    pub const GRANTED: usize = 8;
}

pub(super) struct Redis {
    pub wire: Box<dyn Wire>,
    pub memory: Memory,
    /// Memory is full whenever a verb is called that has to bear it.
    pub is_full: bool,
    limiter: String,
}

/// How a limiter stands on a real server.
pub(crate) fn state_of(server: &Server, limiter: &str) -> Option<State> {
    let wire = Box::new(Sockets { connection: server.conn(), subscriber: server.conn() });
    Redis { limiter: limiter.to_owned(), ..Redis::new(wire) }.state()
}

impl Redis {
    pub(super) fn new(wire: Box<dyn Wire>) -> Self {
        Redis { wire, memory: Memory::default(), is_full: false, limiter: LIMITER.to_owned() }
    }

    pub(super) fn call(&mut self, caller: &Caller, call: &Call) -> Answer {
        let command = scripts::command(call, caller);
        let mut value = match self.is_full {
            true => self.ask_when_full(&command),
            false => self.wire.ask(&command),
        };
        if self.is_full && matches!(call.verb, Verb::Acquire { .. }) && is_oom(&value) {
            value = self.wire.ask(&command); // there is room again
        }
        match value {
            Value::ServerError(error) => panic!("{call:?}: {} {:?}", error.code(), error.details()),
            value => scripts::read(call, value),
        }
    }

    /// `None`: they have to come one by one, and nothing was done.
    pub(super) fn parcel(&mut self, caller: &Caller, calls: &[Call]) -> Option<Vec<Answer>> {
        let calls: Vec<&Call> = calls.iter().collect();
        scripts::read_parcel(
            &calls,
            &self.wire.ask(&scripts::sent(&calls, caller, scripts::By::Source, (false, false))),
        )
    }

    pub(super) fn is_refused(&mut self, caller: &Caller, call: &Call) -> bool {
        is_oom(&self.ask_when_full(&scripts::command(call, caller)))
    }

    /// A script that finds no memory has changed nothing, since nothing would undo it.
    fn ask_when_full(&mut self, command: &redis::Cmd) -> Value {
        let before = self.wire.data();
        self.wire.set_full(true);
        let value = self.wire.ask(command);
        self.wire.set_full(false);
        assert!(!is_oom(&value) || self.wire.data() == before, "half of it was done");
        value
    }

    pub(super) fn keys(&self) -> [String; 4] {
        scripts::keys(&self.limiter)
    }

    pub(super) fn state(&mut self) -> Option<State> {
        let [hash, queue, held, instances] = self.keys();
        let fields: HashMap<String, Vec<u8>> = self.ask(redis::cmd("HGETALL").arg(&hash));
        let packed = fields.get("state")?;
        let numbers: Vec<f64> =
            packed.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().expect("whole numbers"))).collect();
        let at = |index: usize| numbers[index] as u64;
        let config: String = self.ask(redis::cmd("HGET").arg(&hash).arg("config"));
        let mut range = |key: &String| -> Vec<(String, f64)> {
            let all: Vec<(String, f64)> = self.ask(redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES"));
            all.into_iter().filter(|(member, _)| member != ".").collect()
        };
        let row = |(ticket, _): (String, f64)| {
            let record = String::from_utf8_lossy(&fields[&ticket]).into_owned();
            let mut words = record.splitn(3, ' ').skip(1);
            let cost = words.next().map_or(1, |cost| cost.parse().unwrap());
            (ticket, cost, words.next().unwrap_or("").to_owned())
        };
        let generation = |name: &str| {
            let header = fields.get(&format!("i:{name}")).map(|record| String::from_utf8_lossy(&record[24..]));
            header.map_or(0, |header| header.split(' ').next().unwrap_or_default().parse().unwrap())
        };
        let mut known: Vec<(String, u64)> =
            range(&instances).into_iter().map(|(name, _)| (name.clone(), generation(&name))).collect();
        known.sort();
        let named = fields.keys().filter_map(|field| field.strip_prefix("i:").or(field.strip_prefix("d:")));
        let gone: Vec<&str> = named.filter(|name| !known.iter().any(|(of, _)| of == name)).collect();
        assert!(gone.is_empty(), "fields are left of {gone:?}");
        let tickets = fields.keys().filter(|field| INSTANCES.iter().any(|name| field.starts_with(&format!("{name}:"))));
        assert_eq!(tickets.count(), range(&queue).len() + range(&held).len(), "tickets are left: {:?}", fields.keys());
        Some(State {
            queue: range(&queue).into_iter().map(row).collect(),
            held: range(&held).into_iter().map(row).collect(),
            instances: known,
            used: at(field::USED),
            granted: at(field::GRANTED),
            revokes: at(field::REVOKES),
            limit: at(field::LIMIT),
            paused: at(field::PAUSED) == 1,
            declared: config.split('|').next().unwrap_or_default().to_owned(),
            in_grace: at(field::GRACE) > at(field::NOW),
            sweeping: at(field::SWEEPING) > 0,
        })
    }

    /// Until when each instance counts as alive, and when one was last forgotten.
    pub(super) fn lives(&mut self) -> (Vec<(String, u64)>, u64) {
        let [hash, .., instances] = self.keys();
        let mut all: Vec<(String, f64)> =
            self.ask(redis::cmd("ZRANGE").arg(&instances).arg(0).arg(-1).arg("WITHSCORES"));
        all.retain(|(name, _)| name != ".");
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let forgot: Option<u64> = self.ask(redis::cmd("HGET").arg(&hash).arg("forgot"));
        (all.into_iter().map(|(name, until)| (name, until as u64)).collect(), forgot.unwrap_or(0))
    }

    /// Sets one of the packed numbers, by its place.
    pub(super) fn poke(&mut self, index: usize, value: &str) {
        let script = "local s = redis.call('HGET', KEYS[1], 'state')
            if not s then return end
            local n = { struct.unpack('<dddddddddddddddddddddddddddd', s) }
            if ARGV[2] ~= '1' or n[tonumber(ARGV[1]) + 1] > 0 then n[tonumber(ARGV[1]) + 1] = tonumber(ARGV[2]) end
            redis.call('HSET', KEYS[1], 'state', struct.pack('<dddddddddddddddddddddddddddd', unpack(n, 1, 28)) .. '2')";
        let hash = self.keys()[0].clone();
        let _: Value = self.ask(redis::cmd("EVAL").arg(script).arg(1).arg(hash).arg(index).arg(value));
    }

    /// The instance's time has passed.
    pub(super) fn expire(&mut self, instance: &str) {
        let script = "redis.call('ZADD', KEYS[2], 'XX', 1, ARGV[1])
            local record = redis.call('HGET', KEYS[1], 'i:' .. ARGV[1])
            if not record then return end
            redis.call('HSET', KEYS[1], 'i:' .. ARGV[1], struct.pack('<d', 1) .. string.sub(record, 9))";
        let [hash, .., instances] = self.keys();
        let _: Value = self.ask(redis::cmd("EVAL").arg(script).arg(2).arg(hash).arg(instances).arg(instance));
        self.poke(field::DUE, "0");
    }

    pub(super) fn ask<T: redis::FromRedisValue>(&mut self, cmd: &mut redis::Cmd) -> T {
        redis::from_redis_value(self.wire.ask(cmd)).expect("an answer of this type")
    }

    /// The next messages to any instance, as a row for each notice.
    pub(super) fn heard(&mut self, count: usize) -> Vec<(String, Notice)> {
        let mut all = Vec::new();
        while all.len() < count || self.wire.has_more() {
            let (channel, payload) = self.wire.hear();
            let owner = channel.trim_start_matches("fq:").to_owned();
            for notice in scripts::message(&payload) {
                all.push((owner.clone(), notice));
            }
        }
        all
    }
}
