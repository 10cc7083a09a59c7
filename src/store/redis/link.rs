//! The link thread: one connection for all commands of an instance. What is pending at the moment of a write travels
//! in one pipeline; callers do not queue behind one another's round trips, and their deadlines do not depend on this
//! thread, which may be stuck in a stalled connection for as long as the I/O timeout.
//!
//! Any I/O error ends the connection, and with it every call that was under way: whether those took effect is
//! unknown, so they are answered with `Away` and asked again on the next connection. That one has a higher
//! generation, which the scripts remember: a command of the old connection that was stuck in the network is refused.
//!
//! While there is something to reconnect for, the thread tries again and again, with growing pauses.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use redis::{Connection, Value};

use super::connect::{RedisOptions, self_test, server_info};
use super::encode::{By, Sender, command};
use super::fault::{self, Fault};
use super::keys::channel_of;
use super::probe::Probe;
use super::script::Script;
use super::{decode, wake_subscriber};
use crate::jitter;
use crate::store::{Answer, Call, Listener, Reply, StoreError, Verb};

/// The most calls in one pipeline.
const BATCH: usize = 512;
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// What the link thread is asked to do.
pub(super) enum Job {
    Call(Box<Call>, Reply),
    /// Ends the thread.
    Close,
}

pub(super) struct Link {
    pub options: RedisOptions,
    pub instance: Arc<str>,
    pub listener: Weak<dyn Listener>,
    pub jobs: Receiver<Job>,
    pub probe: Arc<Probe>,
    pub state: LinkState,
}

/// What the thread knows from one turn to the next.
#[derive(Default)]
pub(super) struct LinkState {
    open: Option<Open>,
    generation: u64,
    /// The server that passed the self-test.
    tested: Option<String>,
    pause: Duration,
    next_attempt: Option<Instant>,
    last_error: Option<StoreError>,
}

struct Open {
    connection: Connection,
    run_id: String,
}

type Pending = (Box<Call>, Reply);

impl Link {
    /// Runs until it is told to close, or nobody is left to tell it.
    pub(super) fn run(mut self) {
        while let Some(batch) = self.gather() {
            if self.state.open.is_none() && self.may_attempt() {
                self.attempt();
            }
            if batch.is_empty() {
                continue;
            }
            match self.state.open.take() {
                Some(open) => self.state.open = self.exchange(open, batch),
                None => self.fail(batch),
            }
        }
        if let Some(mut open) = self.state.open.take() {
            wake_subscriber(&mut open.connection, &self.instance);
        }
    }

    /// Waits for calls, or for the next attempt to connect. `None`: the end.
    fn gather(&self) -> Option<Vec<Pending>> {
        let mut batch = Vec::new();
        let first = match self.time_to_next_attempt() {
            None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => self.jobs.recv_timeout(left),
        };
        match first {
            Ok(Job::Call(call, reply)) => batch.push((call, reply)),
            Ok(Job::Close) | Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => return Some(batch),
        }
        while batch.len() < BATCH {
            match self.jobs.try_recv() {
                Ok(Job::Call(call, reply)) => batch.push((call, reply)),
                Ok(Job::Close) => {
                    self.fail(batch);
                    return None;
                }
                Err(_) => break,
            }
        }
        Some(batch)
    }

    /// `None`: connected, or nothing to connect for.
    fn time_to_next_attempt(&self) -> Option<Duration> {
        if self.state.open.is_some() || !self.wanted() {
            return None;
        }
        let next = self.state.next_attempt.unwrap_or_else(Instant::now);
        Some(next.saturating_duration_since(Instant::now()))
    }

    fn wanted(&self) -> bool {
        self.listener.upgrade().is_some_and(|listener| listener.wants_link())
    }

    fn may_attempt(&self) -> bool {
        self.state.next_attempt.is_none_or(|next| next <= Instant::now())
    }

    fn attempt(&mut self) {
        match self.connect() {
            Ok(open) => {
                self.state.open = Some(open);
                self.state.pause = Duration::ZERO;
                self.state.next_attempt = None;
                self.state.last_error = None;
                if let Some(listener) = self.listener.upgrade() {
                    listener.link_up();
                }
            }
            Err(error) => {
                self.state.pause = (self.state.pause * 2).clamp(FIRST_PAUSE, LAST_PAUSE);
                self.state.next_attempt = Some(Instant::now() + jitter::spread(self.state.pause));
                if let Some(listener) = self.listener.upgrade() {
                    listener.link_down(&error.to_string());
                }
                self.state.last_error = Some(error);
            }
        }
    }

    fn connect(&mut self) -> Result<Open, StoreError> {
        let mut connection = self.options.connect()?;
        let info = server_info(&mut connection)?;
        if self.state.tested.as_ref() != Some(&info.run_id) {
            self_test(&mut connection, &self.instance)?;
            self.state.tested = Some(info.run_id.clone());
        }
        self.state.generation += 1;
        Ok(Open { connection, run_id: info.run_id })
    }

