//! What the tests of this folder share: clients that notice things soon, and a limiter that is watched from outside.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fairq::{Client, Clock, Completions, Error, Limiter, LimiterBuilder, Permit, PermitState, Request};

use crate::stores::{granted, open, patient, queue_up, take};
use crate::support::{SOON, eventually, eventually_some};

pub const TIMEOUT: Duration = Duration::from_millis(500);
pub const LEASE: Duration = Duration::from_secs(3);

/// A client that does not wait long for a server that hangs.
pub fn brisk(url: &str) -> Client {
    Client::builder(url).connect_timeout(TIMEOUT).io_timeout(TIMEOUT).open().expect("open")
}

pub fn limiter(client: &Client, name: &str, limit: u64) -> Limiter {
    open(builder(client, name, limit))
}

pub fn builder(client: &Client, name: &str, limit: u64) -> LimiterBuilder {
    client.limiter(name).limit(limit).lease(LEASE)
}

/// A client's limiter that never polls, as its time stands still: it only learns of a grant by a message.
pub fn unhurried(url: &str, name: &str) -> Limiter {
    let client = Client::builder(url).clock(Clock::manual()).open().expect("open");
    open(client.limiter(name).limit(1).lease(3 * SOON))
}

/// A permit, however long the grace is.
#[track_caller]
pub fn soon(limiter: &Limiter) -> Permit {
    let brief = Request::new().max_wait(LEASE);
    eventually_some("a permit", 2 * SOON, || limiter.acquire(&brief).ok())
}

/// One holder, and a line of requests behind it that come from several clients in turn.
pub struct Line {
    limiters: Vec<Limiter>,
    held: Permit,
    completions: Completions,
    waiting: u64,
}

impl Line {
    /// All clients use the limiter `name`, with a limit of 1; `waiting` requests wait.
    #[track_caller]
    pub fn form(clients: &[Client], name: &str, waiting: u64) -> Line {
        let limiters: Vec<Limiter> = clients.iter().map(|client| limiter(client, name, 1)).collect();
        let (held, completions) = (take(&limiters[0]), Completions::new());
        for token in 0..waiting {
            let limiter = &limiters[token as usize % limiters.len()];
            queue_up(limiter, &completions, token, &patient(), token);
        }
        Line { limiters, held, completions, waiting }
    }

    /// Nobody was admitted beside the holder so far.
    #[track_caller]
    pub fn assert_still(&self) {
        crate::stores::assert_none(&self.completions);
        assert_ne!(self.held.state(), PermitState::Lost, "what is held is still held");
    }

    /// Serves the line to its end, in order; returns all fences.
    #[track_caller]
    pub fn serve(self) -> Vec<u64> {
        self.assert_still();
        let mut fences = vec![self.held.fence()];
        give_back(self.held);
        for token in 0..self.waiting {
            let permit = granted(&self.completions, token);
            fences.push(permit.fence());
            give_back(permit);
        }
        let left = || self.limiters[0].status().is_ok_and(|status| (status.used, status.waiting) == (0, 0));
        eventually("nothing is left", 2 * SOON, left);
        assert!(fences.is_sorted_by(|a, b| a < b), "fences grow: {fences:?}");
        fences
    }
}

/// The release may meet an outage; then it goes on in the background.
fn give_back(permit: Permit) {
    match permit.release() {
        Ok(()) | Err(Error::Unavailable { .. }) => {}
        Err(error) => panic!("a release: {error:?}"),
    }
}

/// Threads that take and give back permits all the time, and how many are held by all of them at once.
pub struct Load {
    stop: Arc<AtomicU64>,
    tally: Arc<Tally>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Tally {
    held: AtomicU64,
    most: AtomicU64,
    grants: AtomicU64,
    /// The fences of all grants.
    fences: Mutex<Vec<u64>>,
}

impl Load {
    pub fn start(limiters: Vec<Limiter>, threads_each: usize) -> Load {
        let (stop, tally) = (Arc::new(AtomicU64::new(0)), Arc::new(Tally::default()));
        let start = |limiter: Limiter| {
            let (stop, tally) = (stop.clone(), tally.clone());
            thread::spawn(move || {
                while stop.load(Ordering::Relaxed) == 0 {
                    if let Ok(permit) = limiter.acquire(&Request::new().max_wait(SOON)) {
                        tally.hold(&permit);
                    }
                }
            })
        };
        let each = |limiter: Limiter| std::iter::repeat_n(limiter, threads_each);
        let threads = limiters.into_iter().flat_map(each).map(start).collect();
        Load { stop, tally, threads }
    }

    pub fn grants(&self) -> u64 {
        self.tally.grants.load(Ordering::Relaxed)
    }

    /// Waits for so many more grants.
    #[track_caller]
    pub fn wait_for_more(&self, grants: u64) {
        let goal = self.grants() + grants;
        eventually("grants go on", 2 * SOON, || self.grants() >= goal);
    }

    /// Ends the threads; returns the most that were held at once.
    #[track_caller]
    pub fn stop(self) -> u64 {
        self.stop.store(1, Ordering::Relaxed);
        eventually("nobody hangs", 3 * SOON, || self.threads.iter().all(JoinHandle::is_finished));
        let fences = std::mem::take(&mut *self.tally.fences.lock().expect("no thread panicked"));
        let mut unique = fences.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), fences.len(), "no fence was given twice");
        self.tally.most.load(Ordering::Relaxed)
    }
}

impl Tally {
    /// Holds for as long as a short piece of work takes. Who was told that the permit is lost stops counting.
    fn hold(&self, permit: &Permit) {
        let held = self.held.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(held, Ordering::SeqCst);
        self.grants.fetch_add(1, Ordering::Relaxed);
        self.fences.lock().expect("no thread panicked").push(permit.fence());
        thread::sleep(Duration::from_millis(2));
        self.held.fetch_sub(1, Ordering::SeqCst);
    }
}
