//! Both sides, doing the same.

use redis::Value;

use super::plan::{Knows, Memory, Op, Plan};
use super::view::{Redis, field, timeless};
use super::wire::Wire;
use super::*;

/// Both sides, and what they are called with.
pub(super) struct Twins {
    redis: Redis,
    model: Model,
    model_memory: Memory,
    generations: [u64; 3],
    /// The next command of the instance comes from the connection before.
    stale: [bool; 3],
    run: u64,
    /// The one clock of both sides. With none, each has its own, and times are not compared.
    clock: Option<u64>,
    /// So many parcels were carried out as such.
    pub parcels: u64,
}

impl Twins {
    pub(super) fn new(wire: Box<dyn Wire>, clock: Option<u64>) -> Self {
        Twins {
            redis: Redis::new(wire),
            model: Model::new(),
            model_memory: Memory::default(),
            generations: [2; 3],
            stale: [false; 3],
            run: 1,
            clock,
            parcels: 0,
        }
    }

    /// The server's memory is full whenever a verb is called that has to bear it.
    pub(super) fn fill(mut self, is_full: bool) -> Self {
        self.redis.is_full = is_full;
        self
    }

    pub(super) fn apply(&mut self, op: &Op) {
        match op {
            Op::Verb { instance, knows, bare, declares, verb } => self.verb(*instance, *knows, *bare, *declares, verb),
            Op::Parcel(instance, plans) => parcels(plans).for_each(|parcel| self.parcel(*instance, parcel)),
            Op::Expire(instance) => {
                self.redis.expire(INSTANCES[*instance]);
                self.model.expire(&INSTANCES[*instance].into());
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
            Op::Advance(part) => {
                self.clock = self.clock.map(|now| now.saturating_add_signed(1000 * part * LEASE_MS as i64 / 100))
            }
            Op::Until(which) => {
                let moment = self.model.wall_of_moments()[*which];
                self.clock = self.clock.map(|now| now.max(moment));
            }
            Op::Reconnect(instance, newer) => {
                if *newer {
                    self.generations[*instance] += 1;
                } else {
                    self.stale[*instance] = true;
                }
            }
        }
    }

    /// One of the keys behind the hash is lost, and nobody has looked yet.
    pub(super) fn lose(&mut self, key: usize) {
        let key = self.redis.keys()[key].clone();
        let _: Value = self.redis.ask(redis::cmd("DEL").arg(key));
        self.model.damage();
    }

    /// A verb of one who says that it has nothing to lose.
    pub(super) fn bare(&mut self, instance: usize, plan: &Plan) {
        self.verb(instance, Knows::Latest, true, None, plan);
    }

    /// Whether a full server refuses it.
    pub(super) fn refuses(&mut self, instance: usize, plan: &Plan) -> bool {
        let memory = &self.redis.memory;
        let (header, verb) = (memory.header(instance, Knows::Latest, true, None), memory.verb(instance, plan));
        let call = Call { limiter: LIMITER.into(), header, verb };
        let now = self.clock.unwrap_or_else(wall);
        self.redis.is_refused(&self.caller(instance, false, now), &call)
    }

    /// `stale`: by its connection before this.
    fn caller(&self, instance: usize, stale: bool, now: u64) -> Caller {
        // Where the clocks are two, what is new is so for both.
        let slack = if self.clock.is_some() { 0 } else { LEASE_MS * 1000 };
        Caller {
            instance: INSTANCES[instance].into(),
            generation: self.generations[instance] - u64::from(stale),
            run: format!("run{}", self.run).into(),
            sent: if stale { now - 2 * LEASE_MS * 1000 } else { now + slack },
        }
    }

    pub(super) fn syncs(&mut self, instance: usize, times: usize) {
        (0..times).for_each(|_| self.bare(instance, &Plan::Sync(Vec::new())));
    }

    pub(super) fn state(&self) -> State {
        self.model.state().expect("a limiter")
    }

    pub(super) fn verb(&mut self, instance: usize, knows: Knows, bare: bool, declares: Option<u64>, plan: &Plan) {
        let stale = std::mem::take(&mut self.stale[instance]);
        let now = self.clock.unwrap_or_else(wall);
        let caller = self.caller(instance, stale, now);
        let call = |memory: &Memory| Call {
            limiter: LIMITER.into(),
            header: memory.header(instance, knows, bare, declares),
            verb: memory.verb(instance, plan),
        };
        let asked = call(&self.model_memory);
        self.redis.wire.set_wall(now);
        let (expected, others) = self.model.call(&caller, &asked.header, &asked.verb, now);
        let got = self.redis.call(&caller, &call(&self.redis.memory));
        self.model_memory.learn(instance, plan, &expected);
        self.redis.memory.learn(instance, plan, &got);
        match self.clock {
            Some(_) => assert_eq!(sorted(got), sorted(expected), "answer to {plan:?} by {instance}"),
            None => assert_eq!(timeless(got), timeless(expected), "answer to {plan:?} by {instance}"),
        }
        self.compare_messages(others);
        self.compare_states(&format!("{plan:?} by {instance}"));
    }

    fn compare_states(&mut self, what: &str) {
        assert_eq!(self.redis.state(), self.model.state(), "state after {what}");
        if self.clock.is_some() && self.model.state().is_some() {
            assert_eq!(self.redis.lives(), self.model.lives(), "until when instances live, after {what}");
        }
    }

    /// What the calls of a parcel come to, and what they leave, is as if each had come by itself.
    fn parcel(&mut self, instance: usize, plans: &[Plan]) {
        if let [plan] = plans {
            return self.verb(instance, Knows::Latest, false, None, plan);
        }
        let now = self.clock.unwrap_or_else(wall);
        let caller = self.caller(instance, false, now);
        let calls = |memory: &Memory| -> Vec<Call> {
            let header = || memory.header(instance, Knows::Latest, false, None);
            plans
                .iter()
                .map(|plan| Call { limiter: LIMITER.into(), header: header(), verb: memory.verb(instance, plan) })
                .collect()
        };
        self.redis.wire.set_wall(now);
        let Some(got) = self.redis.parcel(&caller, &calls(&self.redis.memory)) else {
            return plans.iter().for_each(|plan| self.verb(instance, Knows::Latest, false, None, plan));
        };
        let (mut expected, mut others) = (Vec::new(), Vec::new());
        for call in calls(&self.model_memory) {
            let (answer, told) = self.model.call(&caller, &call.header, &call.verb, now);
            expected.push(answer);
            others.extend(told);
        }
        for (plan, (expected, got)) in plans.iter().zip(expected.iter().zip(&got)) {
            self.model_memory.learn(instance, plan, expected);
            self.redis.memory.learn(instance, plan, got);
        }
        let (got, expected) = (told_last(got), told_last(expected));
        match self.clock {
            Some(_) => assert_eq!(got, expected, "answers to {plans:?} by {instance}"),
            None => {
                let timeless = |answers: Vec<Answer>| answers.into_iter().map(timeless).collect::<Vec<_>>();
                assert_eq!(timeless(got), timeless(expected), "answers to {plans:?} by {instance}");
            }
        }
        self.compare_messages(others);
        self.compare_states(&format!("{plans:?} by {instance}"));
        self.parcels += 1;
    }

    pub(super) fn compare_messages(&mut self, expected: Vec<(Arc<str>, Notice)>) {
        let heard = self.redis.heard(expected.len());
        let exact = self.clock;
        let hide = |(owner, notice): (String, Notice)| match notice {
            Notice::Granted { no, .. } if exact.is_none() => (owner, Notice::Granted { no, fence: 0, order: 0 }),
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

/// No ticket is named twice in a parcel.
fn parcels(mut plans: &[Plan]) -> impl Iterator<Item = &[Plan]> {
    let ticket = |plan: &Plan| match plan {
        Plan::Acquire { no, .. } => *no,
        Plan::Release(permits) => permits[0].0,
        Plan::Cancel(tickets) => tickets[0],
        other => unreachable!("{other:?} in a parcel"),
    };
    std::iter::from_fn(move || {
        let is_new = |at: &usize| plans[..*at].iter().all(|plan| ticket(plan) != ticket(&plans[*at]));
        let (parcel, rest) = plans.split_at((0..plans.len()).take_while(is_new).count());
        plans = rest;
        (!parcel.is_empty()).then_some(parcel)
    })
}

/// All that was told on the way comes with the last answer.
fn told_last(mut answers: Vec<Answer>) -> Vec<Answer> {
    let notices = answers.iter_mut().flat_map(|answer| std::mem::take(&mut answer.notices)).collect();
    let Some(mut last) = answers.pop() else { return answers };
    last.notices = notices;
    answers.push(sorted(last));
    answers
}

/// An answer as it is; but the order of its notices says nothing.
fn sorted(mut answer: Answer) -> Answer {
    answer.notices.sort_by_key(|notice| format!("{notice:?}"));
    answer
}

fn wall() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64
}
