//! The same random verbs on the model and on real servers must give the same answers, tell the same owners, and leave
//! the same state. This is what makes the model the specification of the scripts.
//!
//! Times differ between the two, so orders, fences and epochs are compared by rank, and leases are so long that only
//! the test itself lets an instance expire or a grace end.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{self, Connection, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use self::support::{Flavor, Server};
use super::model::{Caller, Model};
use super::redis::test_access as scripts;
use super::*;
use crate::settings::Settings;

const LIMITER: &str = "conformance {of} 100%";
const INSTANCES: [&str; 3] = ["ann", "bob", "cy"];
const LEASE_MS: u64 = 3_600_000;

/// What the property test does, on both sides.
#[derive(Clone, Debug)]
enum Op {
    Verb {
        instance: usize,
        knows: Knows,
        bare: bool,
        declares: Option<u64>,
        verb: Plan,
    },
    /// The instance's lease ends.
    Expire(usize),
    EndGrace,
    /// FLUSHALL.
    Lose,
    /// One key is deleted by hand; 0 is the hash.
    DeleteKey(usize),
    /// The server restarts with its data.
    Restart,
    /// The instance connects anew; `false`: an older connection's command arrives after that.
    Reconnect(usize, bool),
}

/// Which epoch the caller knows.
#[derive(Clone, Copy, Debug)]
enum Knows {
    Latest,
    Nothing,
    First,
}

/// A verb with what both sides agree on; orders and fences are each side's own.
#[derive(Clone, Debug)]
enum Plan {
    Acquire { no: u64, cost: u64, may_wait: bool, old_order: bool },
    Release(Vec<(u64, bool)>),
    Cancel(Vec<u64>),
    PutBack(u64),
    Sync(Vec<u64>),
    Restore(Vec<(u64, RestoreKind)>),
    Limit(u64),
    Pause(bool),
    Reset,
    Revoke(usize, u64),
    Leave,
    Status,
    List(bool),
    Position(Vec<u64>),
}

