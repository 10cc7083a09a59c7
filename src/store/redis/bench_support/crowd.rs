//! A crowd: many simulated instances of one limiter, whose calls travel pipelined on one connection. They send what real
//! instances send and the scripts do for them what they do for those; only the threads are missing, and a connection for
//! each. So the line may be longer than processes would fit on one machine, and the server's time is all that is measured.

use std::collections::VecDeque;
use std::sync::Arc;

use redis::{Connection, Value};

use super::super::connect::{RedisOptions, server_info};
use super::super::encode::{By, Sender, pack};
use super::super::keys::{channel_of, keys_of};
use super::super::script::Script;
use super::super::{decode, examine, fault};
use super::{of_server, to_error};
use crate::settings::{Declaration, Settings, UNBOUNDED};
use crate::store::{Answer, Call, Header, Notice, StoreError, TicketNo, Verb, Verdict};
use crate::{ClientBuilder, Error};

/// Calls in one write: more would only fill buffers.
const PIPELINE: usize = 200;
/// So many of its first tickets does an instance name in a sync, as the engine does.
const HEADS: usize = 16;

/// Something that a crowd does, one script call each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// One more gets into line.
    Enqueue,
    /// A permit is given back, and the first in line gets it.
    HandOver,
    /// One from the middle of the line leaves it.
    Cancel,
    /// One from anywhere in the line asks for its place.
    Position,
    /// The heartbeat and poll of an instance.
    Sync,
}

/// The instances, and the line as they know it. Its keys are taken away when it is dropped.
pub struct Crowd {
    connection: Connection,
    /// Subscribed to the channels of all instances.
    news: Connection,
    run_id: String,
    instances: Vec<Arc<str>>,
    limiter: Arc<str>,
    declaration: Arc<Declaration>,
    epoch: u64,
    version: u64,
    limit: u64,
    next_no: TicketNo,
    waiting: VecDeque<TicketNo>,
    held: VecDeque<(TicketNo, u64)>,
    turns: usize,
    /// The scripts that the server knows by now.
    loaded: Vec<&'static str>,
}

impl Crowd {
    /// `instances` (as many as permits at most) that compete for `limit` permits, all of which are held by them, and nobody
    /// waits.
    ///
    /// # Errors
    /// Whatever keeps the server from answering.
    pub fn open(at: &ClientBuilder, instances: usize, limit: u64) -> Result<Crowd, Error> {
        let options = of_server(at)?;
        let instances = instances.clamp(1, limit.clamp(1, PIPELINE as u64) as usize); // so that all are in the first write
        let mut crowd = Crowd::connect(&options, instances, limit).map_err(to_error)?;
        crowd.pipelined(Deed::Enqueue, limit)?;
        Ok(crowd)
    }

    fn connect(options: &RedisOptions, instances: usize, limit: u64) -> Result<Crowd, StoreError> {
        let name = crate::jitter::random_name().map_err(StoreError::Fatal)?;
        let limiter = format!("bench:{name}:");
        let (mut connection, limiter) = examine::connect_first(options, &limiter)?;
        let (mut news, _) = examine::connect_first(options, &limiter)?;
        let instances: Vec<Arc<str>> = (0..instances).map(|index| format!("{name}-{index}").into()).collect();
        for instance in &instances {
            let subscribe = redis::cmd("SUBSCRIBE").arg(channel_of(instance)).get_packed_command();
            news.send_packed_command(&subscribe).map_err(|e| fault::of_connect(&e))?;
            news.recv_response().map_err(|e| fault::of_connect(&e))?;
        }
        let lease = 3_600_000; // no heartbeats but those that are asked for
        let settings = Settings { limit, max_queue: UNBOUNDED, lease, idle: 2 * lease, ..Settings::default() };
        let declaration = Declaration { declared: settings.words(), declares: true, ..Declaration::default() };
        Ok(Crowd {
            run_id: server_info(&mut connection)?.run_id,
            connection,
            news,
            instances,
            limiter: limiter.into(),
            declaration: Arc::new(declaration),
            epoch: 0,
            version: 0,
            limit,
            next_no: 1,
            waiting: VecDeque::new(),
            held: VecDeque::new(),
            turns: 0,
            loaded: Vec::new(),
        })
    }

    /// How many are in line.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Lets newcomers get into line until it is so long.
    ///
    /// # Errors
    /// Whatever keeps the server from answering.
    pub fn grow_to(&mut self, waiting: u64) -> Result<(), Error> {
        self.pipelined(Deed::Enqueue, waiting.saturating_sub(self.waiting()))
    }

    /// All permits are given back to the first in line, and as many newcomers get into it.
    ///
    /// # Errors
    /// Whatever keeps the server from answering.
    pub fn turn(&mut self) -> Result<(), Error> {
        let mut calls = Vec::new();
        for (no, fence) in std::mem::take(&mut self.held) {
            calls.push((self.owner(no), Verb::Release([(no, fence)].into())));
            calls.push(self.newcomer());
        }
        self.exchange(calls).map_err(to_error)
    }

    /// Does this so many times.
    ///
    /// # Errors
    /// Whatever keeps the server from answering.
    pub fn pipelined(&mut self, deed: Deed, times: u64) -> Result<(), Error> {
        let mut left = times;
        while left > 0 {
            let some = left.min(PIPELINE as u64);
            let calls = self.calls(deed, some);
            if calls.is_empty() {
                return Ok(()); // nobody is left who could
            }
            left -= some;
            self.exchange(calls).map_err(to_error)?;
        }
        Ok(())
    }

