//! What is between instances and the server, and what it does to what is sent.

use std::rc::Rc;
use std::time::Duration;

use ::redis::Value;

use super::faults::Fault;
use super::instance::Instance;
use super::oracle::Ran;
use super::redis::db::Bytes;
use super::redis::words;
use super::view::View;
use super::world::{Arrival, Event, MS, World};
use crate::clock::{Nanos, nanos};
use crate::store::Verb;

/// There is one server: whatever happens to the link concerns every limiter.
fn all(_: &str) -> bool {
    true
}

impl World {
    /// Moves the link on. True: it has done something.
    pub(super) fn pump(&mut self, i: usize) -> bool {
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
        let wanted = self.instances[i].listener().is_some_and(|listener| listener.wants_link(&all).is_some());
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
        if self.terms.subscribe && link_is_new(&self.instances[i]) {
            self.later(latency, Event::Subscribe(i));
        }
    }

    pub(super) fn connected(&mut self, i: usize) {
        let reachable = self.reachable(i);
        let (run, time) = (self.server.run_id(), self.time_told());
        let number = self.number();
        let longest = self.instances[i].listener().and_then(|listener| listener.wants_link(&all));
        let now = self.now;
        let link = &mut self.instances[i].link;
        link.connecting = false;
        if reachable {
            link.connection = Some(number);
            link.generation += 1;
            link.time = time;
            (link.run, link.pause, link.next_attempt, link.sent_until, link.answered_until) =
                (run, Duration::ZERO, 0, now, now);
            self.trace.line(now, || format!("i{i} connects, generation {}", self.instances[i].link.generation));
            if let Some(listener) = self.instances[i].listener() {
                listener.link_up(&all);
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
            listener.link_down(&all, "cannot connect");
        }
        self.instances[i].link.fail_all();
    }

    /// The server's time, as if the question for it had come there at once.
    fn time_told(&mut self) -> (u64, Nanos) {
        (self.server.wall(self.now) + self.latency() / 1000, self.now)
    }

    fn reachable(&self, i: usize) -> bool {
        let serves =
            self.server.up && self.server.stopped_until <= self.now && self.server.is_replica_until <= self.now;
        serves && self.instances[i].link.cut_until <= self.now
    }

    /// The subscription has ended: the process notices, says so, and subscribes again.
    pub(super) fn unsubscribed(&mut self, i: usize) {
        if self.instances[i].link.is_served {
            return; // again already
        }
        self.instances[i].link.subscription = None;
        if let Some(listener) = self.instances[i].listener() {
            listener.subscribed();
        }
        let pause = self.rng.between(25, 100) * MS;
        self.later(pause, Event::Subscribe(i));
    }

    pub(super) fn subscribe(&mut self, i: usize) {
        if self.instances[i].link.subscription.is_some() {
            return;
        }
        if !self.reachable(i) {
            let pause = self.rng.between(25, 1000) * MS;
            return self.later(pause, Event::Subscribe(i));
        }
        let (number, run) = (self.number(), self.server.run_id());
        let link = &mut self.instances[i].link;
        (link.subscription, link.subscribed_at, link.is_served) = (Some(number), run, true);
        self.trace.line(self.now, || format!("i{i} subscribes"));
        if let Some(listener) = self.instances[i].listener() {
            listener.subscribed();
        }
    }

    /// Sends a pass of the round that has begun.
    fn send(&mut self, i: usize) {
        let probe = self.rng.percent(10) && self.terms.subscribe;
        let link = &mut self.instances[i].link;
        let (caller, listens) = (link.caller(self.now), link.listens());
        let (Some(connection), Some(round)) = (link.connection, &mut link.round) else { return };
        let (id, run) = (round.id, caller.run.clone());
        let commands = round.commands(&caller, (probe, listens));
        let inline = round.calls.len() == 1 && round.is_first;
        let Some(round) = &self.instances[i].link.round else { return };
        let commands: Vec<(usize, Verb, Vec<Bytes>)> = commands
            .iter()
            .map(|(index, cmd)| {
                let call = &round.calls[*index];
                (self.limiter_named(&call.limiter), call.verb.clone(), words(cmd))
            })
            .collect();
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

    pub(super) fn arrive(&mut self, arrival: Arrival) {
        if !self.server.up || arrival.run != self.server.run_id() {
            return; // that server is no more
        }
        if self.server.stopped_until > self.now {
            return self.stuck.push(arrival);
        }
        self.server
            .set_listeners(self.instances.iter().filter(|i| i.is_subscribed()).map(|i| i.name.clone()).collect());
        let (value, published) = match self.server.is_replica_until > self.now {
            true => (read_only(), Vec::new()),
            false => self.server.execute(self.now, &arrival.args),
        };
        let Arrival { instance: i, connection, round, limiter, ref verb, .. } = arrival;
        let verdict = verdict(&value);
        self.trace.line(self.now, || {
            format!("  i{i}#{connection} {verb:?} of {limiter}: {value:?}").replace("bulk-string", "")
        });
        if let Value::ServerError(error) = &value
            && !matches!(error.code(), "NOSCRIPT" | "OOM" | "READONLY")
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

    pub(super) fn answer(&mut self, i: usize, value: Value) {
        let Some(round) = &mut self.instances[i].link.round else { return };
        if !round.take(value) {
            return;
        }
        if round.is_elsewhere() {
            let round = self.instances[i].link.round.take();
            self.instances[i].link.give_up("it is a replica now");
            round.into_iter().for_each(|round| round.finish());
        } else if round.next_pass() {
            if round.take_outdated() {
                let time = self.time_told();
                let link = &mut self.instances[i].link;
                (link.generation, link.time) = (link.generation + 1, time);
            }
            self.send(i);
        } else if let Some(round) = self.instances[i].link.round.take() {
            round.finish();
        }
    }

    fn publish(&mut self, channel: &str, text: &str) {
        let to = self.instances.iter().position(|i| Some(&*i.name) == channel.strip_prefix("fq:"));
        let Some(i) = to else { return };
        let Some(subscription) = self.instances[i].link.subscription.filter(|_| self.instances[i].is_subscribed())
        else {
            return;
        };
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
}

fn link_is_new(instance: &Instance) -> bool {
    instance.link.generation == 0 && instance.link.pause.is_zero()
}

/// What a server says that is no master any more.
fn read_only() -> Value {
    ::redis::parse_redis_value(b"-READONLY You can't write against a read only replica.\r\n").expect("an error reply")
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
