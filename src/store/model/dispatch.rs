//! The only place where a permit is given. Every mutating verb is: change something, then dispatch. All loops are
//! bounded; `more` says that work is left for the next call. (`lua/lib/dispatch.lua`)

use super::*;
use crate::store::Few;

/// How many entries beyond the free slots are looked at, so that a few dead ones at the head cost no further call.
const WINDOW: u64 = 16;
/// The most entries that one call looks at in each loop.
const BATCH: usize = 128;

impl Model {
    pub(super) fn dispatch(&mut self) {
        self.reap();
        self.sweep();
        let (mut budget, mut slack) = (BATCH as i64, 0);
        while !self.config.paused() && self.now >= self.grace && self.free() > 0 && !self.queue.is_empty() {
            if budget <= 0 {
                self.more = true;
                return;
            }
            let size = (self.free() + slack).min(BATCH as u64) as usize;
            budget -= size as i64;
            slack = WINDOW; // when some were dead or misfits, look further
            if !self.admit_window(size) {
                return;
            }
        }
    }

    /// One window at the head of the queue. True: the next window may be looked at.
    fn admit_window(&mut self, size: usize) -> bool {
        let window: Few<TicketId> = self.queue.iter().take(size).map(|(_, id)| id.clone()).collect();
        for id in window {
            let cost = self.tickets.get(&id).map_or(1, |r| r.cost);
            if !self.alive(&id.instance) {
                self.forget(&id);
            } else if self.impossible(cost) {
                self.forget(&id);
                self.tell(&id, Notice::Impossible { no: id.no, limit: self.settings().limit });
            } else if cost > self.free() {
                return false; // nobody passes the head
            } else if let Some((fence, order)) = self.grant(&id) {
                self.tell(&id, Notice::Granted { no: id.no, fence, order });
            }
        }
        true
    }

    /// Fence and order of the permit.
    pub(super) fn grant(&mut self, id: &TicketId) -> Option<(u64, u64)> {
        let fence = self.next_fence();
        let record = self.tickets.get_mut(id)?;
        record.fence = Some(fence);
        let (cost, order) = (record.cost, record.order);
        self.fence = fence;
        self.used += cost;
        self.granted += 1;
        self.queue.remove(&(order, id.clone()));
        self.held.insert((fence, id.clone()));
        Some((fence, order))
    }

    pub(super) fn next_fence(&self) -> u64 {
        (self.fence + 1).max(self.now)
    }

    pub(super) fn tell(&mut self, id: &TicketId, notice: Notice) {
        self.messages.push((id.instance.clone(), notice));
    }

    pub(super) fn impossible(&self, cost: u64) -> bool {
        let limit = self.settings().limit;
        cost > limit && limit > 0
    }

    fn alive(&self, instance: &str) -> bool {
        self.instances.get(instance).is_some_and(|i| i.standing.expiry >= self.bound())
    }

    pub(super) fn start_sweep(&mut self) {
        match self.sweep {
            Sweep::Off => self.sweep = Sweep::Held(0),
            _ => self.again = true,
        }
    }

    /// Whose lease ended before this is dead.
    fn bound(&self) -> u64 {
        if self.now >= self.calm { self.now } else { self.excused }
    }

    /// Forgets instances whose time has passed. What they held and waited for is found by `sweep`.
    fn reap(&mut self) {
        let bound = self.bound();
        if self.expiries.first().is_none_or(|(expiry, _)| *expiry >= bound) {
            return;
        }
        let due = self.expiries.iter().take_while(|(expiry, _)| *expiry < bound).take(BATCH);
        let dead: Vec<Arc<str>> = due.map(|(_, instance)| instance.clone()).collect();
        self.more |= dead.len() == BATCH;
        self.forgot = self.now;
        for instance in dead {
            self.remove_instance(&instance);
        }
        self.start_sweep();
    }

    /// Walks through all that is held, then through the queue, a batch a call, and drops what has no living owner or
    /// can never fit.
    fn sweep(&mut self) {
        let page: Vec<(u64, TicketId)> = match self.sweep {
            Sweep::Off => return,
            Sweep::Held(seen) => {
                let start = (seen + 1, TicketId { instance: "".into(), no: 0 });
                self.held.starting_at(&start).take(BATCH).cloned().collect()
            }
            Sweep::Queue(seen) => {
                let start = (seen + 1, TicketId { instance: "".into(), no: 0 });
                self.queue.range(start..).take(BATCH).cloned().collect()
            }
        };
        for (_, id) in &page {
            let cost = self.tickets.get(id).map_or(1, |r| r.cost);
            if !self.alive(&id.instance) {
                self.forget(id);
            } else if matches!(self.sweep, Sweep::Queue(_)) && self.impossible(cost) {
                self.forget(id);
                self.tell(id, Notice::Impossible { no: id.no, limit: self.settings().limit });
            }
        }
        self.advance_sweep((page.len() == BATCH).then(|| page[page.len() - 1].0));
        self.more |= self.sweep != Sweep::Off;
    }

    /// `seen`: the last score of a full page; the next one may hold more.
    fn advance_sweep(&mut self, seen: Option<u64>) {
        self.sweep = match (self.sweep, seen) {
            (Sweep::Held(_), Some(seen)) => Sweep::Held(seen),
            (Sweep::Held(_), None) => Sweep::Queue(0),
            (Sweep::Queue(_), Some(seen)) => Sweep::Queue(seen),
            _ if std::mem::take(&mut self.again) => Sweep::Held(0),
            _ => Sweep::Off,
        };
    }
}
