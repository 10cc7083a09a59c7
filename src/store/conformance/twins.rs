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

    /// A verb of one who says that it has nothing to lose.
    pub(super) fn bare(&mut self, instance: usize, plan: &Plan) {
        self.verb(instance, Knows::Latest, true, None, plan);
    }

    /// Whether a full server refuses it.
    pub(super) fn refuses(&mut self, instance: usize, plan: &Plan) -> bool {
        let memory = &self.redis.memory;
        let (header, verb) = (memory.header(instance, Knows::Latest, true, None), memory.verb(instance, plan));
        let call = Call { limiter: LIMITER.into(), header, verb };
        self.redis.is_refused(&self.caller(instance), &call)
    }

    fn caller(&self, instance: usize) -> Caller {
        Caller {
            instance: INSTANCES[instance].into(),
            generation: self.generations[instance],
            run: format!("run{}", self.run).into(),
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
        let mut caller = self.caller(instance);
        caller.generation -= u64::from(stale);
        let call = |memory: &Memory| Call {
            limiter: LIMITER.into(),
            header: memory.header(instance, knows, bare, declares),
            verb: memory.verb(instance, plan),
        };
        let asked = call(&self.model_memory);
        let now = self.clock.unwrap_or_else(wall);
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
        assert_eq!(self.redis.state(), self.model.state(), "state after {plan:?} by {instance}");
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

/// An answer as it is; but the order of its notices says nothing.
fn sorted(mut answer: Answer) -> Answer {
    answer.notices.sort_by_key(|notice| format!("{notice:?}"));
    answer
}

fn wall() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64
}
