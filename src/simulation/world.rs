//! One run: virtual time, the queue of what happens next, and whom it happens to.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::redis::Value;

use super::faults::{Fault, Faults};
use super::instance::{Instance, Life, Terms};
use super::oracle::{Oracle, Ran};
use super::redis::db::Bytes;
use super::redis::{Rewrite, words};
use super::rng::Rng;
use super::server::Server;
use super::trace::Trace;
use super::view::View;
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
    instance: usize,
    connection: u64,
    round: u64,
    /// Of the server that it was sent to.
    run: Arc<str>,
    limiter: usize,
    verb: Verb,
    args: Vec<Bytes>,
    answered: bool,
}

pub(super) struct World {
    pub rng: Rng,
    pub now: Nanos,
    events: BTreeMap<(Nanos, u64), Event>,
    count: u64,
    numbers: u64,
    pub server: Server,
    /// What has arrived at a stopped server.
    stuck: Vec<Box<Arrival>>,
    pub instances: Vec<Instance>,
    pub limiters: Vec<(String, u64, Outage)>,
    pub terms: Terms,
    pub faults: Faults,
    pub oracle: Oracle,
    pub trace: Trace,
    /// The wall clock was set forwards; see [`Oracle`].
    pub wall_set_at: Option<Nanos>,
    /// Nothing goes wrong any more.
    pub healed: bool,
    /// And everybody has got over what did.
    pub calm_at: Nanos,
    pub over: bool,
    pub losses: BTreeMap<String, u64>,
    round: u64,
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
            Event::Arrive(arrival) => self.arrive(arrival),
            Event::ServerUp(lost) => self.server_up(lost),
            Event::ServerOn if self.server.stopped_until <= self.now => {
                for arrival in std::mem::take(&mut self.stuck) {
                    self.later(0, Event::Arrive(arrival));
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
            Event::GiveUp { connection, round, why, .. } if link.connection == Some(connection) => {
                if round.is_none() || link.round.as_ref().map(|r| r.id) == round {
                    self.trace.line(self.now, || format!("i{i} gives its connection up: {why}"));
                    self.instances[i].link.give_up(why);
                }
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
            if !moved && !(self.instances[i].link.has_calls() && self.instances[i].link.is_free()) {
                return;
            }
        }
    }

    /// Moves the link on. True: it has done something.
    fn pump(&mut self, i: usize) -> bool {
        let link = &self.instances[i].link;
        if !link.is_free() {
            return false;
        }
        if link.connection.is_some() {
            let sends = link.has_calls();
            if sends {
                self.round += 1;
                self.instances[i].link.begin_round(self.round);
                self.send(i);
            }
            return sends;
        }
        let wanted = self.instances[i].listener().is_some_and(|listener| listener.wants_link().is_some());
        let link = &mut self.instances[i].link;
        if !link.has_calls() && !wanted {
            return false;
        }
        if link.next_attempt <= self.now {
            link.connecting = true;
            self.attempt(i);
            return false;
        }
        let at = link.next_attempt;
        if wanted {
            self.push(at, Event::Pump(i));
        }
        let link = &self.instances[i].link;
        let fails = link.has_calls();
        if fails {
            link.fail_all();
        }
        fails
    }

    /// An attempt to connect: its outcome is known after two round trips, or when its time is over.
    fn attempt(&mut self, i: usize) {
        let latency = self.latency() + self.latency();
        let timeout = self.now + nanos(self.terms.io_timeout);
        let link = &self.instances[i].link;
        let reached = (self.now + latency).max(link.cut_until).max(self.server.stopped_until);
        self.push(reached.min(timeout), Event::Connected(i));
        if link_is_new(&self.instances[i]) {
            self.later(latency, Event::Subscribe(i));
        }
    }

    fn connected(&mut self, i: usize) {
        let reachable = self.reachable(i);
        let run = self.server.run_id();
        let number = self.number();
        let longest = self.instances[i].listener().and_then(|listener| listener.wants_link());
        let now = self.now;
        let link = &mut self.instances[i].link;
        link.connecting = false;
        if reachable {
            link.connection = Some(number);
            link.generation += 1;
            (link.run, link.pause, link.next_attempt, link.sent_until, link.answered_until) =
                (run, Duration::ZERO, 0, now, now);
            self.trace.line(now, || format!("i{i} connects, generation {}", self.instances[i].link.generation));
            if let Some(listener) = self.instances[i].listener() {
                listener.link_up();
            }
            return;
        }
        let longest =
            longest.unwrap_or(Duration::from_secs(1)).clamp(Duration::from_millis(25), Duration::from_secs(1));
        link.pause = (link.pause * 2).clamp(Duration::from_millis(25), longest);
        link.next_attempt = now + nanos(crate::jitter::spread(link.pause));
        link.last_error = "cannot connect".into();
        self.trace.line(now, || format!("i{i} cannot connect"));
        if let Some(listener) = self.instances[i].listener() {
            listener.link_down("cannot connect");
        }
        self.instances[i].link.fail_all();
    }

    fn reachable(&self, i: usize) -> bool {
        self.server.up && self.server.stopped_until <= self.now && self.instances[i].link.cut_until <= self.now
    }

    fn subscribe(&mut self, i: usize) {
        if self.instances[i].link.subscription.is_some() {
            return;
        }
        if !self.reachable(i) {
            let pause = self.rng.between(25, 1000) * MS;
            return self.later(pause, Event::Subscribe(i));
        }
        self.instances[i].link.subscription = Some(self.number());
        self.trace.line(self.now, || format!("i{i} subscribes"));
        if let Some(listener) = self.instances[i].listener() {
            listener.subscribed();
        }
    }

    /// Sends a pass of the round that has begun.
    fn send(&mut self, i: usize) {
        let probe = self.rng.percent(10);
        let link = &self.instances[i].link;
        let (Some(connection), Some(round)) = (link.connection, &link.round) else { return };
        let (id, run) = (round.id, link.run.clone());
        let commands: Vec<(usize, Verb, Vec<Bytes>)> = round
            .commands(&link.caller(), probe)
            .iter()
            .zip(&round.pass)
            .map(|(cmd, index)| {
                let call = &round.calls[*index];
                (self.limiter_named(&call.limiter), call.verb.clone(), words(cmd))
            })
            .collect();
        let inline = round.calls.len() == 1 && round.passes == 1;
        let count = commands.len();
        let cut = self.strikes(Fault::Requests, 4).then(|| self.rng.between(0, count as u64 - 1) as usize);
        let silent = self.strikes(Fault::Replies, 4).then(|| self.rng.between(0, count as u64 - 1) as usize);
        let latency = self.latency();
        let link = &self.instances[i].link;
        let mut at = (self.now + latency).max(link.sent_until.saturating_add(1)).max(link.cut_until);
        if self.strikes(Fault::Stalls, 3) {
            at = at.saturating_add(self.rng.between(0, 3 * self.lease()));
        }
        for (k, (limiter, verb, args)) in commands.into_iter().enumerate() {
            if cut.is_some_and(|cut| k >= cut) {
                break;
            }
            let answered = silent.is_none_or(|silent| k < silent);
            let (round, run) = (id, run.clone());
            let arrival = Arrival { instance: i, connection, round, run, limiter, verb, args, answered };
            self.push(at, Event::Arrive(Box::new(arrival)));
            at = at.saturating_add(1000);
        }
        self.instances[i].link.sent_until = at;
        let timeout = nanos(self.terms.io_timeout);
        let round = Some(id);
        self.later(timeout, Event::GiveUp { instance: i, connection, round, why: "timeout" });
        if cut.is_some() || silent.is_some() {
            let noticed = self.rng.between(MS, timeout);
            self.later(noticed, Event::GiveUp { instance: i, connection, round: None, why: "cut" });
        }
        if inline && self.strikes(Fault::Slow, 50) {
            self.later(30 * MS, Event::Impatient { instance: i, connection, round: id });
        }
    }

    fn limiter_named(&self, name: &str) -> usize {
        self.limiters.iter().position(|(known, ..)| known == name).expect("a limiter of this run")
    }

    fn arrive(&mut self, arrival: Box<Arrival>) {
        if !self.server.up || arrival.run != self.server.run_id() {
            return; // that server is no more
        }
        if self.server.stopped_until > self.now {
            return self.stuck.push(arrival);
        }
        let (value, published) = self.server.execute(self.now, &arrival.args);
        let Arrival { instance: i, connection, round, limiter, ref verb, .. } = *arrival;
        let verdict = verdict(&value);
        self.trace.line(self.now, || {
            format!("  i{i}#{connection} {verb:?} of {limiter}: {value:?}").replace("bulk-string", "")
        });
        if let Value::ServerError(error) = &value
            && !matches!(error.code(), "NOSCRIPT" | "OOM")
        {
            self.oracle.violated(format!("a script failed: {verb:?}: {error:?}"));
        }
        let wall = self.server.wall(self.now);
        let after = self.view(limiter);
        let caller = self.instances[i].name.clone();
        self.oracle.ran(&Ran { limiter, caller: &caller, verb, verdict: &verdict, wall }, after);
        for (channel, text) in published {
            self.publish(&channel, &text);
        }
        if arrival.answered {
            let at = self.now + self.latency();
            let link = &mut self.instances[i].link;
            let at = at.max(link.answered_until.saturating_add(1)).max(link.cut_until);
            link.answered_until = at;
            self.push(at, Event::Answer { instance: i, connection, round, value });
        }
    }

    pub(super) fn view(&self, limiter: usize) -> View {
        self.server.look(|db| View::of(db, &self.limiters[limiter].0))
    }

    fn answer(&mut self, i: usize, value: Value) {
        let Some(round) = &mut self.instances[i].link.round else { return };
        if !round.take(value) {
            return;
        }
        if round.next_pass() {
            self.send(i);
        } else if let Some(round) = self.instances[i].link.round.take() {
            round.finish("no answer");
        }
    }

    fn publish(&mut self, channel: &str, text: &str) {
        let to = self.instances.iter().position(|i| Some(&*i.name) == channel.strip_prefix("fq:"));
        let Some(i) = to else { return };
        let Some(subscription) = self.instances[i].link.subscription else { return };
        if self.instances[i].link.deaf_until > self.now || self.strikes(Fault::Messages, 25) {
            return;
        }
        let copies = if self.strikes(Fault::Messages, 20) { 2 } else { 1 };
        for _ in 0..copies {
            let mut at = (self.now + self.latency()).max(self.instances[i].link.cut_until);
            if self.strikes(Fault::Messages, 30) {
                at = at.saturating_add(self.rng.between(0, 2 * self.lease()));
            }
            self.push(at, Event::Message { instance: i, subscription, text: text.to_owned() });
        }
    }

    /// All connections of the server end.
    pub(super) fn cut_everybody(&mut self) {
        for i in 0..self.instances.len() {
            let after = self.latency();
            if let Some(connection) = self.instances[i].link.connection {
                self.later(after, Event::GiveUp { instance: i, connection, round: None, why: "the server is gone" });
            }
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

fn link_is_new(instance: &Instance) -> bool {
    instance.link.generation == 0 && instance.link.pause.is_zero()
}

fn verdict(value: &Value) -> Rc<str> {
    match value {
        Value::Array(fields) => match fields.first() {
            Some(Value::BulkString(word)) => String::from_utf8_lossy(word).into(),
            _ => "".into(),
        },
        Value::ServerError(error) => error.code().into(),
        _ => "".into(),
    }
}

impl Event {
    fn instance(&self) -> Option<usize> {
        match self {
            Event::Wake(i) | Event::Pump(i) | Event::Connected(i) | Event::Subscribe(i) => Some(*i),
            Event::Answer { instance, .. }
            | Event::GiveUp { instance, .. }
            | Event::Impatient { instance, .. }
            | Event::Message { instance, .. }
            | Event::Release { instance, .. } => Some(*instance),
            _ => None,
        }
    }
}
