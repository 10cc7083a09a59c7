//! What applications, operators and misfortune do in a run.

use std::time::Duration;

use super::faults::Fault;
use super::instance::{Held, Life, Pending};
use super::world::{Event, MS, World};
use crate::clock::{NEVER, nanos};
use crate::settings::Change;
use crate::store::Verb;
use crate::store::redis::test_access;
use crate::{Completion, Error, Event as Told, Permit, Request};

/// How long misfortune lasts, in leases.
const TROUBLE: u64 = 10;

impl World {
    pub(super) fn begin(&mut self) {
        self.later(MS, Event::Act);
        let end = TROUBLE * self.lease();
        self.later(end, Event::Heal);
    }

    /// Somebody does something.
    pub(super) fn act(&mut self) {
        if self.healed {
            return;
        }
        let pause = self.rng.between(1, 150) * MS;
        self.later(pause, Event::Act);
        let running: Vec<usize> =
            (0..self.instances.len()).filter(|i| self.instances[*i].runs() && !self.instances[*i].closing).collect();
        if running.is_empty() {
            return self.join();
        }
        let i = self.rng.pick(&running);
        match self.rng.between(0, 99) {
            0..=49 => self.start(i, false),
            50..=57 => self.cancel(i),
            58..=61 => self.put_back(i),
            _ => self.misfortune(i, running.len()),
        }
        self.settle(i);
    }

    /// A request begins.
    pub(super) fn start(&mut self, i: usize, must: bool) {
        let limiter = self.rng.between(0, self.limiters.len() as u64 - 1) as usize;
        let limit = self.limiters[limiter].1;
        let lease = self.terms.lease.as_millis() as u64;
        let wait = match self.rng.between(0, 9) {
            _ if must => 60_000,
            0 => 0,
            1 => 20,
            2..=6 => self.rng.between(100, lease),
            _ => self.rng.between(lease, 6 * lease),
        };
        let cost = if self.rng.percent(70) { 1 } else { self.rng.between(1, if must { limit } else { 3 }) };
        let request = Request::new().cost(cost).max_wait(Duration::from_millis(wait)).label(if wait % 2 == 0 {
            ""
        } else {
            "odd one"
        });
        let token = self.number();
        let instance = &mut self.instances[i];
        let started = instance.limiters[limiter].acquire_start(&request, &instance.completions, token);
        let Ok(ticket) = started else { return };
        let patience = if wait == 0 { instance.engine.patience } else { Duration::from_millis(wait) };
        let deadline = self.now + nanos(patience);
        self.trace.line(self.now, || format!("i{i} wants {cost} of {limiter}: {}, for {wait} ms", ticket.id()));
        instance.pending.insert(token, Pending { limiter, ticket, deadline, again: None, must });
    }

    fn cancel(&mut self, i: usize) {
        let Some(token) = self.instances[i].any_pending(&mut self.rng) else { return };
        let pending = &self.instances[i].pending[&token];
        self.trace.line(self.now, || format!("i{i} cancels {}", pending.ticket.id()));
        pending.ticket.cancel();
    }

    pub(super) fn release(&mut self, i: usize, token: u64) {
        let Some(held) = self.instances[i].held.remove(&token) else { return };
        self.trace.line(self.now, || format!("i{i} gives {} back", held.name));
    }

    fn put_back(&mut self, i: usize) {
        let Some(token) = self.instances[i].any_held(&mut self.rng) else { return };
        let Some(Held { limiter, name, permit }) = self.instances[i].held.remove(&token) else { return };
        let wait = self.rng.between(0, 2 * self.lease());
        self.trace.line(self.now, || format!("i{i} puts {name} back"));
        let patience = if wait == 0 { nanos(self.instances[i].engine.patience) } else { wait };
        let deadline = self.now + patience;
        if let Ok(again) = permit.put_back_by_hand(Duration::from_nanos(wait)) {
            let ticket = crate::Ticket::new(again.clone());
            let pending = Pending { limiter, ticket, deadline, again: Some(again), must: false };
            self.instances[i].pending.insert(token, pending);
        }
    }

    /// What has ended, and what has become of permits.
    pub(super) fn take_completions(&mut self, i: usize) -> bool {
        let told = self.instances[i].completions.poll_events(1000, Duration::ZERO);
        let mut any = !told.is_empty();
        for event in told {
            if let Told::Done(Completion { token, result }) = event {
                self.completed(i, token, result);
            }
        }
        let again = self.instances[i].pending.iter().filter_map(|(token, pending)| {
            let waiter = pending.again.as_ref()?;
            (pending.ticket.state() != crate::TicketState::Pending).then(|| (*token, waiter.clone()))
        });
        for (token, waiter) in again.collect::<Vec<_>>() {
            any = true;
            let result = waiter.outcome().map(|()| Permit::new(waiter.clone()));
            self.completed(i, token, result);
        }
        any
    }

