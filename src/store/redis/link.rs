//! The link thread of a node: one connection for all its commands of an instance. What is pending at the moment of a
//! write travels in one pipeline; callers do not queue behind one another's round trips, and their deadlines do not depend
//! on this thread, which may be stuck in a stalled connection for as long as the I/O timeout.
//!
//! Any I/O error ends the connection, and with it every call that was under way: whether those took effect is
//! unknown, so they are answered with `Lost` and asked again on the next connection. That one has a higher
//! generation, which the scripts remember: a command of the old connection that was stuck in the network is refused.
//!
//! While there is something to reconnect for, the thread tries again and again, with growing pauses.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use redis::Connection;

use super::connect::{Tested, at, info_of_the_only_one, not_alone, self_test, server_info};
use super::fault;
use super::keys::channel_of;
use super::line::Open;
use super::node::Node;
use super::round::{Round, Said};
use super::router::Router;
use super::server_time::ServerTime;
use super::url::Address;
use crate::jitter;
use crate::store::{Call, Reply, StoreError, Verb};

/// The most calls in one pipeline.
const BATCH: usize = 512;
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(25);
pub(super) const LAST_PAUSE: Duration = Duration::from_secs(1);

/// A call on its way to the server that its limiter lives on.
pub(super) struct Errand {
    pub call: Box<Call>,
    pub reply: Reply,
    /// How often it was sent on.
    pub hops: u8,
    /// The slot is just moving: the new owner answers only who says that the old one has sent him.
    pub asking: bool,
}

impl Errand {
    pub(super) fn new(call: Call, reply: Reply) -> Self {
        Errand { call: Box::new(call), reply, hops: 0, asking: false }
    }
}

/// What the link thread is asked to do. It ends when nobody is left to ask.
pub(super) enum Job {
    Errand(Errand),
    /// The connection is gone.
    Look,
}

pub(super) struct Link {
    router: Arc<Router>,
    node: Arc<Node>,
    jobs: Receiver<Job>,
    /// The server that passed the self-test.
    tested: Option<String>,
    pause: Duration,
    next_attempt: Option<Instant>,
    last_error: Option<StoreError>,
}

impl Link {
    pub(super) fn new(router: Arc<Router>, node: Arc<Node>, jobs: Receiver<Job>) -> Self {
        Link { router, node, jobs, tested: None, pause: Duration::ZERO, next_attempt: None, last_error: None }
    }

    pub(super) fn run(mut self) {
        while let Some(batch) = self.gather() {
            if self.node.is_retired() {
                self.pass_on(batch);
                continue;
            }
            if self.node.line.is_empty() && self.may_attempt() {
                self.attempt();
            }
            if batch.is_empty() {
                continue;
            }
            match self.node.line.take() {
                Some(open) => self.exchange(open, batch),
                None => self.fail(batch),
            }
        }
        if let Some(mut open) = self.node.line.take()
            && self.router.is_closed()
        {
            wake_subscriber(&mut open.connection, &self.router.instance);
        }
    }

    /// Waits for calls, or for the next attempt to connect. `None`: the end.
    fn gather(&self) -> Option<Vec<Errand>> {
        let mut batch = Vec::new();
        let first = match self.time_to_next_attempt() {
            None => self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(left) => self.jobs.recv_timeout(left),
        };
        match first {
            Ok(Job::Errand(errand)) => batch.push(errand),
            Err(RecvTimeoutError::Disconnected) => return None,
            Ok(Job::Look) | Err(RecvTimeoutError::Timeout) => return Some(batch),
        }
        while batch.len() < BATCH {
            match self.jobs.try_recv() {
                Ok(Job::Errand(errand)) => batch.push(errand),
                Ok(Job::Look) => {}
                Err(_) => break,
            }
        }
        Some(batch)
    }

    /// `None`: connected, or nothing to connect for.
    fn time_to_next_attempt(&self) -> Option<Duration> {
        if self.node.is_retired() || !self.node.line.is_empty() {
            return None;
        }
        self.longest_pause()?;
        let next = self.next_attempt.unwrap_or_else(Instant::now);
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// `None`: there is nothing to connect for.
    fn longest_pause(&self) -> Option<Duration> {
        let pause = self.router.longest_pause(&|name| self.router.lives_on(name, &self.node))?;
        Some(pause.clamp(FIRST_PAUSE, LAST_PAUSE))
    }

    fn may_attempt(&self) -> bool {
        self.next_attempt.is_none_or(|next| next <= Instant::now())
    }

    fn attempt(&mut self) {
        let error = match self.connect() {
            Ok(open) => {
                self.node.line.put(Some(Box::new(open)));
                self.pause = Duration::ZERO;
                self.next_attempt = None;
                self.last_error = None;
                if let Some(listener) = self.router.listener.upgrade() {
                    listener.link_up(&|name| self.router.lives_on(name, &self.node));
                }
                return;
            }
            Err(StoreError::Away { detail, .. }) => StoreError::Away { detail, down: true },
            Err(error) => error,
        };
        self.router.poke_scout();
        let longest = self.longest_pause().unwrap_or(LAST_PAUSE);
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, longest);
        self.next_attempt = Some(Instant::now() + jitter::spread(self.pause));
        // A wrong password is no outage: whoever asks is told of it.
        let is_outage = !matches!(error, StoreError::Fatal(_));
        if let Some(listener) = self.router.listener.upgrade().filter(|_| is_outage) {
            listener.link_down(&|name| self.router.lives_on(name, &self.node), &error.to_string());
        }
        self.last_error = Some(error);
    }

