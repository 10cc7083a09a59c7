//! One proxied connection: two threads that carry chunks, and what may happen
//! to them on the way.
//!
//! A link ends in one of two ways. *Killed*: both sockets are shut down and
//! whatever was under way is lost. *Cut off*: the client's socket is shut down,
//! the server's only in the direction towards the server, and its answers are
//! read and thrown away until the server closes. So the server surely runs what
//! it was sent before, which a killed connection does not promise.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::accept::Shared;
use super::rules::{CatchId, Mode, Reply, Request, Stage, subscribes};

/// The size of a chunk at most.
const CHUNK: usize = 64 * 1024;
/// How much of the bytes sent before is kept to find a needle cut in two.
const MEMORY: usize = 512;

pub struct Link {
    client: TcpStream,
    server: OnceLock<TcpStream>,
    dead: AtomicBool,
    /// The client is gone; the server's answers are thrown away.
    cut_off: AtomicBool,
    /// The server has closed, and has run all that it was sent.
    server_ended: AtomicBool,
    subscriber: AtomicBool,
    lose_reply: AtomicBool,
    /// Nothing passes any more, either way, and nobody is told.
    frozen: AtomicBool,
    /// How many bytes it may still carry each way: requests, replies.
    allowance: [AtomicUsize; 2],
}

impl Link {
    pub fn new(client: TcpStream, allowance: Option<usize>) -> Link {
        // Without it a test is slower, not wrong.
        let _ = client.set_nodelay(true);
        Link {
            client,
            server: OnceLock::new(),
            dead: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            server_ended: AtomicBool::new(false),
            subscriber: AtomicBool::new(false),
            lose_reply: AtomicBool::new(false),
            frozen: AtomicBool::new(false),
            allowance: [(); 2].map(|()| AtomicUsize::new(allowance.unwrap_or(usize::MAX))),
        }
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Whether the client's side is open, as far as the proxy had a say.
    pub fn is_live(&self) -> bool {
        !self.is_dead() && !self.is_cut_off()
    }

    /// Swallows everything from now on, for good; both sides stay open.
    pub fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
    }

    fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::SeqCst)
    }

    /// The part of a chunk that the link may still carry; when it is less than all, the link ends after it.
    fn allowed<'a>(&self, way: usize, chunk: &'a [u8]) -> &'a [u8] {
        let left = &self.allowance[way];
        let before = left.load(Ordering::SeqCst);
        let count = chunk.len().min(before);
        if before != usize::MAX {
            left.store(before - count, Ordering::SeqCst);
        }
        &chunk[..count]
    }

    pub fn is_subscriber(&self) -> bool {
        self.subscriber.load(Ordering::SeqCst)
    }

    /// Ends the connection at once. The caller wakes those who wait for rules.
    pub fn kill(&self) {
        self.dead.store(true, Ordering::SeqCst);
        shut(&self.client, Shutdown::Both);
        if let Some(server) = self.server.get() {
            shut(server, Shutdown::Both);
        }
    }

    /// Carries chunks until the connection ends.
    pub fn run(&self, shared: &Shared) {
        if let Some(server) = self.connect(shared) {
            thread::scope(|scope| {
                scope.spawn(|| self.carry_replies(server, shared));
                self.carry_requests(server, shared);
            });
        }
        self.kill();
    }

    /// Connects to the server, once nothing hangs.
    fn connect(&self, shared: &Shared) -> Option<&TcpStream> {
        self.wait_open(shared)?;
        let stream = shared.connect().ok()?;
        let server = self.server.get_or_init(|| stream);
        // A kill in the meantime has not seen this socket.
        (!self.is_dead()).then_some(server)
    }

    fn carry_requests(&self, server: &TcpStream, shared: &Shared) {
        let mut window = Vec::new();
        while let Some(new) = self.read_request(&mut window, shared) {
            if !self.is_subscriber() && subscribes(&window) {
                self.subscriber.store(true, Ordering::SeqCst);
            }
            if self.is_frozen() {
                continue;
            }
            match shared.change(|rules| rules.on_request(&window, new)) {
                Request::Forward => {}
                Request::LoseReply => self.lose_reply.store(true, Ordering::SeqCst),
                Request::Hold(id) => {
                    self.cut_off_client();
                    let chunk = &window[window.len() - new..];
                    return self.deliver_later(chunk, id, server, shared);
                }
                Request::Stall(id) => {
                    let chunk = &window[window.len() - new..];
                    return self.deliver_later(chunk, id, server, shared);
                }
            }
            let chunk = &window[window.len() - new..];
            let allowed = self.allowed(0, chunk);
            if { server }.write_all(allowed).is_err() || allowed.len() < chunk.len() {
                break;
            }
        }
        if self.is_frozen() {
            let _: Option<()> = shared.wait(self, |_| Err(None)); // until the proxy ends
        }
        shut(server, Shutdown::Write);
    }

    /// Reads a chunk to the end of `window`, which keeps a little of what came
    /// before, and passes the gate with it. The end of the client's stream
    /// passes the gate as well.
    fn read_request(&self, window: &mut Vec<u8>, shared: &Shared) -> Option<usize> {
        window.drain(..window.len().saturating_sub(MEMORY));
        let old = window.len();
        window.resize(old + CHUNK, 0);
        let new = (&self.client).read(&mut window[old..]).unwrap_or(0);
        window.truncate(old + new);
        self.pass_gate(shared)?;
        (new > 0).then_some(new)
    }

    fn carry_replies(&self, server: &TcpStream, shared: &Shared) {
        let mut chunk = vec![0; CHUNK];
        loop {
            let length = { server }.read(&mut chunk).unwrap_or(0);
            if length == 0 {
                break;
            }
            if !self.is_cut_off() && self.pass_gate(shared).is_some() && !self.is_frozen() {
                self.carry_reply(&chunk[..length], shared);
            }
        }
        shared.change(|_| self.server_ended.store(true, Ordering::SeqCst));
        if !self.is_cut_off() && !self.is_frozen() && self.wait_open(shared).is_some() {
            shut(&self.client, Shutdown::Both);
        }
    }

    fn carry_reply(&self, chunk: &[u8], shared: &Shared) {
        let lose = self.lose_reply.load(Ordering::SeqCst);
        match shared.change(|rules| rules.on_reply(self.is_subscriber(), lose)) {
            Reply::Swallow => {}
            Reply::Lose => self.cut_off_client(),
            Reply::Forward => {
                let allowed = self.allowed(1, chunk);
                if (&self.client).write_all(allowed).is_err() || allowed.len() < chunk.len() {
                    self.cut_off_client();
                }
            }
        }
    }

    /// Delivers the request when it is time to, and waits for the server to
    /// have run it.
    fn deliver_later(&self, chunk: &[u8], id: CatchId, server: &TcpStream, shared: &Shared) {
        let delivered = self.wait_release(id, shared).is_some_and(|()| { server }.write_all(chunk).is_ok());
        shut(server, Shutdown::Write);
        if delivered && self.wait_server_end(shared).is_some() {
            shared.change(|rules| rules.catches[id].stage = Stage::Delivered);
        }
    }

    fn wait_release(&self, id: CatchId, shared: &Shared) -> Option<()> {
        let caught = Instant::now();
        shared.wait(self, |rules| {
            let due = rules.catches[id].release_after.map(|after| caught + after);
            match due {
                Some(due) if due <= Instant::now() => Ok(()),
                later_or_unknown => Err(later_or_unknown),
            }
        })
    }

    fn wait_server_end(&self, shared: &Shared) -> Option<()> {
        shared.wait(self, |_| {
            let ended = self.server_ended.load(Ordering::SeqCst);
            if ended { Ok(()) } else { Err(None) }
        })
    }

    fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::SeqCst)
    }

    /// Ends the client's side. The thread that carries requests notices, and
    /// closes towards the server, *after* what it has already taken on.
    fn cut_off_client(&self) {
        self.cut_off.store(true, Ordering::SeqCst);
        shut(&self.client, Shutdown::Both);
    }

    /// Waits out the latency, then a hang. `None`: the link has ended.
    fn pass_gate(&self, shared: &Shared) -> Option<()> {
        let arrival = Instant::now();
        shared.wait(self, |rules| {
            let due = arrival + rules.latency;
            if due > Instant::now() { Err(Some(due)) } else { Ok(()) }
        })?;
        self.wait_open(shared)
    }

    fn wait_open(&self, shared: &Shared) -> Option<()> {
        shared.wait(self, |rules| match rules.mode {
            Mode::Hang => Err(None),
            Mode::Pass | Mode::Refuse => Ok(()),
        })
    }
}

/// Shuts a socket down; that it is already is no failure.
fn shut(stream: &TcpStream, how: Shutdown) {
    let _ = stream.shutdown(how);
}