    fn calls(&mut self, deed: Deed, count: u64) -> Vec<(usize, Verb)> {
        let count = count as usize;
        match deed {
            Deed::Enqueue => (0..count).map(|_| self.newcomer()).collect(),
            Deed::HandOver => {
                let some: Vec<_> = self.held.drain(..count.min(self.held.len())).collect();
                some.into_iter().map(|permit| (self.owner(permit.0), Verb::Release([permit].into()))).collect()
            }
            Deed::Cancel => {
                let from = self.waiting.len().saturating_sub(count) / 2;
                let to = (from + count).min(self.waiting.len());
                let some: Vec<_> = self.waiting.drain(from..to).collect();
                some.into_iter().map(|no| (self.owner(no), Verb::Cancel([no].into()))).collect()
            }
            Deed::Position => {
                // Evenly over the line, as its members ask.
                let step = (self.waiting.len() / count.max(1)).max(1);
                let some = self.waiting.iter().step_by(step).take(count);
                some.map(|no| (self.owner(*no), Verb::Position([*no].into()))).collect()
            }
            Deed::Sync => (0..count).map(|_| self.sync()).collect(),
        }
    }

    fn newcomer(&mut self) -> (usize, Verb) {
        let no = self.next_no;
        self.next_no += 1;
        (self.owner(no), Verb::Acquire { no, cost: 1, may_wait: true, order: 0, label: "".into() })
    }

    /// Each instance by turns.
    fn sync(&mut self) -> (usize, Verb) {
        let instance = self.turns % self.instances.len();
        self.turns += 1;
        let near = self.waiting.iter().take(HEADS * self.instances.len());
        let heads = near.copied().filter(|no| self.owner(*no) == instance).take(HEADS).collect();
        (instance, Verb::Sync { version: self.version, heads })
    }

    fn owner(&self, no: TicketNo) -> usize {
        (no % self.instances.len() as u64) as usize
    }

    /// Sends all at once, takes the answers, and hears who was granted what.
    fn exchange(&mut self, calls: Vec<(usize, Verb)>) -> Result<(), StoreError> {
        let calls: Vec<(usize, Call)> = calls.into_iter().map(|(by, verb)| (by, self.call(verb))).collect();
        let bytes = self.packed(&calls);
        self.connection.send_packed_command(&bytes).map_err(|e| fault::of_connect(&e))?;
        for (_, call) in &calls {
            let value = self.connection.recv_response().map_err(|e| fault::of_connect(&e))?;
            let answer = read(call, value)?;
            (self.epoch, self.version) = (answer.epoch, answer.version);
            if self.declaration.declares {
                // It is said once, as a client does.
                self.declaration = Arc::new(Declaration { declares: false, ..Declaration::clone(&self.declaration) });
            }
            self.take(&call.verb, answer);
        }
        while (self.held.len() as u64) < self.limit && !self.waiting.is_empty() {
            self.hear()?;
        }
        Ok(())
    }

    fn call(&self, verb: Verb) -> Call {
        // With the first write they come as newcomers who have nothing to lose.
        let (epoch, version) = (self.epoch, self.version);
        let header = Header { epoch, bare: epoch == 0, version, declaration: self.declaration.clone() };
        Call { limiter: self.limiter.clone(), header, verb }
    }

    fn packed(&mut self, calls: &[(usize, Call)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (by, call) in calls {
            let name = Script::of(&call.verb).name;
            let known = self.loaded.contains(&name);
            if !known {
                self.loaded.push(name);
            }
            let (probe, listens) = (false, false);
            let instance = &self.instances[*by];
            let from = Sender { instance, generation: 1, run_id: &self.run_id, probe, listens, sent: u64::MAX };
            pack(&[call], &from, if known { By::Sha } else { By::Source }, &mut bytes);
        }
        bytes
    }

    fn take(&mut self, verb: &Verb, answer: Answer) {
        if let Verb::Acquire { no, .. } = verb {
            match answer.verdict {
                Verdict::Granted { fence, .. } => self.held.push_back((*no, fence)),
                _ => self.waiting.push_back(*no),
            }
        }
        answer.notices.into_iter().for_each(|notice| self.told(notice));
    }

    /// The next message to any of the instances.
    fn hear(&mut self) -> Result<(), StoreError> {
        let value = self.news.recv_response().map_err(|e| fault::of_connect(&e))?;
        let payload = match value {
            Value::Array(mut parts) if parts.len() == 3 => parts.pop(),
            Value::Push { mut data, .. } if data.len() == 3 => data.pop(),
            _ => None,
        };
        let Some(Value::BulkString(bytes)) = payload else { return Err(server("an odd message")) };
        let message = decode::message(&String::from_utf8_lossy(&bytes)).map_err(server)?;
        message.notices.into_iter().for_each(|notice| self.told(notice));
        Ok(())
    }

    fn told(&mut self, notice: Notice) {
        if let Notice::Granted { no, fence, .. } = notice {
            self.held.push_back((no, fence));
            // Grants follow the order; the news of two may cross on their ways.
            if let Some(at) = self.waiting.iter().position(|waiting| *waiting == no) {
                self.waiting.remove(at);
            }
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        // Should this fail, they expire by themselves.
        let _ = redis::cmd("UNLINK").arg(&keys_of(&self.limiter)[..]).exec(&mut self.connection);
    }
}

fn read(call: &Call, value: Value) -> Result<Answer, StoreError> {
    if let Value::ServerError(error) = &value {
        return Err(server(format_args!("{} {}", error.code(), error.details().unwrap_or_default())));
    }
    let answer = decode::answer(call, value).map_err(server)?;
    match answer.verdict {
        Verdict::Resync => Err(server("the state was lost during the measurement")),
        _ => Ok(answer),
    }
}

fn server(detail: impl std::fmt::Display) -> StoreError {
    StoreError::Fatal(Error::Server { detail: detail.to_string() })
}