    fn connect(&mut self) -> Result<Open, StoreError> {
        let options = &self.router.options;
        let mut connection = options.connect(&self.node.address)?;
        let alone = self.node.address == Address::AsGiven;
        let info = match alone {
            true => info_of_the_only_one(&mut connection, &options.target.shown),
            false => server_info(&mut connection),
        };
        let run_id = info.map_err(|error| at(&self.node.address, error))?.run_id;
        if self.tested.as_ref() != Some(&run_id)
            && let Some(scratch) = self.router.scratch_on(&self.node)?
        {
            let tested = self_test(&mut connection, &self.router.instance, &scratch);
            match tested.map_err(|error| at(&self.node.address, error))? {
                Tested::Fit => self.tested = Some(run_id.clone()),
                Tested::NotHere if alone => return Err(not_alone(&options.target.shown)),
                Tested::NotHere => {} // the first calls will tell where to go
            }
        }
        let time =
            ServerTime::ask(&mut connection).map_err(|error| at(&self.node.address, fault::of_connect(&error)))?;
        let generation = self.router.generations.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Open { connection, run_id, time, generation, read_timeout: options.io_timeout })
    }

    fn fail(&self, batch: Vec<Errand>) {
        let error = self.last_error.clone();
        let error = error.unwrap_or_else(|| StoreError::away("the connection is closed"));
        let limiters: Vec<Arc<str>> = batch.iter().map(|errand| errand.call.limiter.clone()).collect();
        self.node.line.leave(batch.len());
        for errand in batch {
            (errand.reply)(Err(error.clone()));
        }
        self.router.free_from(&self.node, &limiters);
    }

    /// The node is retired: whoever owns the limiters now is to be asked.
    fn pass_on(&self, batch: Vec<Errand>) {
        self.node.line.leave(batch.len());
        for errand in batch {
            self.router.again(errand);
        }
    }

    /// Sends a batch and reads its answers.
    fn exchange(&mut self, mut open: Box<Open>, batch: Vec<Errand>) {
        let router = self.router.clone();
        let syncs = batch.iter().any(|errand| matches!(errand.call.verb, Verb::Sync { .. }));
        let probe = syncs && router.probe.is_due();
        if open.wait_for(router.options.io_timeout).is_err() {
            self.node.line.put(None);
            return self.fail(batch);
        }
        let calls: Vec<(&Call, bool)> = batch.iter().map(|errand| (&*errand.call, errand.asking)).collect();
        if probe {
            router.probe.sending();
        }
        let round = Round::new(&mut open, &router, &calls);
        let outcome = round.publishing(probe).run(2 * router.options.io_timeout);
        if probe && outcome.broken.is_some() {
            router.probe.not_sent();
        }
        // A server that the URL names alone has no others to send anybody to.
        let misled = !router.is_cluster() && outcome.said.iter().any(|said| matches!(said, Said::Elsewhere(_)));
        let broken = outcome.broken.or_else(|| misled.then(|| "it sends its callers to another server".into()));
        // The connection is back in its place, or gone, before anybody hears of it.
        self.node.line.put(broken.is_none().then_some(open));
        if outcome.unsettled || broken.is_some() {
            router.poke_scout();
        }
        if let Some(detail) = broken {
            tracing::debug!(detail, "the connection to Redis is given up");
            self.last_error = Some(StoreError::away(detail));
            self.next_attempt = None;
            if outcome.elsewhere || misled {
                // The same address leads to the same server, for a while: look closely before the next use of it.
                self.tested = None;
                self.next_attempt = Some(Instant::now() + jitter::spread(FIRST_PAUSE));
            }
        }
        let went_down = self.last_error.is_some();
        let limiters: Vec<Arc<str>> = match went_down {
            true => batch.iter().map(|errand| errand.call.limiter.clone()).collect(),
            false => Vec::new(),
        };
        self.answer(batch, outcome.said);
        self.router.free_from(&self.node, &limiters);
    }

    fn answer(&self, batch: Vec<Errand>, said: Vec<Said>) {
        self.node.line.leave(batch.len());
        for (errand, said) in batch.into_iter().zip(said) {
            match said {
                Said::Answer(answer) => (errand.reply)(answer),
                Said::Elsewhere(redirect) if self.router.is_cluster() => {
                    self.router.redirect(&self.node, errand, &redirect);
                }
                Said::Elsewhere(_) => (errand.reply)(Err(StoreError::away("the server sends its callers to another"))),
            }
        }
    }
}

/// Publishes an empty message to the instance's own channel, so that its subscriber looks up.
fn wake_subscriber(connection: &mut Connection, instance: &str) {
    let _ = redis::cmd("PUBLISH").arg(channel_of(instance)).arg("0 p").exec(connection);
}
