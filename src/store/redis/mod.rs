//! Limiters in Redis, shared by every process of a cluster. Each verb is one Lua script (`lua/`). From a call to its
//! server:
//!
//! - `url`: what the URL says: one server, a Redis Cluster, or sentinels that know the master; `access`: how to be let in
//!   there; `tls`; `greeting`; `connect`.
//! - [`router`]: which [`node`] a limiter lives on, by a [`map`] that the [`scout`] keeps true (`lookout`, `cluster`,
//!   `sentinel`: whom it asks; `slots`: what they tell).
//! - [`link`]: a node's thread, with one pipelined connection; `round`: one write of calls and the reading of their
//!   answers (`passes`, `encode`, `decode`, `fault`); `line`, `inline`: a caller may carry out its call itself;
//!   [`server_time`]: when a command was sent.
//! - [`pubsub`]: grants arrive over a connection of their own; `probe`: whether that is alive.

mod access;
mod acl;
#[doc(hidden)]
pub mod bench_support;
mod cluster;
mod connect;
mod decode;
mod encode;
mod examine;
mod fault;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod greeting;
mod inline;
mod keys;
mod line;
mod link;
mod lookout;
mod map;
mod node;
mod passes;
mod probe;
mod pubsub;
mod round;
mod router;
mod scout;
mod script;
mod sentinel;
mod server_time;
mod slots;
#[cfg(all(test, not(loom)))]
pub(crate) mod test_access;
mod tls;
mod url;

use std::sync::{Arc, Weak};

use crossbeam_channel::Sender;
use once_cell::sync::OnceCell;

use self::url::Layout;
pub(crate) use access::Access;
pub use acl::redis_acl;
pub(crate) use connect::RedisOptions;
use link::Errand;
use pubsub::Subscriber;
use round::Said;
use router::Router;
use scout::Scout;

use super::{Call, Listener, Reply, Store, StoreError};
use crate::Error;
use crate::status::ServerInfo;
use crate::sync::Mutex;

/// One instance's way to Redis. Its threads start with the first call.
pub(crate) struct RedisStore {
    router: Arc<Router>,
    started: OnceCell<Started>,
}

/// The threads that are there whatever is called.
struct Started {
    /// Dropped to cut the subscriber's pauses short.
    closing: Mutex<Option<Sender<()>>>,
}

impl RedisStore {
    pub(crate) fn new(options: RedisOptions, instance: &Arc<str>, listener: Weak<dyn Listener>) -> Self {
        RedisStore { router: Arc::new(Router::new(options, instance, listener)), started: OnceCell::new() }
    }

    /// The router, with its threads at work.
    fn router(&self) -> Result<&Arc<Router>, StoreError> {
        if self.router.is_closed() {
            return Err(StoreError::Fatal(Error::Closed));
        }
        let started = self.started.get_or_try_init(|| self.start());
        started
            .map(|_| &self.router)
            .map_err(|error| StoreError::Fatal(Error::Internal { detail: format!("no thread to be had: {error}") }))
    }

    fn start(&self) -> std::io::Result<Started> {
        if !matches!(self.router.options.layout(), Layout::Single) {
            let (words, receiver) = crossbeam_channel::unbounded();
            let scout = Scout::new(self.router.clone(), receiver);
            self.router.spawn("fairq-scout", move || scout.run())?;
            self.router.set_scout(words);
        }
        let (closing, closed) = crossbeam_channel::bounded(0);
        if self.router.options.subscribe {
            let subscriber = Subscriber { router: self.router.clone(), closing: closed };
            self.router.spawn("fairq-pubsub", move || subscriber.run())?;
        }
        Ok(Started { closing: Mutex::new(Some(closing)) })
    }
}

impl Store for RedisStore {
    fn submit(&self, call: Call, reply: Reply) {
        match self.router() {
            Err(error) => reply(Err(error)),
            Ok(router) => router.submit(Errand::new(call, reply)),
        }
    }

    fn submit_and_wait(&self, call: Call, reply: Reply) {
        let router = match self.router() {
            Err(error) => return reply(Err(error)),
            Ok(router) => router,
        };
        let Some(node) = router.owner(&call.limiter) else { return router.submit(Errand::new(call, reply)) };
        node.line.enter();
        let Some(mut open) = node.line.borrow() else {
            node.line.leave(1);
            return router.submit(Errand::new(call, reply));
        };
        let (said, good) = inline::exchange(&mut open, router, &call);
        let limiter = call.limiter.clone();
        node.line.put(good.then_some(open));
        node.line.leave(1);
        match said {
            Said::Answer(answer) => reply(answer),
            Said::Elsewhere(redirect) if router.is_cluster() => {
                router.redirect(&node, Errand::new(call, reply), &redirect);
            }
            Said::Elsewhere(_) => reply(Err(StoreError::away("the server sends its callers to another"))),
        }
        if !good {
            // Nobody would notice before the next call: the link thread has to connect anew.
            node.nudge();
            router.poke_scout();
            router.free_from(&node, &[limiter]);
        }
    }

    fn check(&self) -> Result<ServerInfo, StoreError> {
        examine::check(&self.router.options, &self.router.instance)
    }

    fn limiters(&self) -> Result<Vec<String>, StoreError> {
        examine::limiters(&self.router.options)
    }

    fn close(&self) {
        // A start that is under way ends before; one that comes later finds the door closed.
        let started = self.started.get();
        if let Some(started) = started {
            started.closing.lock().take();
        }
        self.router.close();
    }
}