    fn completed(&mut self, i: usize, token: u64, result: Result<Permit, Error>) {
        let now = self.now;
        let Some(pending) = self.instances[i].pending.remove(&token) else {
            return self.oracle.violated(format!("P2: request {token} of i{i} ends twice: {result:?}"));
        };
        let name = pending.ticket.id();
        self.trace.line(now, || format!("i{i} {name}: {result:?}"));
        let late = now > pending.deadline + MS && now > self.instances[i].late_until;
        if late {
            self.oracle.violated(format!("P2: {name} ends {} ms late", (now - pending.deadline) / MS));
        }
        match result {
            Ok(permit) => {
                let hold = match self.rng.between(0, 9) {
                    _ if self.healed => 20 * MS,
                    0 => 0,
                    1..=6 => self.rng.between(MS, self.lease() / 2),
                    _ => self.rng.between(MS, 3 * self.lease()),
                };
                self.later(hold, Event::Release { instance: i, token });
                self.instances[i].held.insert(token, Held { limiter: pending.limiter, name, permit });
            }
            Err(Error::Internal { detail }) => self.oracle.violated(format!("{name}: {detail}")),
            Err(Error::Server { detail } | Error::Config { detail }) => {
                self.oracle.violated(format!("{name}: {detail}"));
            }
            Err(error) if pending.must => self.oracle.violated(format!("P7: {name} ends with {error}")),
            Err(_) => {}
        }
    }

    /// One of the kinds that are in play strikes, perhaps.
    fn misfortune(&mut self, i: usize, running: usize) {
        let kinds: Vec<Fault> = self.faults.kinds().collect();
        if kinds.is_empty() {
            return;
        }
        let kind = self.rng.pick(&kinds);
        if !self.rng.percent(30) {
            return;
        }
        let lease = self.lease();
        let limiter = self.rng.between(0, self.limiters.len() as u64 - 1) as usize;
        self.trace.line(self.now, || format!("!! {kind:?} (i{i}, limiter {limiter})"));
        match kind {
            Fault::Partition => self.instances[i].link.cut_until = self.now + self.rng.between(MS, 2 * lease),
            Fault::Deaf => self.instances[i].link.deaf_until = self.now + self.rng.between(MS, 4 * lease),
            Fault::Scripts => self.server.forget_scripts(),
            Fault::Restart => self.restart(Some(0)),
            Fault::LostWrites => {
                let lost = self.rng.between(1, 20) as usize;
                self.restart(Some(lost));
            }
            Fault::LostAll => self.restart(None),
            Fault::Flush => {
                self.server.flush();
                self.tampered();
            }
            Fault::Keys => {
                let keys = test_access::keys(&self.limiters[limiter].0);
                let key = self.rng.between(0, 3) as usize;
                self.server.delete(&keys[key]);
                self.tampered();
            }
            Fault::Stop => {
                let until = self.now + self.rng.between(MS, 3 * lease);
                self.server.stopped_until = self.server.stopped_until.max(until);
                self.push(until, Event::ServerOn);
            }
            Fault::Wall => self.set_wall(),
            Fault::Full => {
                self.server.set_full(true);
                let pause = self.rng.between(MS, lease);
                self.later(pause, Event::NotFull);
            }
            Fault::Crash if running > 1 => self.instances[i].life = Life::Crashed,
            Fault::Suspend => {
                let until = self.now + self.rng.between(MS, 3 * lease);
                self.instances[i].life = Life::Suspended;
                self.push(until, Event::Resume(i));
            }
            Fault::Close => self.close_one(i),
            Fault::Operator => self.reconfigure(i, limiter),
            Fault::Revoke => self.revoke(i, limiter),
            Fault::Unsubscribe if self.instances[i].link.subscription.is_some() => {
                let link = &mut self.instances[i].link;
                link.is_served = false;
                let noticed = (self.now + MS).max(link.cut_until);
                self.push(noticed, Event::Unsubscribed(i));
            }
            Fault::Replica => {
                self.server.is_replica_until = self.now + self.rng.between(MS, lease);
            }
            Fault::Lag => self.lag_until = self.now + self.rng.between(MS, 3 * lease),
            _ => {}
        }
    }

    fn restart(&mut self, lost: Option<usize>) {
        if !self.server.up {
            return;
        }
        self.server.up = false;
        self.cut_everybody();
        let down = if self.rng.percent(50) { 50 * MS } else { 2 * self.lease() };
        let down = self.rng.between(MS, down);
        self.later(down, Event::ServerUp(lost));
    }

