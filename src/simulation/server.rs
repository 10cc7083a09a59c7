//! The server of a run: the Redis in memory, with what can happen to a real one.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use ::redis::Value;

use super::redis::db::{Bytes, Db};
use super::redis::{Redis, Rewrite};
use crate::clock::Nanos;

/// The wall clock at the start of a run, in microseconds.
const START: u64 = 1_700_000_000_000_000;
/// So many states are remembered, for a restart that loses the last writes.
const JOURNAL: usize = 24;

pub(super) struct Server {
    redis: Redis,
    run: u64,
    /// By how much the wall clock was set, in microseconds.
    set: i64,
    pub up: bool,
    pub stopped_until: Nanos,
    /// It is another's replica before, and takes no writes.
    pub is_replica_until: Nanos,
    journal: VecDeque<Db>,
}

impl Server {
    pub(super) fn new(rewrite: Option<Rewrite>) -> Self {
        let (run, set, up, stopped_until, is_replica_until, journal) = (1, 0, true, 0, 0, VecDeque::new());
        Server { redis: Redis::new(rewrite), run, set, up, stopped_until, is_replica_until, journal }
    }

    pub(super) fn run_id(&self) -> Arc<str> {
        format!("run{}", self.run).into()
    }

    pub(super) fn wall(&self, now: Nanos) -> u64 {
        (START + now / 1000).saturating_add_signed(self.set)
    }

    pub(super) fn set_wall_by(&mut self, micros: i64) {
        self.set += micros;
    }

    /// The answer, and what was published meanwhile.
    pub(super) fn execute(&mut self, now: Nanos, args: &[Bytes]) -> (Value, Vec<(String, String)>) {
        self.redis.set_wall(self.wall(now));
        self.journal.push_back(self.redis.data());
        if self.journal.len() > JOURNAL {
            self.journal.pop_front();
        }
        let answer = self.redis.execute(args);
        (answer, self.redis.take_published())
    }

    pub(super) fn look<R>(&self, look: impl FnOnce(&Db) -> R) -> R {
        self.redis.look(look)
    }

    /// Who is subscribed to its own channel.
    pub(super) fn set_listeners(&mut self, listeners: BTreeSet<Arc<str>>) {
        self.redis.set_channels(listeners.iter().map(|name| format!("fq:{name}")).collect());
    }

    pub(super) fn forget_scripts(&mut self) {
        self.redis.forget_scripts();
    }

    pub(super) fn set_full(&mut self, full: bool) {
        self.redis.set_full(full);
    }

    pub(super) fn flush(&mut self) {
        self.redis.set_data(Db::default());
    }

    pub(super) fn delete(&mut self, key: &str) {
        let mut data = self.redis.data();
        data.remove(key.as_bytes());
        self.redis.set_data(data);
    }

    /// Comes up again without the last `lost` writes; `None`: without anything.
    pub(super) fn restart(&mut self, lost: Option<usize>) {
        self.run += 1;
        self.redis.forget_scripts();
        match lost {
            Some(0) => {}
            Some(lost) => {
                let at = self.journal.len().saturating_sub(lost);
                if let Some(data) = self.journal.get(at).cloned() {
                    self.redis.set_data(data);
                }
            }
            None => self.flush(),
        }
        self.journal.clear();
    }
}
