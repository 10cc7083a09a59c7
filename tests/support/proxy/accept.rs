//! The listening side: shared state, and one thread per connection.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::link::Link;
use super::rules::{Mode, Rules};

/// How long a connection to the server may take.
const CONNECT: Duration = Duration::from_secs(5);

/// What the controls, the acceptor and the connections have in common.
///
/// Lock order: `links` and `rules` are never held together.
pub struct Shared {
    target: AtomicU16,
    rules: Mutex<Rules>,
    changed: Condvar,
    links: Mutex<Vec<Arc<Link>>>,
}

impl Shared {
    pub fn new(target: u16) -> Shared {
        Shared {
            target: AtomicU16::new(target),
            rules: Mutex::new(Rules::new()),
            changed: Condvar::new(),
            links: Mutex::new(Vec::new()),
        }
    }

    pub fn retarget(&self, port: u16) {
        self.target.store(port, Ordering::SeqCst);
    }

    /// Changes the rules and wakes everybody who waits for a change.
    pub fn change<T>(&self, change: impl FnOnce(&mut Rules) -> T) -> T {
        let result = change(&mut self.rules.lock());
        self.changed.notify_all();
        result
    }

    pub fn look<T>(&self, look: impl FnOnce(&Rules) -> T) -> T {
        look(&self.rules.lock())
    }

    /// Waits until `ready` answers, or the link or the proxy ends (`None`).
    /// `ready` says when to look again at the latest, if it knows.
    pub fn wait<T>(&self, link: &Link, mut ready: impl FnMut(&mut Rules) -> Result<T, Option<Instant>>) -> Option<T> {
        let mut rules = self.rules.lock();
        loop {
            if rules.closing || link.is_dead() {
                return None;
            }
            match ready(&mut rules) {
                Ok(value) => return Some(value),
                Err(None) => self.changed.wait(&mut rules),
                Err(Some(at)) => drop(self.changed.wait_until(&mut rules, at)),
            }
        }
    }

    pub fn connect(&self) -> io::Result<TcpStream> {
        let port = self.target.load(Ordering::SeqCst);
        let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), CONNECT)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    pub fn count_links(&self, which: impl Fn(&Link) -> bool) -> usize {
        let links = self.links.lock();
        links.iter().filter(|link| which(link)).count()
    }

    pub fn freeze_links(&self, which: impl Fn(&Link) -> bool) {
        self.links.lock().iter().filter(|link| which(link)).for_each(|link| link.freeze());
    }

    pub fn kill_links(&self, which: impl Fn(&Link) -> bool) {
        let links = self.links.lock().clone();
        for link in links.iter().filter(|link| which(link)) {
            link.kill();
        }
        // Under the lock, so that nobody falls asleep after having looked.
        self.change(|_| ());
    }

    /// Ends everything; the acceptor is woken by a connection to `address`.
    pub fn close(&self, address: SocketAddr) {
        self.change(|rules| rules.closing = true);
        // When it fails the listener is gone, and the acceptor with it.
        let _ = TcpStream::connect_timeout(&address, CONNECT);
        self.kill_links(|_| true);
    }

    fn remove(&self, link: &Arc<Link>) {
        self.links.lock().retain(|other| !Arc::ptr_eq(other, link));
    }
}

/// Accepts until the proxy closes, then waits for all connections' threads.
pub fn run(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while let Ok((client, _)) = listener.accept() {
        let (closing, mode, cut_after) = shared.change(|rules| {
            rules.accepted += 1;
            (rules.closing, rules.mode, rules.cut_after)
        });
        if closing {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
        if mode != Mode::Refuse {
            threads.push(serve(client, cut_after, shared));
        }
    }
    shared.kill_links(|_| true);
    for thread in threads {
        // A panic of a connection's thread has been printed.
        let _ = thread.join();
    }
}

fn serve(client: TcpStream, cut_after: Option<usize>, shared: &Arc<Shared>) -> JoinHandle<()> {
    let link = Arc::new(Link::new(client, cut_after));
    shared.links.lock().push(Arc::clone(&link));
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        link.run(&shared);
        shared.remove(&link);
    })
}