    fn set_wall(&mut self) {
        let lease = self.lease() / 1000;
        let by = self.rng.between(0, 6 * lease) as i64 - 3 * lease as i64;
        self.server.set_wall_by(by);
        if by < 0 {
            self.oracle.set_back();
        }
        if by > 0 {
            self.wall_set_at = Some(self.now);
        }
        self.trace.line(self.now, || format!("   by {by} us"));
    }

    fn close_one(&mut self, i: usize) {
        if self.rng.percent(40) {
            return self.join();
        }
        let drain = Duration::from_nanos(if self.rng.percent(50) { 0 } else { self.rng.between(0, self.lease()) });
        self.close(i, drain);
    }

    fn close(&mut self, i: usize, drain: Duration) {
        self.trace.line(self.now, || format!("i{i} closes, drains for {drain:?}"));
        self.instances[i].closing = true;
        self.instances[i].engine.close_by_hand(drain);
    }

    fn reconfigure(&mut self, i: usize, limiter: usize) {
        let lease = self.terms.lease.as_millis() as u64;
        let change = match self.rng.between(0, 6) {
            6 => Change::new().lease(Duration::from_millis(self.rng.between(lease / 4, 2 * lease))),
            0..=2 => Change::new().limit(self.rng.between(0, 5)),
            3 => Change::new().pause(),
            4 => Change::new().resume(),
            _ => Change::new().reset(),
        };
        self.instances[i].limiters[limiter].ask_by_hand(Verb::Configure(change));
    }

    fn revoke(&mut self, i: usize, limiter: usize) {
        let view = self.oracle.view(limiter);
        let all: Vec<String> = view.held.iter().chain(&view.queue).map(|entry| entry.ticket.clone()).collect();
        if !all.is_empty() {
            let at = self.rng.between(0, all.len() as u64 - 1) as usize;
            self.instances[i].limiters[limiter].ask_by_hand(Verb::Revoke(all[at].clone()));
        }
    }

    /// Misfortune is over, but for one instance perhaps, which is never reached again.
    pub(super) fn heal(&mut self) {
        self.trace.line(self.now, || "all is well from here on".into());
        self.healed = true;
        self.server.set_full(false);
        (self.server.is_replica_until, self.lag_until) = (0, 0);
        self.server.stopped_until = self.server.stopped_until.min(self.now);
        self.later(0, Event::ServerOn);
        self.later(0, Event::ServerUp(Some(0)));
        let lonely =
            (self.faults.has(Fault::Partition) && self.instances.len() > 2 && self.rng.percent(50)).then_some(0);
        for i in 0..self.instances.len() {
            let link = &mut self.instances[i].link;
            link.cut_until = if lonely == Some(i) { NEVER } else { link.cut_until.min(self.now) };
            link.deaf_until = 0;
            self.later(0, Event::Resume(i));
        }
        if (0..self.instances.len())
            .all(|i| lonely == Some(i) || !self.instances[i].runs() || self.instances[i].closing)
        {
            self.join();
        }
        let lease = self.lease();
        for part in [0, 1, 2, 4] {
            self.later(part * lease / 2 + 100 * MS, Event::Operate);
        }
        // Somebody stays to look, so that the dead are found.
        for part in 0..14 {
            self.later((80 + part) * lease / 10 + 100 * MS, Event::Operate);
        }
        self.calm_at = self.now + 2 * lease;
        self.later(2 * lease + 200 * MS, Event::Demand);
        self.later(8 * lease, Event::Judge);
        self.later(10 * lease, Event::Empty);
        self.later(10 * lease + MS, Event::CloseAll);
        self.later(10 * lease + 5000 * MS, Event::End);
    }

    pub(super) fn healthy(&self) -> Vec<usize> {
        let healthy = |i: &usize| {
            let instance = &self.instances[*i];
            instance.runs() && !instance.closing && instance.link.cut_until <= self.now
        };
        (0..self.instances.len()).filter(healthy).collect()
    }

    /// The operator has everything as it was declared.
    pub(super) fn operate(&mut self) {
        let Some(i) = self.healthy().first().copied() else { return };
        for limiter in 0..self.limiters.len() {
            self.instances[i].limiters[limiter].ask_by_hand(Verb::Configure(Change::new().reset()));
        }
        self.settle(i);
    }

    /// Requests that have to be served.
    pub(super) fn demand(&mut self) {
        for i in self.healthy() {
            for _ in 0..3 {
                self.start(i, true);
            }
            self.settle(i);
        }
    }

    pub(super) fn close_all(&mut self) {
        for i in 0..self.instances.len() {
            if self.instances[i].runs() {
                self.close(i, Duration::ZERO);
                self.settle(i);
            }
        }
    }
}
