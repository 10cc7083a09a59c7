//! A TCP proxy between the workers and the server that does what networks do now and then.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::exit::{Failure, USAGE};

const CONNECT: Duration = Duration::from_secs(5);
/// How often a held-up chunk looks whether it may go on.
const LOOK: Duration = Duration::from_millis(2);
/// Of so many replies one is lost while they get lost.
const LOSS: u64 = 20;

pub struct Proxy {
    /// The server's, by way of the proxy.
    pub url: String,
    shared: Arc<Shared>,
}

/// A fault that lasts ends by itself.
struct Weather {
    hangs_until: Instant,
    slow_until: Instant,
    slow_by: Duration,
    loses_until: Instant,
}

struct Shared {
    target: SocketAddr,
    weather: Mutex<Weather>,
    links: Mutex<Vec<Arc<Link>>>,
    replies: AtomicU64,
}

struct Link {
    client: TcpStream,
    server: TcpStream,
    /// It carries nothing any more, and tells nobody.
    frozen: AtomicBool,
    ended: AtomicBool,
}

impl Proxy {
    /// `None` for an address that it cannot stand before.
    pub fn before(url: &str) -> Result<Option<Proxy>, Failure> {
        let mut address = url::Url::parse(url).map_err(|error| Failure::new(USAGE, format_args!("--url: {error}")))?;
        if address.scheme() != "redis" {
            return Ok(None);
        }
        let host = address.host_str().unwrap_or("127.0.0.1").trim_matches(['[', ']']).to_owned();
        let mut found = (host.as_str(), address.port().unwrap_or(6379)).to_socket_addrs()?;
        let target = found.next().ok_or_else(|| Failure::new(USAGE, format_args!("--url: no address of {host}")))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        if address.set_host(Some("127.0.0.1")).is_err() || address.set_port(Some(port)).is_err() {
            return Ok(None);
        }
        let now = Instant::now();
        let weather = Weather { hangs_until: now, slow_until: now, slow_by: Duration::ZERO, loses_until: now };
        let (links, replies) = (Mutex::new(Vec::new()), AtomicU64::new(1));
        let shared = Arc::new(Shared { target, weather: Mutex::new(weather), links, replies });
        let accepting = shared.clone();
        thread::Builder::new().name("proxy".into()).spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                accepting.serve(client);
            }
        })?;
        Ok(Some(Proxy { url: address.to_string(), shared }))
    }

    pub fn cut(&self) {
        self.shared.links.lock().iter().for_each(|link| link.end());
    }

    pub fn freeze(&self) {
        self.shared.links.lock().iter().for_each(|link| link.frozen.store(true, Ordering::SeqCst));
    }

    pub fn hang(&self, time: Duration) {
        self.shared.weather.lock().hangs_until = Instant::now() + time;
    }

    pub fn slow(&self, by: Duration, time: Duration) {
        let mut weather = self.shared.weather.lock();
        (weather.slow_by, weather.slow_until) = (by, Instant::now() + time);
    }

    pub fn lossy(&self, time: Duration) {
        self.shared.weather.lock().loses_until = Instant::now() + time;
    }

    pub fn heal(&self) {
        let (now, mut weather) = (Instant::now(), self.shared.weather.lock());
        (weather.hangs_until, weather.slow_until, weather.loses_until) = (now, now, now);
    }

    /// By what the server calls the workers' connections.
    pub fn addresses_at_the_server(&self) -> Vec<String> {
        let links = self.shared.links.lock();
        links.iter().filter_map(|link| link.server.local_addr().ok()).map(|address| address.to_string()).collect()
    }
}

impl Shared {
    /// Connects on behalf of a client. One that cannot be served is closed.
    fn serve(self: &Arc<Self>, client: TcpStream) {
        let Ok(server) = TcpStream::connect_timeout(&self.target, CONNECT) else { return };
        let _ = (client.set_nodelay(true), server.set_nodelay(true)); // slower without, not wrong
        let link = Arc::new(Link { client, server, frozen: AtomicBool::new(false), ended: AtomicBool::new(false) });
        self.links.lock().push(link.clone());
        for replies in [false, true] {
            let (shared, carried) = (self.clone(), link.clone());
            let carry = move || {
                shared.carry(&carried, replies);
                carried.hang_up();
                shared.links.lock().retain(|other| !Arc::ptr_eq(other, &carried));
            };
            if thread::Builder::new().name("link".into()).spawn(carry).is_err() {
                link.end();
            }
        }
    }

    fn carry(&self, link: &Link, replies: bool) {
        let (mut from, mut to) = if replies { (&link.server, &link.client) } else { (&link.client, &link.server) };
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => {
                    self.wait_out();
                    if link.frozen.load(Ordering::SeqCst) {
                        continue;
                    }
                    if replies && self.loses_this() || to.write_all(&chunk[..length]).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn wait_out(&self) {
        let arrival = Instant::now();
        loop {
            let now = Instant::now();
            {
                let weather = self.weather.lock();
                let slow = now < weather.slow_until && now < arrival + weather.slow_by;
                if now >= weather.hangs_until && !slow {
                    return;
                }
            }
            thread::sleep(LOOK);
        }
    }

    fn loses_this(&self) -> bool {
        let loses = Instant::now() < self.weather.lock().loses_until;
        loses && self.replies.fetch_add(1, Ordering::SeqCst).is_multiple_of(LOSS)
    }
}

impl Link {
    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// One side has hung up. On a frozen link the server does not hear of it: its side stays open, as it does when a
    /// path fails, until the server gives up or the run ends.
    fn hang_up(&self) {
        if self.frozen.load(Ordering::SeqCst) && !self.ended.load(Ordering::SeqCst) {
            let _ = self.client.shutdown(Shutdown::Both);
        } else {
            self.end();
        }
    }
}
