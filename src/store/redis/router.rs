//! Which server a call goes to. The map of who has what is under a short lock that is never held across I/O or a call of
//! the engine; a [`super::scout`] keeps it true where limiters may move, and a redirection mends it at once.
//!
//! Calls of one limiter are handed to one node in their order. When the limiter moves, those that were sent to the old
//! node are sent again from there, and may come after younger ones; the engine bears that (see `Engine::entered_late`).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::Sender;

use super::cluster::named;
use super::connect::RedisOptions;
use super::fault::Redirect;
use super::link::Errand;
use super::map::Map;
use super::node::Node;
use super::probe::Probe;
use super::scout::Word;
use super::slots::View;
use super::url::{Address, Layout};
use crate::store::{Listener, StoreError};
use crate::sync::Mutex;
use crate::{Error, jitter};

/// How often a call is sent on before its caller is told to come back later.
const MOST_HOPS: u8 = 5;

pub(super) struct Router {
    pub options: RedisOptions,
    pub instance: Arc<str>,
    pub listener: Weak<dyn Listener>,
    pub probe: Probe,
    /// Numbers the connections of the instance, over all nodes: a limiter that moves takes the number of its last one along.
    pub generations: AtomicU64,
    map: Mutex<Map>,
    /// Where limiters may move: who finds out.
    scout: Mutex<Option<Sender<Word>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    closed: AtomicBool,
}

impl Router {
    pub(super) fn new(options: RedisOptions, instance: &Arc<str>, listener: Weak<dyn Listener>) -> Self {
        Router {
            instance: instance.clone(),
            listener,
            probe: Probe::new(options.subscribe),
            generations: AtomicU64::new(0),
            map: Mutex::new(Map::new(options.layout())),
            scout: Mutex::new(None),
            threads: Mutex::new(Vec::new()),
            closed: AtomicBool::new(false),
            options,
        }
    }

    /// Sends a call to where its limiter lives.
    pub(super) fn submit(self: &Arc<Self>, errand: Errand) {
        match self.owner(&errand.call.limiter) {
            Some(node) => self.deliver(&node, errand),
            None => self.ask_around(errand),
        }
    }

    pub(super) fn owner(&self, limiter: &str) -> Option<Arc<Node>> {
        self.map.lock().owner(limiter).cloned()
    }

    fn deliver(self: &Arc<Self>, node: &Arc<Node>, errand: Errand) {
        if let Err(errand) = node.take(self, errand) {
            self.again(errand);
        }
    }

    /// The node turned out not to be the right one (any more).
    pub(super) fn again(self: &Arc<Self>, mut errand: Errand) {
        errand.asking = false;
        if let Some(errand) = self.may_hop(errand) {
            self.submit(errand);
        }
    }

    fn may_hop(&self, mut errand: Errand) -> Option<Errand> {
        errand.hops += 1;
        let refusal = if self.is_closed() {
            StoreError::Fatal(Error::Closed)
        } else if errand.hops > MOST_HOPS {
            StoreError::Busy { detail: "the limiter moves from node to node".into() }
        } else {
            return Some(errand);
        };
        (errand.reply)(Err(refusal));
        None
    }

    /// Nobody is known to own it: the scout finds out.
    fn ask_around(&self, errand: Errand) {
        let unsent = match &*self.scout.lock() {
            Some(scout) => scout.send(Word::Errand(errand)).err().map(|unsent| unsent.0),
            None => Some(Word::Errand(errand)),
        };
        if let Some(Word::Errand(errand)) = unsent {
            (errand.reply)(Err(StoreError::Fatal(Error::Closed)));
        }
    }

    /// Something is not where it was thought to be.
    pub(super) fn poke_scout(&self) {
        if let Some(scout) = &*self.scout.lock() {
            let _ = scout.send(Word::Look);
        }
    }

    /// Whether limiters may be on several servers, which send callers on to one another.
    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.options.layout(), Layout::Cluster { .. })
    }

    /// `from` has sent its caller on.
    pub(super) fn redirect(self: &Arc<Self>, from: &Node, mut errand: Errand, redirect: &Redirect) {
        let address = named(&redirect.host, redirect.port, &from.address);
        let node = {
            let mut map = self.map.lock();
            let node = map.node_at(&address);
            if let Some(slot) = redirect.moved {
                map.move_slot(slot, &node);
            }
            node
        };
        if redirect.moved.is_some() {
            self.poke_scout(); // others will have moved with it
        }
        errand.asking = redirect.moved.is_none();
        if let Some(errand) = self.may_hop(errand) {
            self.deliver(&node, errand);
        }
    }

    /// Takes over a view.
    pub(super) fn learn(&self, view: &View) {
        let changes = self.map.lock().learn(view);
        changes.gone.iter().for_each(|node| node.retire());
        if changes.any()
            && let Some(listener) = self.listener.upgrade()
        {
            tracing::debug!(masters = view.parts.len(), epoch = view.epoch, "limiters have moved");
            listener.link_up(&|name| changes.concern(name));
        }
    }

    /// Calls about these limiters went down with a node's connection. They are asked again when that is up; but those that
    /// live elsewhere by now would wait for it in vain.
    pub(super) fn free_from(&self, node: &Arc<Node>, limiters: &[Arc<str>]) {
        let moved: HashSet<&str> =
            limiters.iter().map(|name| &**name).filter(|name| !self.lives_on(name, node)).collect();
        if let Some(listener) = self.listener.upgrade().filter(|_| !moved.is_empty()) {
            listener.link_up(&|name| moved.contains(name));
        }
    }

    /// The masters, and the epoch of the view they are from.
    pub(super) fn known(&self) -> (Vec<Address>, Option<u64>) {
        let map = self.map.lock();
        (map.masters(), map.epoch)
    }

    /// A scratch limiter that lives on this node; none: it owns nothing.
    pub(super) fn scratch_on(&self, node: &Arc<Node>) -> Result<Option<String>, StoreError> {
        let prefix = format!("selftest:{}", jitter::random_name().map_err(StoreError::Fatal)?);
        Ok(self.map.lock().name_on(node, &prefix))
    }

    /// What of the engine's a node is there for.
    pub(super) fn lives_on(&self, limiter: &str, node: &Arc<Node>) -> bool {
        self.map.lock().owner(limiter).is_some_and(|owner| Arc::ptr_eq(owner, node))
    }

    /// For how long a node's attempts to connect may pause at most; `None`: there is nothing to connect for.
    pub(super) fn longest_pause(&self, of: &dyn Fn(&str) -> bool) -> Option<Duration> {
        self.listener.upgrade()?.wants_link(of)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn set_scout(&self, scout: Sender<Word>) {
        let mut place = self.scout.lock();
        if !self.is_closed() {
            *place = Some(scout);
        }
    }

    /// Starts a thread, whose end `close` waits for.
    pub(super) fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(run)?;
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Ends all threads, and waits for their end.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.scout.lock().take();
        let nodes = {
            let mut map = self.map.lock();
            map.closed = true;
            map.nodes().to_vec()
        };
        // The links, as their last act, wake the subscriber.
        nodes.iter().for_each(|node| node.retire());
        let me = std::thread::current().id();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != me) {
            // A panic in it has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}
