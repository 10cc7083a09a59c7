//! Limiters in Redis, shared by every process of a cluster. Each verb is one Lua script (`lua/`), sent over one
//! pipelined connection by the [`link`] thread; grants arrive over a second one, by the [`pubsub`] thread.

mod acl;
#[doc(hidden)]
pub mod bench_support;
mod connect;
mod decode;
mod encode;
mod fault;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod inline;
mod keys;
mod line;
mod link;
mod probe;
mod pubsub;
mod round;
mod script;
#[cfg(all(test, not(loom)))]
pub(super) mod test_access;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use crossbeam_channel::Sender;
use once_cell::sync::OnceCell;

pub use acl::redis_acl;
pub(crate) use connect::RedisOptions;
use line::Line;
use link::{Job, Link, publish_nothing as wake_subscriber};
use probe::Probe;
use pubsub::Subscriber;

use super::{Call, Listener, Reply, Store, StoreError};
use crate::Error;
use crate::status::ServerInfo;
use crate::sync::Mutex;

/// One instance's way to Redis. Its threads start with the first call.
pub(crate) struct RedisStore {
    options: RedisOptions,
    instance: Arc<str>,
    listener: Weak<dyn Listener>,
    threads: OnceCell<Threads>,
    closed: Arc<AtomicBool>,
}

struct Threads {
    jobs: Sender<Job>,
    line: Arc<Line>,
    probe: Arc<Probe>,
    /// Dropped to cut the subscriber's pauses short.
    closing: Mutex<Option<Sender<()>>>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl RedisStore {
    pub(crate) fn new(options: RedisOptions, instance: &Arc<str>, listener: Weak<dyn Listener>) -> Self {
        RedisStore {
            options,
            instance: instance.clone(),
            listener,
            threads: OnceCell::new(),
            closed: Arc::new(AtomicBool::new(false)),
        }
    }

    fn threads(&self) -> Result<&Threads, StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Fatal(Error::Closed));
        }
        self.threads
            .get_or_try_init(|| self.start())
            .map_err(|error| StoreError::Fatal(Error::Internal { detail: format!("no thread to be had: {error}") }))
    }

    fn start(&self) -> std::io::Result<Threads> {
        let (jobs, receiver) = crossbeam_channel::unbounded();
        let (closing, closed) = crossbeam_channel::bounded(0);
        let probe = Arc::new(Probe::new(self.options.subscribe));
        let line = Arc::new(Line::new());
        let link = Link {
            options: self.options.clone(),
            instance: self.instance.clone(),
            listener: self.listener.clone(),
            jobs: receiver,
            probe: probe.clone(),
            line: line.clone(),
            state: link::LinkState::default(),
        };
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        let mut handles = vec![named("fairq-link").spawn(move || link.run())?];
        if self.options.subscribe {
            let subscriber = Subscriber {
                options: self.options.clone(),
                instance: self.instance.clone(),
                listener: self.listener.clone(),
                probe: probe.clone(),
                closed: self.closed.clone(),
                closing: closed,
            };
            handles.push(named("fairq-pubsub").spawn(move || subscriber.run())?);
        }
        Ok(Threads { jobs, line, probe, closing: Mutex::new(Some(closing)), handles: Mutex::new(handles) })
    }
}

impl Threads {
    /// Hands a call, which is counted already, to the link thread.
    fn hand_over(&self, call: Call, reply: Reply) {
        if let Err(unsent) = self.jobs.send(Job::Call(Box::new(call), reply))
            && let Job::Call(_, reply) = unsent.0
        {
            self.line.leave(1);
            reply(Err(StoreError::Fatal(Error::Closed)));
        }
    }
}

impl Store for RedisStore {
    fn submit(&self, call: Call, reply: Reply) {
        match self.threads() {
            Err(error) => reply(Err(error)),
            Ok(threads) => {
                threads.line.enter();
                threads.hand_over(call, reply);
            }
        }
    }

    fn submit_and_wait(&self, call: Call, reply: Reply) {
        let threads = match self.threads() {
            Err(error) => return reply(Err(error)),
            Ok(threads) => threads,
        };
        threads.line.enter();
        match threads.line.borrow() {
            None => threads.hand_over(call, reply),
            Some(mut open) => {
                let (answer, good) =
                    inline::exchange(&mut open, &self.instance, &threads.probe, self.options.io_timeout, &call);
                threads.line.put(good.then_some(open));
                threads.line.leave(1);
                reply(answer);
                if !good {
                    // Nobody would notice before the next call: the link thread has to connect anew.
                    let _ = threads.jobs.send(Job::Look);
                }
            }
        }
    }

    fn check(&self) -> Result<ServerInfo, StoreError> {
        let mut connection = self.options.connect()?;
        let mut info = connect::server_info(&mut connection)?;
        connect::self_test(&mut connection, &self.instance)?;
        connect::add_advice(&mut connection, &mut info);
        if self.options.subscribe {
            connect::subscribe(&mut connection, &self.instance)?;
        }
        Ok(info)
    }

    fn limiters(&self) -> Result<Vec<String>, StoreError> {
        let mut connection = self.options.connect()?;
        let mut names = Vec::new();
        let mut cursor: u64 = 0;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(keys::ALL_LIMITERS).arg("COUNT").arg(1000);
            let (next, page): (u64, Vec<String>) = scan.query(&mut connection).map_err(|e| fault::of_connect(&e))?;
            names.extend(page.iter().filter_map(|key| keys::limiter_in(key)));
            cursor = next;
            if cursor == 0 {
                names.sort();
                names.dedup();
                return Ok(names);
            }
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let Some(threads) = self.threads.get() else { return };
        // The link, as its last act, wakes the subscriber.
        let _ = threads.jobs.send(Job::Close);
        threads.closing.lock().take();
        let me = std::thread::current().id();
        for handle in threads.handles.lock().drain(..) {
            if handle.thread().id() != me {
                // A panic in it has been reported by the thread itself.
                let _ = handle.join();
            }
        }
    }
}