    fn fail(&self, batch: Vec<Pending>) {
        let error = self.state.last_error.clone();
        let error = error.unwrap_or_else(|| StoreError::Away { detail: "the connection is closed".into() });
        for (_, reply) in batch {
            reply(Err(error.clone()));
        }
    }

    /// Sends a batch and reads its answers. Returns the connection if it is still good.
    fn exchange(&mut self, mut open: Open, batch: Vec<Pending>) -> Option<Open> {
        let probe = batch.iter().any(|(call, _)| matches!(call.verb, Verb::Sync { .. })) && self.probe.is_due();
        let from = Sender { instance: &self.instance, generation: self.state.generation, run_id: &open.run_id, probe };
        let calls: Vec<&Call> = batch.iter().map(|(call, _)| &**call).collect();
        let replies = Round::new(&mut open.connection, &self.options, &calls, &from).run();
        let (answers, broken) = replies;
        if probe && broken.is_none() {
            self.probe.sent();
        }
        // The connection is back in its place, or gone, before anybody hears of it.
        for ((_, reply), answer) in batch.into_iter().zip(answers) {
            reply(answer);
        }
        match broken {
            None => Some(open),
            Some(detail) => {
                tracing::debug!(detail, "the connection to Redis is given up");
                self.state.next_attempt = None;
                self.state.last_error = Some(StoreError::Away { detail });
                None
            }
        }
    }
}

/// One write and the reading of its answers; then, for scripts that the server did not know, one more.
struct Round<'a> {
    connection: &'a mut Connection,
    options: &'a RedisOptions,
    calls: &'a [&'a Call],
    from: &'a Sender<'a>,
    answers: Vec<Option<Result<Answer, StoreError>>>,
    broken: Option<String>,
}

impl<'a> Round<'a> {
    fn new(
        connection: &'a mut Connection,
        options: &'a RedisOptions,
        calls: &'a [&'a Call],
        from: &'a Sender<'a>,
    ) -> Self {
        Round { connection, options, calls, from, answers: vec![None; calls.len()], broken: None }
    }

    /// The answer to each call, and what broke the connection, if anything did.
    fn run(mut self) -> (Vec<Result<Answer, StoreError>>, Option<String>) {
        let all: Vec<usize> = (0..self.calls.len()).collect();
        let unknown = self.pass(&all, By::Sha);
        if !unknown.is_empty() && self.broken.is_none() {
            self.pass(&unknown, By::Source);
        }
        let lost = self.broken.clone().unwrap_or_else(|| "no answer".into());
        let or_lost = |answer: Option<_>| answer.unwrap_or_else(|| Err(StoreError::Away { detail: lost.clone() }));
        (self.answers.into_iter().map(or_lost).collect(), self.broken)
    }

    /// Sends these calls and reads their answers. Returns those that have to be sent by source: what the server did
    /// not know, and behind it whatever undoes an earlier call, so that a cancel stays behind its enqueue.
    fn pass(&mut self, which: &[usize], by: By) -> Vec<usize> {
        let mut bytes = Vec::with_capacity(which.len() * 256);
        let mut loaded: Vec<&str> = Vec::new();
        for index in which {
            let call = self.calls[*index];
            let name = Script::of(&call.verb).name;
            let first = by == By::Source && !loaded.contains(&name);
            if first {
                loaded.push(name);
            }
            command(call, self.from, if first { By::Source } else { By::Sha }).write_packed_command(&mut bytes);
        }
        let started = Instant::now();
        if let Err(error) = self.connection.send_packed_command(&bytes) {
            self.broken = Some(error.to_string());
            return Vec::new();
        }
        let mut unknown = Vec::new();
        for index in which {
            if started.elapsed() > 2 * self.options.io_timeout {
                self.broken = Some("the server is too slow".into());
                break;
            }
            match self.connection.recv_response() {
                Ok(value) => self.take(*index, value, &mut unknown),
                Err(error) => {
                    self.broken = Some(error.to_string());
                    break;
                }
            }
        }
        unknown
    }

    fn take(&mut self, index: usize, value: Value, unknown: &mut Vec<usize>) {
        let verb = &self.calls[index].verb;
        if !unknown.is_empty() && matches!(verb, Verb::Cancel(_) | Verb::Leave) {
            unknown.push(index);
        }
        let answer = match value {
            Value::ServerError(error) => match fault::of_reply(&error) {
                Fault::NoScript => {
                    if unknown.last() != Some(&index) {
                        unknown.push(index);
                    }
                    return;
                }
                Fault::Reconnect(detail) => {
                    self.broken.get_or_insert(detail.clone());
                    Err(StoreError::Away { detail })
                }
                Fault::Store(error) => Err(error),
            },
            value => decode::answer(verb, value).map_err(|garbled| {
                let detail = format!("{}: {garbled}", Script::of(verb).name);
                StoreError::Fatal(crate::Error::Server { detail })
            }),
        };
        self.answers[index] = Some(answer);
    }
}

/// Publishes an empty message to the instance's own channel, so that its subscriber looks up.
pub(super) fn publish_nothing(connection: &mut Connection, instance: &str) {
    let _ = redis::cmd("PUBLISH").arg(channel_of(instance)).arg("0 p").exec(connection);
}
