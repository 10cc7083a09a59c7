//! A TCP proxy that breaks the network between a client and a server.
//!
//! The controls may be used from any thread at any time; they decide what
//! happens to the next *chunk*, which is what one `read` returned. Clients of
//! Redis write a whole command at once, so a chunk is a command or a batch.
//!
//! One-shot faults (`drop_*`, `hold_*`, `delay_next_*`) wait for their chunk;
//! [`Proxy::fired`] counts those that met one, so that a test can make sure
//! that its fault really happened.

mod accept;
mod link;
mod rules;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::wait::{SOON, eventually};
use accept::Shared;
use link::Link;
use rules::{CatchId, Mode, Stage};

/// A running proxy; its threads end when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// A request that the proxy caught and has not yet delivered.
pub struct Held {
    id: CatchId,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy to the server on a loopback port.
    pub fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind the proxy");
        let address = listener.local_addr().expect("the proxy's address");
        let shared = Arc::new(Shared::new(port));
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept::run(&listener, &shared))
        };
        Proxy { address, shared, acceptor: Some(acceptor) }
    }

    /// The address for clients.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Sends new connections to another server (a fail-over).
    pub fn retarget(&self, port: u16) {
        self.shared.retarget(port);
    }

    /// Back to normal: no mode, latency, pub/sub block or waiting one-shot
    /// fault remains. Bytes held up by a hang are delivered now, as TCP would;
    /// requests that were caught stay with their [`Held`] or delay.
    pub fn heal(&self) {
        self.shared.change(|rules| rules.heal());
    }

    /// The same as [`Proxy::heal`].
    pub fn pass(&self) {
        self.heal();
    }

    /// Closes new connections at once; live ones go on (see [`Proxy::cut`]).
    pub fn refuse(&self) {
        self.shared.change(|rules| rules.mode = Mode::Refuse);
    }

    /// Closes all live connections now, with what they had under way. Caught
    /// requests are no part of them any more.
    pub fn cut(&self) {
        self.shared.kill_links(Link::is_live);
    }

    /// Forwards nothing either way, not even an end; live connections stay
    /// open, new ones are accepted and silent.
    pub fn hang(&self) {
        self.shared.change(|rules| rules.mode = Mode::Hang);
    }

    /// Holds every chunk up for `latency`, each way. Chunks of a connection
    /// that follow closely share a wait, so one may take up to twice as long.
    pub fn delay(&self, latency: Duration) {
        self.shared.change(|rules| rules.latency = latency);
    }

    /// Loses the next `count` chunks of replies, each with its connection: the
    /// server has run the request, the client sees the end of the connection.
    /// Replies to the client's own handshake count, subscribers' do not.
    pub fn drop_next_replies(&self, count: u32) {
        self.shared.change(|rules| rules.lose_replies += count);
    }

    /// Loses the reply to the next request that contains `needle`, with its
    /// connection. The server has run the request, or will.
    pub fn drop_reply_matching(&self, needle: &[u8]) {
        self.shared.change(|rules| rules.lose_reply_to(needle));
    }

    /// Catches the next request that contains `needle`: its client sees the
    /// end of the connection, the server sees the request when the test says
    /// [`Held::deliver`] (never, if the proxy is dropped before).
    pub fn hold_next_request(&self, needle: &[u8]) -> Held {
        self.hold(needle, None)
    }

    /// As [`Proxy::hold_next_request`], delivered `after` the catch.
    pub fn delay_next_request(&self, needle: &[u8], after: Duration) -> Held {
        self.hold(needle, Some(after))
    }

    /// Catches a request that contains `needle`, after having let `skip` such
    /// through. Its client is told nothing and waits; the server sees the
    /// request when the test says [`Held::deliver`], and its reply is lost if
    /// nobody waits for it any more.
    pub fn stall_request(&self, needle: &[u8], skip: u32) -> Held {
        Held { id: self.shared.change(|rules| rules.stall(needle, skip)), shared: Arc::clone(&self.shared) }
    }

    /// Loses one reply in so many, with its connection, until healed.
    pub fn lose_one_reply_in(&self, count: u64) {
        self.shared.change(|rules| rules.lose_one_in = count);
    }

    /// Cuts connections that begin from now on after `bytes` of requests or of
    /// replies, until healed.
    pub fn cut_after(&self, bytes: usize) {
        self.shared.change(|rules| rules.cut_after = Some(bytes));
    }

    /// The path of all live connections is dead for good, and neither side is
    /// told (half-open, without RST); new connections work.
    pub fn freeze(&self) {
        self.shared.freeze_links(|_| true);
    }

    /// The same for those that have subscribed.
    pub fn freeze_pubsub(&self) {
        self.shared.freeze_links(Link::is_subscriber);
    }

    /// Closes the connections that have subscribed.
    pub fn kill_pubsub(&self) {
        self.shared.kill_links(|link| link.is_live() && link.is_subscriber());
    }

    /// Swallows what the server sends to connections that subscribe or have
    /// subscribed: they stay open and hear nothing.
    pub fn block_pubsub(&self) {
        self.shared.change(|rules| rules.pubsub_blocked = true);
    }

    /// Subscribers hear again; what was swallowed is lost.
    pub fn unblock_pubsub(&self) {
        self.shared.change(|rules| rules.pubsub_blocked = false);
    }

    /// How many one-shot faults have met their chunk so far.
    pub fn fired(&self) -> u64 {
        self.shared.look(|rules| rules.fired)
    }

    /// How many connections were accepted (or refused) so far.
    pub fn accepted(&self) -> u64 {
        self.shared.look(|rules| rules.accepted)
    }

    /// How many connections are open now.
    pub fn live(&self) -> usize {
        self.shared.count_links(Link::is_live)
    }

    /// How many open connections have subscribed.
    pub fn subscribers(&self) -> usize {
        self.shared.count_links(|link| link.is_live() && link.is_subscriber())
    }

    fn hold(&self, needle: &[u8], release_after: Option<Duration>) -> Held {
        Held { id: self.shared.change(|rules| rules.hold(needle, release_after)), shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.close(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            // A panic of the acceptor has been printed; do not panic in a drop.
            let _ = acceptor.join();
        }
    }
}

impl Held {
    /// Whether a request has been caught.
    pub fn is_caught(&self) -> bool {
        self.stage() != Stage::Waiting
    }

    /// Whether the server has run the request.
    pub fn is_delivered(&self) -> bool {
        self.stage() == Stage::Delivered
    }

    /// Waits until a request was caught; its client's connection is closed.
    #[track_caller]
    pub fn wait_caught(&self) {
        eventually("the proxy caught the request", SOON, || self.is_caught());
    }

    /// Waits until the request has reached the server and was run.
    #[track_caller]
    pub fn wait_delivered(&self) {
        eventually("the held request was delivered", SOON, || self.is_delivered());
    }

    /// Delivers the caught request and waits until the server has run it.
    #[track_caller]
    pub fn deliver(&self) {
        self.wait_caught();
        self.shared.change(|rules| rules.catches[self.id].release_after = Some(Duration::ZERO));
        self.wait_delivered();
    }

    fn stage(&self) -> Stage {
        self.shared.look(|rules| rules.catches[self.id].stage)
    }
}
