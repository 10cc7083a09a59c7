//! One run: virtual time, the queue of what happens next, and whom it happens to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;

use super::faults::{Fault, Faults};
use super::instance::{Instance, Life, Terms};
use super::oracle::Oracle;
use super::redis::Rewrite;
use super::redis::db::Bytes;
use super::rng::Rng;
use super::server::Server;
use super::trace::Trace;
use crate::Outage;
use crate::clock::{NEVER, Nanos, nanos};
use crate::store::Verb;
use crate::store::redis::test_access;

pub(super) const MS: Nanos = 1_000_000;

pub(super) enum Event {
    /// An instance's timers may be due.
    Wake(usize),
    /// Its link may connect.
    Pump(usize),
    Connected(usize),
    Subscribe(usize),
    /// Its subscription has ended.
    Unsubscribed(usize),
    Arrive(Box<Arrival>),
    Answer {
        instance: usize,
        connection: u64,
        round: u64,
        value: Value,
    },
    /// A batch's time is over, or its connection is cut.
    GiveUp {
        instance: usize,
        connection: u64,
        round: Option<u64>,
        why: &'static str,
    },
    Impatient {
        instance: usize,
        connection: u64,
        round: u64,
    },
    Message {
        instance: usize,
        subscription: u64,
        text: String,
    },
    Resume(usize),
    ServerUp(Option<usize>),
    /// A stopped server goes on.
    ServerOn,
    NotFull,
    /// The application gives a permit back.
    Release {
        instance: usize,
        token: u64,
    },
    Act,
    Heal,
    Operate,
    Demand,
    Judge,
    Empty,
    CloseAll,
    End,
}

/// A command that reaches the server.
pub(super) struct Arrival {
    pub instance: usize,
    pub connection: u64,
    pub round: u64,
    /// Of the server that it was sent to.
    pub run: Arc<str>,
    pub limiter: usize,
    pub verb: Verb,
    pub args: Vec<Bytes>,
    pub answered: bool,
}

pub(super) struct World {
    pub rng: Rng,
    pub now: Nanos,
    events: BTreeMap<(Nanos, u64), Event>,
    count: u64,
    numbers: u64,
    pub server: Server,
    /// What has arrived at a stopped server.
    pub stuck: Vec<Arrival>,
    pub instances: Vec<Instance>,
    pub limiters: Vec<(String, u64, Outage)>,
    pub terms: Terms,
    pub faults: Faults,
    pub oracle: Oracle,
    pub trace: Trace,
    /// Everything takes long before.
    pub lag_until: Nanos,
    /// The wall clock was set forwards; see [`Oracle`].
    pub wall_set_at: Option<Nanos>,
    /// Nothing goes wrong any more.
    pub healed: bool,
    /// And everybody has got over what did.
    pub calm_at: Nanos,
    pub over: bool,
    pub losses: BTreeMap<String, u64>,
    pub round: u64,
    /// Since when a free slot and a fitting head have been side by side, for each limiter.
    pub(super) idle_since: Vec<Option<Nanos>>,
}

