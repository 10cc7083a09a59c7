//! The engine without its thread, for the simulation: its owner says when it looks at the clock, and asks without waiting.

use super::scheduler::Looked;
use super::*;

impl Engine {
    /// No thread is started; [`Engine::look_until_idle`] takes its place.
    pub(crate) fn drive_by_hand(&self) {
        let _ = self.scheduler.set(());
    }

    /// Does all that is due. Returns when to look again; `None`: the engine has ended.
    pub(crate) fn look_until_idle(&self) -> Option<Nanos> {
        loop {
            match self.look() {
                Looked::Acted => {}
                Looked::Idle(table) => return Some(table.next_look),
                Looked::Closed => return None,
            }
        }
    }

    /// As [`Client::close`](crate::Client::close), without waiting for the end.
    pub(crate) fn close_by_hand(&self, drain: Duration) {
        self.start_closing(drain);
    }

    /// Its process has died. Requests that nobody will end hold the engine, which holds them.
    #[cfg(not(loom))]
    pub(crate) fn dismantle(&self) {
        let tickets = std::mem::take(&mut self.lock().tickets);
        drop(tickets); // without the lock, which whoever goes with them may take
    }

    /// The epoch it knows of a limiter, unless it is just finding out.
    #[cfg(not(loom))]
    pub(crate) fn epoch_of(&self, limiter: &str) -> Option<u64> {
        let table = self.lock();
        let state = &table.limiters[table.limiter_of(limiter)?];
        (!state.restoring()).then_some(state.epoch)
    }
}
