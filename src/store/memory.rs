//! The embedded store: limiters that live in this process. `memory:` is one world for the whole process, so that
//! all its clients share their limiters; `memory:NAME` is another world.

use std::sync::{Arc, Weak};

use super::model::{Caller, Model};
use super::{Answer, AtOnce, Call, Header, Listener, News, Reply, Store, StoreError, Verb};
use crate::clock::{Clock, Nanos};
use crate::map::HashMap;
use crate::process::PerProcess;
use crate::status::ServerInfo;
use crate::sync::Mutex;

/// So many calls after which idle limiters are looked for.
const CALLS_BETWEEN_CLEANINGS: u64 = 4096;

/// All limiters of one name space, and the instances that use them.
#[derive(Default)]
pub(crate) struct World {
    limiters: HashMap<Arc<str>, Model>,
    listeners: HashMap<Arc<str>, Weak<dyn Listener>>,
    calls: u64,
    /// The latest moment that a call came with.
    latest: u64,
}

impl World {
    /// Use, waiters and tickets of a limiter.
    #[cfg(all(test, loom))]
    pub(crate) fn standing(&self, limiter: &str) -> (u64, u64, u64) {
        self.limiters.get(limiter).map_or((0, 0, 0), Model::standing_now)
    }

    /// The moment of a call. Two instances may have looked at the clock in one order and come here in the other; to a model, the
    /// earlier look would be a clock that was set back.
    fn time(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(now);
        self.latest
    }

    fn forget_idle_at_times(&mut self, now: u64) {
        self.calls += 1;
        if !self.calls.is_multiple_of(CALLS_BETWEEN_CLEANINGS) {
            return;
        }
        let idle_for = |model: &Model| u128::from(now.saturating_sub(model.last_used()));
        self.limiters.retain(|_, model| !model.is_idle() || idle_for(model) < model.idle_time().as_micros());
    }
}

pub(crate) type SharedWorld = Arc<Mutex<World>>;

/// A forked child has worlds of its own: nobody would ever give back what its parent holds in these.
static WORLDS: PerProcess<Mutex<HashMap<String, SharedWorld>>> = PerProcess::new();

#[cfg(fuzzing)]
pub(crate) fn forget_worlds() {
    WORLDS.get().lock().clear();
}

/// One instance's view of a world.
pub(crate) struct MemoryStore {
    world: SharedWorld,
    clock: Clock,
    caller: Caller,
}

impl MemoryStore {
    /// Joins the world `name`, which comes to be with its first visitor.
    pub(crate) fn open(name: &str, instance: &Arc<str>, clock: Clock, listener: Weak<dyn Listener>) -> Self {
        let world = WORLDS.get().lock().entry(name.to_owned()).or_default().clone();
        MemoryStore::join(world, instance, clock, listener)
    }

    pub(crate) fn join(world: SharedWorld, instance: &Arc<str>, clock: Clock, listener: Weak<dyn Listener>) -> Self {
        world.lock().listeners.insert(instance.clone(), listener);
        let caller = Caller { instance: instance.clone(), generation: 1, run: "memory".into(), sent: u64::MAX };
        MemoryStore { world, clock, caller }
    }
}

impl AtOnce for MemoryStore {
    /// Under the world's lock. No other is taken under it.
    fn carry_out(&self, limiter: &Arc<str>, header: &Header, verb: &Verb, now: Nanos, news: &mut Vec<News>) -> Answer {
        let mut world = self.world.lock();
        let now = world.time(self.clock.unix_micros(now));
        world.forget_idle_at_times(now);
        let model = match world.limiters.get_mut(limiter) {
            Some(model) => model,
            None => world.limiters.entry(limiter.clone()).or_insert_with(Model::new),
        };
        let (answer, others) = model.call(&self.caller, header, verb, now);
        if matches!(answer.verdict, super::Verdict::NoSuchLimiter) {
            world.limiters.remove(limiter);
        }
        for (instance, notice) in others {
            if let Some(to) = world.listeners.get(&instance).and_then(Weak::upgrade) {
                news.push(News { to, limiter: limiter.clone(), epoch: answer.epoch, notice });
            }
        }
        answer
    }
}

impl Store for MemoryStore {
    fn submit(&self, call: Call, reply: Reply) {
        let mut news = Vec::new();
        let answer = self.carry_out(&call.limiter, &call.header, &call.verb, self.clock.now(), &mut news);
        news.into_iter().for_each(News::deliver);
        reply(Ok(answer));
    }

    fn submit_and_wait(&self, call: Call, reply: Reply) {
        self.submit(call, reply);
    }

    fn at_once(&self) -> Option<&dyn AtOnce> {
        Some(self)
    }

    fn check(&self) -> Result<ServerInfo, StoreError> {
        Ok(ServerInfo {
            kind: "memory".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            run_id: "memory".into(),
            ..ServerInfo::default()
        })
    }

    fn limiters(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.world.lock().limiters.keys().map(|name| name.to_string()).collect())
    }

    fn close(&self) {
        self.world.lock().listeners.remove(&self.caller.instance);
    }
}