impl World {
    pub(super) fn new(seed: u64, allowed: Faults, rewrite: Option<Rewrite>, trace: Trace) -> Self {
        crate::jitter::seed(seed);
        let mut rng = Rng::new(seed);
        let faults = Faults::chosen_by(rng.next()).and(allowed);
        let terms = Terms {
            lease: Duration::from_millis(rng.pick(&[1000, 2000, 3000])),
            poll: Duration::from_millis(rng.pick(&[100, 250, 1000])),
            io_timeout: Duration::from_millis(rng.pick(&[200, 500, 1000])),
            subscribe: rng.percent(80),
            max_hold: Duration::from_millis(if faults.has(Fault::Hold) { rng.pick(&[200, 1000]) } else { 0 }),
        };
        let names = ["a", "b {of} 100%", "c"];
        let count = rng.between(1, 3) as usize;
        let outages = [Outage::Wait, Outage::Wait, Outage::Wait, Outage::Fail, Outage::Local { limit: 2 }];
        let mut limiter = |name: &&str| (name.to_string(), rng.between(1, 4), rng.pick(&outages));
        let limiters: Vec<_> = names.iter().take(count).map(&mut limiter).collect();
        let mut world = World {
            rng,
            now: 1,
            events: BTreeMap::new(),
            count: 0,
            numbers: 0,
            server: Server::new(rewrite),
            stuck: Vec::new(),
            instances: Vec::new(),
            idle_since: vec![None; limiters.len()],
            oracle: Oracle::new(limiters.len()),
            limiters,
            terms,
            faults,
            trace,
            lag_until: 0,
            wall_set_at: None,
            healed: false,
            calm_at: NEVER,
            over: false,
            losses: BTreeMap::new(),
            round: 0,
        };
        world.trace.line(0, || format!("faults: {faults}; {:?} lease", terms.lease));
        for _ in 0..world.rng.between(2, 5) {
            world.join();
        }
        world.begin();
        world
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn join(&mut self) {
        let name = format!("i{}", self.instances.len());
        self.instances.push(Instance::open(&name, self.now, &self.terms, &self.limiters));
        self.trace.line(self.now, || format!("{name} opens"));
    }

    pub(super) fn push(&mut self, at: Nanos, event: Event) {
        self.count += 1;
        self.events.insert((at.max(self.now), self.count), event);
    }

    pub(super) fn later(&mut self, after: Nanos, event: Event) {
        self.push(self.now.saturating_add(after), event);
    }

    /// A chance, in per cent, if this kind of fault is in play.
    pub(super) fn strikes(&mut self, fault: Fault, percent: u64) -> bool {
        self.faults.has(fault) && !self.healed && self.rng.percent(percent)
    }

    pub(super) fn lease(&self) -> Nanos {
        nanos(self.terms.lease)
    }

    pub(super) fn latency(&mut self) -> Nanos {
        if self.lag_until > self.now {
            return self.rng.between(100 * MS, 1000 * MS);
        }
        let slow = self.rng.percent(3);
        self.rng.between(MS / 10, if slow { 60 * MS } else { 3 * MS })
    }

    /// The next thing happens. False: nothing does.
    pub(super) fn step(&mut self) -> bool {
        let Some(((at, _), event)) = self.events.pop_first() else { return false };
        if self.over {
            return false;
        }
        self.now = at;
        for instance in self.instances.iter_mut().filter(|i| i.runs()) {
            instance.advance(at);
        }
        self.happen(event);
        self.check();
        self.oracle.broken.is_none()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(arrival) => self.arrive(*arrival),
            Event::ServerUp(lost) => self.server_up(lost),
            Event::ServerOn if self.server.stopped_until <= self.now => {
                for arrival in std::mem::take(&mut self.stuck) {
                    self.later(0, Event::Arrive(Box::new(arrival)));
                }
            }
            Event::ServerOn => {}
            Event::NotFull => self.server.set_full(false),
            Event::Resume(i) => self.resume(i),
            Event::Act => self.act(),
            Event::Heal => self.heal(),
            Event::Operate => self.operate(),
            Event::Demand => self.demand(),
            Event::Judge => self.judge(),
            Event::Empty => self.check_empty(),
            Event::CloseAll => self.close_all(),
            Event::End => self.check_end(),
            event => {
                let Some(i) = event.instance() else { return };
                match self.instances[i].life {
                    Life::Suspended => self.instances[i].parked.push(event),
                    Life::Running => {
                        self.happen_to(i, event);
                        self.settle(i);
                    }
                    Life::Crashed | Life::Ended => {}
                }
            }
        }
    }

