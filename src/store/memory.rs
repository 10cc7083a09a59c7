//! The embedded store: limiters that live in this process. `memory:` is one world for the whole process, so that
//! all its clients share their limiters; `memory:NAME` is another world.

use std::sync::{Arc, Weak};

use super::model::{Caller, Model};
use super::{Answer, Call, Listener, Notice, Reply, Store, StoreError};
use crate::clock::Clock;
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
}

impl World {
    /// Use, waiters and tickets of a limiter.
    #[cfg(all(test, loom))]
    pub(crate) fn standing(&self, limiter: &str) -> (u64, u64, u64) {
        self.limiters.get(limiter).map_or((0, 0, 0), Model::standing_now)
    }

    fn forget_idle(&mut self, now: u64) {
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

    /// Runs the verb under the world's lock; what others are to be told is told after it.
    fn call(&self, call: &Call) -> Answer {
        let mut deliveries: Vec<(Arc<dyn Listener>, Notice)> = Vec::new();
        let answer = {
            let mut world = self.world.lock();
            // Read under the lock: to the model, a clock read before another's later call would be one set back.
            let now = self.clock.unix_micros();
            world.calls += 1;
            if world.calls.is_multiple_of(CALLS_BETWEEN_CLEANINGS) {
                world.forget_idle(now);
            }
            let model = match world.limiters.get_mut(&call.limiter) {
                Some(model) => model,
                None => world.limiters.entry(call.limiter.clone()).or_insert_with(Model::new),
            };
            let (answer, others) = model.call(&self.caller, &call.header, &call.verb, now);
            if answer.verdict == super::Verdict::NoSuchLimiter {
                world.limiters.remove(&call.limiter);
            }
            for (instance, notice) in others {
                if let Some(listener) = world.listeners.get(&instance).and_then(Weak::upgrade) {
                    deliveries.push((listener, notice));
                }
            }
            answer
        };
        for (listener, notice) in deliveries {
            listener.notices(&call.limiter, answer.epoch, vec![notice]);
        }
        answer
    }
}

impl Store for MemoryStore {
    fn submit(&self, call: Call, reply: Reply) {
        reply(Ok(self.call(&call)));
    }

    fn submit_and_wait(&self, call: Call, reply: Reply) {
        self.submit(call, reply);
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