fn plans() -> impl Strategy<Value = Plan> {
    let no = 1..7u64;
    let kind = prop_oneof![
        Just(RestoreKind::Held),
        Just(RestoreKind::Waiting),
        Just(RestoreKind::Local),
        Just(RestoreKind::Check)
    ];
    prop_oneof![
        8 => (no.clone(), 1..4u64, prop::bool::weighted(0.8), prop::bool::weighted(0.1))
            .prop_map(|(no, cost, may_wait, old_order)| Plan::Acquire { no, cost, may_wait, old_order }),
        5 => prop::collection::vec((no.clone(), prop::bool::weighted(0.9)), 1..3).prop_map(Plan::Release),
        2 => prop::collection::vec(no.clone(), 1..3).prop_map(Plan::Cancel),
        1 => no.clone().prop_map(Plan::PutBack),
        3 => prop::collection::vec(no.clone(), 0..4).prop_map(Plan::Sync),
        3 => prop::collection::vec((no.clone(), kind), 0..5).prop_map(Plan::Restore),
        1 => (0..6u64).prop_map(Plan::Limit),
        1 => any::<bool>().prop_map(Plan::Pause),
        1 => Just(Plan::Reset),
        1 => (0..3usize, no.clone()).prop_map(|(instance, no)| Plan::Revoke(instance, no)),
        1 => Just(Plan::Leave),
        1 => Just(Plan::Status),
        1 => any::<bool>().prop_map(Plan::List),
        1 => prop::collection::vec(no, 1..3).prop_map(Plan::Position),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let instance = 0..INSTANCES.len();
    let knows = prop_oneof![8 => Just(Knows::Latest), 1 => Just(Knows::Nothing), 1 => Just(Knows::First)];
    let declares = prop::option::weighted(0.1, 1..5u64);
    let verb = (instance.clone(), knows, prop::bool::weighted(0.4), declares, plans())
        .prop_map(|(instance, knows, bare, declares, verb)| Op::Verb { instance, knows, bare, declares, verb });
    let op = prop_oneof![
        40 => verb,
        2 => instance.clone().prop_map(Op::Expire),
        3 => Just(Op::EndGrace),
        1 => Just(Op::Lose),
        1 => (0..5usize).prop_map(Op::DeleteKey),
        1 => Just(Op::Restart),
        2 => (instance, prop::bool::weighted(0.7)).prop_map(|(i, newer)| Op::Reconnect(i, newer)),
    ];
    prop::collection::vec(op, 1..60)
}

/// What one side has told of epochs and tickets.
#[derive(Default)]
struct Memory {
    epochs: HashMap<usize, (u64, u64)>,
    orders: HashMap<(usize, u64), u64>,
    fences: HashMap<(usize, u64), u64>,
}

impl Memory {
    fn header(&self, instance: usize, knows: Knows, bare: bool, declares: Option<u64>) -> Header {
        let (first, latest) = self.epochs.get(&instance).copied().unwrap_or_default();
        let epoch = match knows {
            Knows::Latest => latest,
            Knows::Nothing => 0,
            Knows::First => first,
        };
        let settings = Settings {
            limit: declares.unwrap_or(2),
            max_queue: 5,
            lease: LEASE_MS,
            idle: 2 * LEASE_MS,
            ..Settings::default()
        };
        let declaration = Declaration {
            declared: settings.words(),
            declares: declares.is_some(),
            description: format!("instance {instance}"),
            ..Declaration::default()
        };
        Header { epoch, bare, declaration: Arc::new(declaration) }
    }

    /// Made up for a ticket that was never heard of: old, and different for each.
    fn order(&self, instance: usize, no: u64) -> u64 {
        self.orders.get(&(instance, no)).copied().unwrap_or(1000 + 10 * no + instance as u64)
    }

    fn fence(&self, instance: usize, no: u64) -> u64 {
        self.fences.get(&(instance, no)).copied().unwrap_or(2000 + 10 * no + instance as u64)
    }

    fn verb(&self, instance: usize, plan: &Plan) -> Verb {
        let label = |no: u64| -> Arc<str> { format!("label of {no}").into() };
        match plan {
            Plan::Acquire { no, cost, may_wait, old_order } => Verb::Acquire {
                no: *no,
                cost: *cost,
                may_wait: *may_wait,
                order: if *old_order { self.order(instance, *no) } else { 0 },
                label: label(*no),
            },
            Plan::Release(permits) => {
                let pair = |(no, right): &(u64, bool)| (*no, self.fence(instance, *no) + u64::from(!right));
                Verb::Release(permits.iter().map(pair).collect())
            }
            Plan::Cancel(tickets) => Verb::Cancel(tickets.clone()),
            Plan::PutBack(no) => Verb::PutBack(*no),
            Plan::Sync(heads) => Verb::Sync { version: 0, heads: heads.clone() },
            Plan::Restore(tickets) => {
                let one = |(no, kind): &(u64, RestoreKind)| Restored {
                    kind: *kind,
                    no: *no,
                    order: self.order(instance, *no),
                    fence: self.fence(instance, *no),
                    cost: 1 + no % 2,
                    label: label(*no),
                };
                Verb::Restore(tickets.iter().map(one).collect())
            }
            Plan::Limit(limit) => Verb::Configure(Change::new().limit(*limit)),
            Plan::Pause(true) => Verb::Configure(Change::new().pause()),
            Plan::Pause(false) => Verb::Configure(Change::new().resume()),
            Plan::Reset => Verb::Configure(Change::new().reset()),
            Plan::Revoke(instance, no) => Verb::Revoke(format!("{}:{no}", INSTANCES[*instance])),
            Plan::Leave => Verb::Leave,
            Plan::Status => Verb::Status,
            Plan::List(held) => Verb::List { held: *held, offset: 0, count: 100 },
            Plan::Position(tickets) => Verb::Position(tickets.clone()),
        }
    }

    fn learn(&mut self, instance: usize, answer: &Answer) {
        if matches!(answer.verdict, Verdict::NoSuchLimiter) {
            return;
        }
        let known = self.epochs.entry(instance).or_insert((answer.epoch, 0));
        known.1 = answer.epoch;
        for notice in &answer.notices {
            self.learn_notice(instance, notice);
        }
    }

    fn learn_notice(&mut self, instance: usize, notice: &Notice) {
        if let Notice::Granted { no, fence, order } = notice {
            self.orders.insert((instance, *no), *order);
            self.fences.insert((instance, *no), *fence);
        }
    }
}

/// Takes out of an answer what is a matter of time.
fn timeless(mut answer: Answer) -> (Verdict, Vec<Notice>) {
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
            synced.config.iter_mut().for_each(hide_stamps);
            synced.heads.iter_mut().for_each(hide_standing);
        }
        Verdict::Restored(standings) => standings.iter_mut().for_each(hide_standing),
        Verdict::Status(view) => {
            hide_stamps(&mut view.config);
            (view.grace, view.typical_hold) = (Duration::ZERO, None);
            view.estimate = view.estimate.filter(Duration::is_zero);
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

fn hide_stamps(config: &mut ConfigView) {
    (config.declared_at, config.override_at) = (0, 0);
}

fn hide_standing(standing: &mut Standing) {
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
mod field {
    pub const NOW: usize = 1;
    pub const USED: usize = 5;
    pub const LIMIT: usize = 6;
    pub const PAUSED: usize = 10;
    pub const GRACE: usize = 12;
    pub const DUE: usize = 14;
    pub const SWEEPING: usize = 15;
    pub const REVOKES: usize = 18;
    pub const GRANTED: usize = 20;
}

struct Redis {
    connection: Connection,
    subscriber: Connection,
    memory: Memory,
}

impl Redis {
    fn call(&mut self, caller: &Caller, call: &Call) -> Answer {
        let value = match scripts::run(&mut self.connection, call, caller) {
            Value::ServerError(error) => panic!("{call:?}: {} {:?}", error.code(), error.details()),
            value => value,
        };
        scripts::read(&call.verb, value)
    }

    fn keys(&self) -> [String; 5] {
        scripts::keys(LIMITER)
    }

    fn state(&mut self) -> Option<State> {
        let [hash, queue, held, tickets, instances] = self.keys();
        let fields: HashMap<String, Vec<u8>> = self.ask(redis::cmd("HGETALL").arg(&hash));
        let packed = fields.get("state")?;
        let numbers: Vec<f64> =
            packed.chunks(8).map(|bytes| f64::from_le_bytes(bytes.try_into().expect("whole numbers"))).collect();
        let at = |index: usize| numbers[index] as u64;
        let records: HashMap<String, String> = self.ask(redis::cmd("HGETALL").arg(&tickets));
        let config: String = self.ask(redis::cmd("HGET").arg(&hash).arg("config"));
        let mut range = |key: &String| -> Vec<(String, f64)> {
            let all: Vec<(String, f64)> = self.ask(redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).arg("WITHSCORES"));
            all.into_iter().filter(|(member, _)| member != ".").collect()
        };
        let row = |(ticket, _): (String, f64)| {
            let mut words = records[&ticket].splitn(3, ' ');
            let cost = words.next().unwrap().parse().unwrap();
            (ticket, cost, words.nth(1).unwrap_or("").to_owned())
        };
        let generation = |name: &str| {
            fields.get(&format!("i:{name}")).map_or(0, |text| String::from_utf8_lossy(text).parse().unwrap())
        };
        let mut known: Vec<(String, u64)> =
            range(&instances).into_iter().map(|(name, _)| (name.clone(), generation(&name))).collect();
        known.sort();
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

    /// Sets one of the packed numbers, by its place.
    fn poke(&mut self, index: usize, value: &str) {
        let script = "local s = redis.call('HGET', KEYS[1], 'state')
            if not s then return end
            local n = { struct.unpack('<dddddddddddddddddddddd', s) }
            if ARGV[2] ~= '1' or n[tonumber(ARGV[1]) + 1] > 0 then n[tonumber(ARGV[1]) + 1] = tonumber(ARGV[2]) end
            redis.call('HSET', KEYS[1], 'state', struct.pack('<dddddddddddddddddddddd', unpack(n, 1, 22)))";
        let hash = self.keys()[0].clone();
        let _: Value = self.ask(redis::cmd("EVAL").arg(script).arg(1).arg(hash).arg(index).arg(value));
    }

    fn ask<T: redis::FromRedisValue>(&mut self, cmd: &mut redis::Cmd) -> T {
        cmd.query(&mut self.connection).expect("the server answers")
    }

    /// The next message to any instance, as a row for each notice.
    fn heard(&mut self, count: usize) -> Vec<(String, Notice)> {
        let mut all = Vec::new();
        while all.len() < count {
            let Value::Array(parts) = self.subscriber.recv_response().expect("a message") else { continue };
            let [_, _, channel, payload] = &parts[..] else { continue };
            let text = |value: &Value| redis::from_redis_value_ref::<String>(value).unwrap();
            let owner = text(channel).trim_start_matches("fq:").to_owned();
            for notice in scripts::message(&text(payload)) {
                all.push((owner.clone(), notice));
            }
        }
        all
    }
}

/// Both sides, and what they are called with.
struct Twins {
    redis: Redis,
    model: Model,
    model_memory: Memory,
    generations: [u64; 3],
    /// The next command of the instance comes from the connection before.
    stale: [bool; 3],
    run: u64,
}

impl Twins {
    fn apply(&mut self, op: &Op) {
        match op {
            Op::Verb { instance, knows, bare, declares, verb } => self.verb(*instance, *knows, *bare, *declares, verb),
            Op::Expire(instance) => {
                let key = self.redis.keys()[4].clone();
                let name = INSTANCES[*instance];
                let _: Value = self.redis.ask(redis::cmd("ZADD").arg(key).arg("XX").arg(1).arg(name));
                self.redis.poke(field::DUE, "0");
                self.model.expire(&name.into());
            }
            Op::EndGrace => {
                self.redis.poke(field::GRACE, "1");
                self.model.end_grace();
            }
            Op::Lose => {
                let _: Value = self.redis.ask(&mut redis::cmd("FLUSHALL"));
                self.model.lose();
            }
            Op::DeleteKey(index) => {
                let key = self.redis.keys()[*index].clone();
                let _: Value = self.redis.ask(redis::cmd("DEL").arg(key));
                if *index == 0 {
                    self.model.lose()
                } else {
                    self.model.damage()
                }
                // The next mutating verb finds out; until then the two sides are damaged in different ways.
                self.stale[0] = false;
                self.verb(0, Knows::Latest, false, None, &Plan::Restore(Vec::new()));
            }
            Op::Restart => self.run += 1,
            Op::Reconnect(instance, newer) => {
                if *newer {
                    self.generations[*instance] += 1;
                } else {
                    self.stale[*instance] = true;
                }
            }
        }
    }

    fn verb(&mut self, instance: usize, knows: Knows, bare: bool, declares: Option<u64>, plan: &Plan) {
        let stale = std::mem::take(&mut self.stale[instance]);
        let caller = Caller {
            instance: INSTANCES[instance].into(),
            generation: self.generations[instance] - u64::from(stale),
            run: format!("run{}", self.run).into(),
        };
        let call = |memory: &Memory| Call {
            limiter: LIMITER.into(),
            header: memory.header(instance, knows, bare, declares),
            verb: memory.verb(instance, plan),
        };
        let asked = call(&self.model_memory);
        let (expected, others) = self.model.call(&caller, &asked.header, &asked.verb, wall());
        let got = self.redis.call(&caller, &call(&self.redis.memory));
        self.model_memory.learn(instance, &expected);
        self.redis.memory.learn(instance, &got);
        assert_eq!(timeless(got), timeless(expected), "answer to {plan:?} by {instance}");
        self.compare_messages(others);
        assert_eq!(self.redis.state(), self.model.state(), "state after {plan:?} by {instance}");
    }

    fn compare_messages(&mut self, expected: Vec<(Arc<str>, Notice)>) {
        let heard = self.redis.heard(expected.len());
        let hide = |(owner, notice): (String, Notice)| match notice {
            Notice::Granted { no, .. } => (owner, Notice::Granted { no, fence: 0, order: 0 }),
            other => (owner, other),
        };
        let index = |owner: &str| INSTANCES.iter().position(|name| *name == owner).unwrap();
        for (owner, notice) in &heard {
            self.redis.memory.learn_notice(index(owner), notice);
        }
        for (owner, notice) in &expected {
            self.model_memory.learn_notice(index(owner), notice);
        }
        // Each owner is told in order; between owners there is none.
        let mut got: Vec<_> = heard.into_iter().map(hide).collect();
        let mut want: Vec<_> = expected.into_iter().map(|(owner, n)| hide((owner.to_string(), n))).collect();
        got.sort_by(|a, b| a.0.cmp(&b.0));
        want.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(got, want, "what others were told");
    }
}

fn wall() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64
}

fn compare(flavor: Flavor) {
    let server = Server::start(flavor);
    let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
    let result = runner.run(&ops(), |ops| {
        let mut connection = server.conn();
        let _: Value = redis::cmd("FLUSHALL").query(&mut connection).unwrap();
        let mut subscriber = server.conn();
        subscriber.send_packed_command(&redis::cmd("PSUBSCRIBE").arg("fq:*").get_packed_command()).unwrap();
        subscriber.recv_response().unwrap();
        let redis = Redis { connection, subscriber, memory: Memory::default() };
        let mut twins = Twins {
            redis,
            model: Model::new(),
            model_memory: Memory::default(),
            generations: [2; 3],
            stale: [false; 3],
            run: 1,
        };
        ops.iter().for_each(|op| twins.apply(op));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{flavor}: {error}");
    }
}

#[test]
fn redis_6_2_does_what_the_model_says() {
    on(Flavor::Redis62);
}

#[test]
fn redis_7_0_does_what_the_model_says() {
    on(Flavor::Redis70);
}

#[test]
fn redis_8_2_does_what_the_model_says() {
    on(Flavor::Redis82);
}

#[test]
fn valkey_9_1_does_what_the_model_says() {
    on(Flavor::Valkey91);
}

/// A server that is not here is reported by the test command's table.
fn on(flavor: Flavor) {
    if Flavor::available().contains(&flavor) {
        compare(flavor);
    }
}
