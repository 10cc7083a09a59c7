//! The link thread: one connection for all commands of an instance. What is pending at the moment of a write travels
//! in one pipeline; callers do not queue behind one another's round trips, and their deadlines do not depend on this
//! thread, which may be stuck in a stalled connection for as long as the I/O timeout.
//!
//! Any I/O error ends the connection, and with it every call that was under way: whether those took effect is
//! unknown, so they are answered with `Lost` and asked again on the next connection. That one has a higher
//! generation, which the scripts remember: a command of the old connection that was stuck in the network is refused.
//!
//! While there is something to reconnect for, the thread tries again and again, with growing pauses.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use redis::Connection;

use super::connect::{RedisOptions, self_test, server_info};
use super::encode::Sender;
use super::keys::channel_of;
use super::line::{Line, Open};
use super::probe::Probe;
use super::round::Round;
use super::wake_subscriber;
use crate::jitter;
use crate::store::{Call, Listener, Reply, StoreError, Verb};

/// The most calls in one pipeline.
const BATCH: usize = 512;
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// What the link thread is asked to do.
pub(super) enum Job {
    Call(Box<Call>, Reply),
    /// The connection is gone.
    Look,
    /// Ends the thread.
    Close,
}

pub(super) struct Link {
    pub options: RedisOptions,
    pub instance: Arc<str>,
    pub listener: Weak<dyn Listener>,
    pub jobs: Receiver<Job>,
    pub probe: Arc<Probe>,
    pub line: Arc<Line>,
    pub state: LinkState,
}

/// What the thread knows from one turn to the next.
#[derive(Default)]
pub(super) struct LinkState {
    generation: u64,
    /// The server that passed the self-test.
    tested: Option<String>,
    pause: Duration,
    next_attempt: Option<Instant>,
    last_error: Option<StoreError>,
}

type Pending = (Box<Call>, Reply);

impl Link {
    /// Runs until it is told to close, or nobody is left to tell it.
    pub(super) fn run(mut self) {
        while let Some(batch) = self.gather() {
            if self.line.is_empty() && self.may_attempt() {
                self.attempt();
            }
            if batch.is_empty() {
                continue;
            }
            match self.line.take() {
                Some(open) => self.exchange(open, batch),
                None => self.fail(batch),
            }
        }
        if let Some(mut open) = self.line.take() {
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
            Ok(Job::Look) | Err(RecvTimeoutError::Timeout) => return Some(batch),
        }
        while batch.len() < BATCH {
            match self.jobs.try_recv() {
                Ok(Job::Call(call, reply)) => batch.push((call, reply)),
                Ok(Job::Close) => {
                    self.fail(batch);
                    return None;
                }
                Ok(Job::Look) => {}
                Err(_) => break,
            }
        }
        Some(batch)
    }

    /// `None`: connected, or nothing to connect for.
    fn time_to_next_attempt(&self) -> Option<Duration> {
        if !self.line.is_empty() {
            return None;
        }
        self.longest_pause()?;
        let next = self.state.next_attempt.unwrap_or_else(Instant::now);
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// `None`: there is nothing to connect for.
    fn longest_pause(&self) -> Option<Duration> {
        self.listener.upgrade()?.wants_link().map(|pause| pause.clamp(FIRST_PAUSE, LAST_PAUSE))
    }

    fn may_attempt(&self) -> bool {
        self.state.next_attempt.is_none_or(|next| next <= Instant::now())
    }

    fn attempt(&mut self) {
        match self.connect() {
            Ok(open) => {
                self.line.put(Some(Box::new(open)));
                self.state.pause = Duration::ZERO;
                self.state.next_attempt = None;
                self.state.last_error = None;
                if let Some(listener) = self.listener.upgrade() {
                    listener.link_up();
                }
            }
            Err(error) => {
                let longest = self.longest_pause().unwrap_or(LAST_PAUSE);
                self.state.pause = (self.state.pause * 2).clamp(FIRST_PAUSE, longest);
                self.state.next_attempt = Some(Instant::now() + jitter::spread(self.state.pause));
                // A wrong password is no outage: whoever asks is told of it.
                let is_outage = !matches!(error, StoreError::Fatal(_));
                if let Some(listener) = self.listener.upgrade().filter(|_| is_outage) {
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
        Ok(Open {
            connection,
            run_id: info.run_id,
            generation: self.state.generation,
            read_timeout: self.options.io_timeout,
        })
    }

    fn fail(&self, batch: Vec<Pending>) {
        let error = self.state.last_error.clone();
        let error = error.unwrap_or_else(|| StoreError::Away { detail: "the connection is closed".into() });
        let count = batch.len();
        for (_, reply) in batch {
            reply(Err(error.clone()));
        }
        self.line.leave(count);
    }

    /// Sends a batch and reads its answers.
    fn exchange(&mut self, mut open: Box<Open>, batch: Vec<Pending>) {
        let probe = batch.iter().any(|(call, _)| matches!(call.verb, Verb::Sync { .. })) && self.probe.is_due();
        if open.wait_for(self.options.io_timeout).is_err() {
            self.line.put(None);
            return self.fail(batch);
        }
        let Open { connection, run_id, generation, .. } = &mut *open;
        let listens = self.probe.listens_on(run_id);
        let from = Sender { instance: &self.instance, generation: *generation, run_id, probe, listens };
        let calls: Vec<&Call> = batch.iter().map(|(call, _)| &**call).collect();
        if probe {
            self.probe.sending();
        }
        let outcome = Round::new(connection, 2 * self.options.io_timeout, &calls, &from).run();
        if probe && outcome.broken.is_some() {
            self.probe.not_sent();
        }
        // The connection is back in its place, or gone, before anybody hears of it.
        self.line.put(outcome.broken.is_none().then_some(open));
        if let Some(detail) = outcome.broken {
            tracing::debug!(detail, "the connection to Redis is given up");
            self.state.last_error = Some(StoreError::Away { detail });
            self.state.next_attempt = None;
            if outcome.elsewhere {
                // The same address leads to the same server, for a while: look closely before the next use of it.
                self.state.tested = None;
                self.state.next_attempt = Some(Instant::now() + jitter::spread(FIRST_PAUSE));
            }
        }
        let count = batch.len();
        for ((_, reply), answer) in batch.into_iter().zip(outcome.answers) {
            reply(answer);
        }
        self.line.leave(count);
    }
}

/// Publishes an empty message to the instance's own channel, so that its subscriber looks up.
pub(super) fn publish_nothing(connection: &mut Connection, instance: &str) {
    let _ = redis::cmd("PUBLISH").arg(channel_of(instance)).arg("0 p").exec(connection);
}