    fn happen_to(&mut self, i: usize, event: Event) {
        let link = &self.instances[i].link;
        match event {
            Event::Answer { connection, round, value, .. }
                if link.connection == Some(connection) && link.round.as_ref().is_some_and(|r| r.id == round) =>
            {
                self.answer(i, value);
            }
            Event::GiveUp { connection, round, why, .. }
                if link.connection == Some(connection)
                    && (round.is_none() || link.round.as_ref().map(|r| r.id) == round) =>
            {
                self.trace.line(self.now, || format!("i{i} gives its connection up: {why}"));
                self.instances[i].link.give_up(why);
            }
            Event::Impatient { connection, round, .. }
                if link.connection == Some(connection) && link.round.as_ref().is_some_and(|r| r.id == round) =>
            {
                self.trace.line(self.now, || {
                    format!("i{i} does not wait for {:?}", self.instances[i].link.round.as_ref().map(|r| &r.calls))
                });
                let round = self.instances[i].link.round.take();
                round.into_iter().for_each(super::link::Round::abandon);
            }
            Event::Connected(_) => self.connected(i),
            Event::Subscribe(_) => self.subscribe(i),
            Event::Unsubscribed(_) => self.unsubscribed(i),
            Event::Message { subscription, text, .. } if link.subscription == Some(subscription) => {
                let (limiter, epoch, notices) = test_access::told(&text);
                self.trace.line(self.now, || format!("i{i} hears {notices:?} of {limiter}"));
                if let Some(listener) = self.instances[i].listener().filter(|_| !notices.is_empty()) {
                    listener.notices(&limiter, epoch, notices);
                }
            }
            Event::Release { token, .. } => self.release(i, token),
            _ => {}
        }
    }

    /// Lets an instance do all that it wants to do now.
    pub(super) fn settle(&mut self, i: usize) {
        loop {
            let moved = self.pump(i);
            let wake = self.instances[i].engine.look_until_idle();
            let moved = self.take_completions(i) || moved;
            let Some(wake) = wake else {
                self.trace.line(self.now, || format!("i{i} has ended"));
                self.instances[i].life = Life::Ended;
                self.instances[i].link.connection = None;
                return;
            };
            let instance = &mut self.instances[i];
            let at = wake.saturating_sub(1);
            if wake != NEVER && (at < instance.wake_at || instance.wake_at <= self.now) {
                instance.wake_at = at.max(self.now + 1);
                let at = instance.wake_at;
                self.push(at, Event::Wake(i));
            }
            let link = &self.instances[i].link;
            let goes_on = moved || link.has_calls() && link.is_free();
            if !goes_on {
                return;
            }
        }
    }

    /// All connections of the server end.
    pub(super) fn cut_everybody(&mut self) {
        for i in 0..self.instances.len() {
            let after = self.latency();
            if let Some(connection) = self.instances[i].link.connection {
                self.later(after, Event::GiveUp { instance: i, connection, round: None, why: "the server is gone" });
            }
            self.instances[i].link.is_served = false;
            if self.instances[i].link.subscription.take().is_some() {
                self.later(after + 25 * MS, Event::Subscribe(i));
            }
        }
    }

    fn server_up(&mut self, lost: Option<usize>) {
        if !self.server.up {
            self.server.restart(lost);
            self.server.up = true;
            self.trace.line(self.now, || format!("the server is up again, {lost:?} writes lost"));
            self.tampered();
        }
    }

    /// The state was changed by other than scripts.
    pub(super) fn tampered(&mut self) {
        for limiter in 0..self.limiters.len() {
            let (view, wall) = (self.view(limiter), self.server.wall(self.now));
            self.oracle.tampered(limiter, view, wall);
        }
    }

    /// A stopped process goes on: its sockets and timers have waited for it.
    fn resume(&mut self, i: usize) {
        if self.instances[i].life != Life::Suspended {
            return;
        }
        self.trace.line(self.now, || format!("i{i} goes on"));
        let now = self.now;
        let instance = &mut self.instances[i];
        (instance.life, instance.late_until, instance.wake_at) = (Life::Running, now + 20 * MS, 0);
        instance.advance(now);
        for event in std::mem::take(&mut self.instances[i].parked) {
            self.later(MS, event);
        }
        let after = self.rng.between(0, 2 * MS);
        self.later(after, Event::Wake(i));
    }
}

impl Event {
    fn instance(&self) -> Option<usize> {
        match self {
            Event::Wake(i) | Event::Pump(i) | Event::Connected(i) | Event::Subscribe(i) | Event::Unsubscribed(i) => {
                Some(*i)
            }
            Event::Answer { instance, .. }
            | Event::GiveUp { instance, .. }
            | Event::Impatient { instance, .. }
            | Event::Message { instance, .. }
            | Event::Release { instance, .. } => Some(*instance),
            _ => None,
        }
    }
}
