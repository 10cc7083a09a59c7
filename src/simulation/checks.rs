//! What is looked at after each step, and in the last phase of a run, when nothing goes wrong any more.

use super::instance::Life;
use super::view::Entry;
use super::world::{MS, World};
use crate::clock::nanos;

impl World {
    pub(super) fn check(&mut self) {
        let mut wrong = None;
        for (i, instance) in self.instances.iter().enumerate().filter(|(_, instance)| instance.runs()) {
            if let Some(late) =
                instance.pending.values().find(|p| self.now > p.deadline + MS && self.now > instance.late_until)
            {
                wrong = Some(format!("P2: {} of i{i} has not ended by its deadline", late.ticket.id()));
            }
            for held in instance.held.values().filter(|held| held.permit.is_valid() && held.permit.fence() != 0) {
                let view = self.oracle.view(held.limiter);
                let place = view.held.iter().find(|e| e.ticket == held.name && e.score == held.permit.fence());
                let known = instance.engine.epoch_of(&self.limiters[held.limiter].0);
                let lost = self.oracle.is_tampered(held.limiter) || !view.exists || known != Some(view.epoch);
                let jumped = self.wall_set_at.is_some_and(|at| self.now < at + 2 * self.lease());
                let presumed_dead = self.oracle.is_presumed_dead(held.limiter, &instance.name);
                let excused = lost || jumped || presumed_dead || self.oracle.is_revoked(held.limiter, &held.name);
                if place.is_none() && !excused {
                    wrong = Some(format!("P1: i{i} believes in {}, which is not held: {:?}", held.name, held.permit));
                }
                // 0: a record that is lost, or a permit that was admitted locally before it was ever in line.
                let order = held.permit.order();
                let other = |entry: &Entry| order != 0 && entry.order != 0 && entry.order != order;
                if place.is_some_and(other) {
                    wrong = Some(format!("P6: {} has another order than was given to it: {place:?}", held.name));
                }
            }
        }
        if let Some(wrong) = wrong {
            self.oracle.violated(wrong);
        }
        self.forget_lost();
        if self.now >= self.calm_at {
            self.check_idle();
        }
    }

    /// The application drops what it has lost.
    fn forget_lost(&mut self) {
        for i in 0..self.instances.len() {
            if !self.instances[i].runs() {
                continue;
            }
            let lost =
                self.instances[i].held.iter().filter(|(_, held)| held.permit.state() == crate::PermitState::Lost);
            for token in lost.map(|(token, _)| *token).collect::<Vec<_>>() {
                if let Some(held) = self.instances[i].held.remove(&token) {
                    let why = format!("{:?}", held.permit.lost_reason());
                    self.trace.line(self.now, || format!("i{i} has lost {}: {why}", held.name));
                    *self.losses.entry(why).or_default() += 1;
                }
            }
        }
    }

    /// P7: a free slot with a waiter is filled within a poll interval and a little.
    fn check_idle(&mut self) {
        for limiter in 0..self.limiters.len() {
            let view = self.oracle.view(limiter);
            let clock = self.server.wall(self.now) + view.skew;
            let fits = view.queue.first().is_some_and(|head| view.used + head.cost <= view.limit);
            if !fits || view.paused || clock < view.grace {
                self.idle_since[limiter] = None;
                continue;
            }
            let since = *self.idle_since[limiter].get_or_insert(self.now);
            let owner = view.queue[0].owner();
            let alive = self.healthy().iter().any(|i| &*self.instances[*i].name == owner);
            if alive && self.now > since + nanos(self.terms.poll) + 300 * MS {
                let head = view.queue[0].clone();
                self.oracle.violated(format!("P7: {head:?} waits for a free slot of {limiter}"));
            }
        }
    }

    /// P7: whoever had to be served has been.
    pub(super) fn judge(&mut self) {
        for i in self.healthy() {
            let waiting = self.instances[i].pending.values().find(|pending| pending.must);
            if let Some(pending) = waiting {
                let view = self.oracle.view(pending.limiter);
                let what = format!("P7: {} of i{i} is not served: {view:?}", pending.ticket.id());
                return self.oracle.violated(what);
            }
        }
    }

    /// P3: when everything has ended, nothing is left of those who can be reached.
    pub(super) fn check_empty(&mut self) {
        for limiter in 0..self.limiters.len() {
            let view = self.oracle.view(limiter);
            let known = |ticket: &str| {
                self.instances.iter().any(|instance| {
                    instance.pending.values().any(|p| p.ticket.id() == ticket)
                        || instance.held.values().any(|held| held.name == ticket)
                })
            };
            let left = view.held.iter().chain(&view.queue).find(|entry| !known(&entry.ticket));
            if let Some(left) = left.cloned() {
                return self.oracle.violated(format!("P3: {left:?} is left in limiter {limiter}"));
            }
        }
    }

    /// P2: a close comes to its end, and takes everything along.
    pub(super) fn check_end(&mut self) {
        self.over = true;
        if let Some(i) = self.instances.iter().position(|instance| instance.life == Life::Running) {
            return self.oracle.violated(format!("P2: i{i} does not come to its end"));
        }
        let pending = self.instances.iter().find(|i| i.life == Life::Ended && !i.pending.is_empty());
        if let Some(instance) = pending {
            let what = format!("P2: {} has ended, and not all of its requests", instance.name);
            self.oracle.violated(what);
        }
    }
}
