//! The two stores that a promise is held against, and what tests of both share.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use fairq::{Change, Client, ClientBuilder, Clock, Completion, Completions, Limiter, LimiterBuilder, Permit, Request};

use crate::support::{SOON, Server, eventually, eventually_some, tickets_in};

/// The name of the limiter in most tests.
pub const NAME: &str = "promise";

/// A store of its own for one test.
pub struct World {
    pub url: String,
    /// By hand in memory, the machine's on Redis, where leases run by the server's time.
    pub clock: Clock,
    server: Option<Server>,
}

/// Runs a test on each store, memory first.
pub fn on_both(test: impl Fn(&World) + Send + 'static) {
    guarded(move || {
        for world in [World::memory(), World::redis()] {
            eprintln!("-- on {}", world.url);
            test(&world);
        }
    });
}

/// Runs a test in which threads may block for ever when what it tests is broken: then it fails instead of hanging.
pub fn guarded(test: impl FnOnce() + Send + 'static) {
    let (alive, end) = crossbeam_channel::bounded::<()>(0);
    let thread = thread::spawn(move || {
        let _alive = alive;
        test();
    });
    let ended = end.recv_timeout(4 * SOON) == Err(RecvTimeoutError::Disconnected);
    assert!(ended, "the test hangs; if it says above that something failed, that is why");
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}

impl World {
    pub fn memory() -> World {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        World { url: format!("memory:promise-{number}"), clock: Clock::manual(), server: None }
    }

    pub fn redis() -> World {
        let server = Server::start(Server::default_flavor());
        World { url: server.url(), clock: Clock::default(), server: Some(server) }
    }

    /// The server, if there is one.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    pub fn is_memory(&self) -> bool {
        self.server.is_none()
    }

    pub fn builder(&self) -> ClientBuilder {
        Client::builder(&self.url).clock(self.clock.clone())
    }

    pub fn client(&self) -> Client {
        self.builder().open().expect("open a client")
    }

    /// A new client's limiter [`NAME`].
    pub fn limiter(&self, limit: u64) -> Limiter {
        limiter(&self.client(), limit)
    }

    /// A new client's limiter [`NAME`] with a lease that one can wait for on Redis.
    pub fn leased(&self, limit: u64, lease: Duration) -> Limiter {
        open(self.client().limiter(NAME).limit(limit).lease(lease))
    }

    /// Asserts that nothing of any ticket is left in the store.
    #[track_caller]
    pub fn assert_no_ticket_left(&self, limiter: &Limiter) {
        eventually("nothing is held or waits", SOON, || {
            let status = limiter.status().expect("ask for the status");
            (status.used, status.holders, status.waiting) == (0, 0, 0)
        });
        if let Some(server) = &self.server {
            assert_eq!(tickets_in(server, limiter.name()), Vec::<String>::new());
        }
    }
}

/// The instances that the limiter's keys know, by any field or member.
pub fn instances_in(server: &Server, name: &str) -> Vec<String> {
    let mut conn = server.conn();
    let hash = format!("fq:{{{name}}}");
    let fields: Vec<String> = redis::cmd("HKEYS").arg(&hash).query(&mut conn).expect("list the hash");
    let set = format!("{hash}:instances");
    let members: Vec<String> = redis::cmd("ZRANGE").arg(set).arg(0).arg(-1).query(&mut conn).expect("list instances");
    let fields = fields.into_iter().filter(|field| field.starts_with("i:") || field.starts_with("d:"));
    fields.chain(members.into_iter().filter(|member| member != ".")).collect()
}

pub fn open(builder: LimiterBuilder) -> Limiter {
    builder.open().expect("open a limiter")
}

/// The limiter [`NAME`] of this client, with a lease so long that no leak heals by it while a test looks.
pub fn limiter(client: &Client, limit: u64) -> Limiter {
    open(client.limiter(NAME).limit(limit).lease(3 * SOON))
}

/// A request that waits until the test says otherwise.
pub fn patient() -> Request {
    Request::new().wait_forever()
}

/// A permit that has to be there at once.
#[track_caller]
pub fn take(limiter: &Limiter) -> Permit {
    take_cost(limiter, 1)
}

#[track_caller]
pub fn take_cost(limiter: &Limiter, cost: u64) -> Permit {
    let permit = limiter.try_acquire(&Request::new().cost(cost)).expect("ask for a permit");
    permit.expect("a free slot")
}

/// Starts a request that waits for ever, and sees it in line, behind `before` others.
#[track_caller]
pub fn queue_up(limiter: &Limiter, to: &Completions, token: u64, request: &Request, before: u64) -> fairq::Ticket {
    let ticket = limiter.acquire_start(request, to, token).expect("start a request");
    wait_for_line(limiter, before + 1);
    ticket
}

#[track_caller]
pub fn wait_for_line(limiter: &Limiter, waiting: u64) {
    eventually(&format!("{waiting} wait"), SOON, || limiter.status().is_ok_and(|s| s.waiting == waiting));
}

#[track_caller]
pub fn wait_for_use(limiter: &Limiter, used: u64) {
    eventually(&format!("{used} are used"), SOON, || limiter.status().is_ok_and(|s| s.used == used));
}

/// The next completion.
#[track_caller]
pub fn next(completions: &Completions) -> Completion {
    eventually_some("a completion", SOON, || completions.poll(1, Duration::from_millis(20)).pop())
}

/// The next `count` completions, by token: who is granted at the same time may hear of it in any order.
#[track_caller]
pub fn next_all(completions: &Completions, count: usize) -> Vec<Completion> {
    let mut all: Vec<_> = (0..count).map(|_| next(completions)).collect();
    all.sort_by_key(|completion| completion.token);
    all
}

/// The tokens of completions that all have to be grants.
#[track_caller]
pub fn tokens(completions: &[Completion]) -> Vec<u64> {
    assert!(completions.iter().all(|completion| completion.result.is_ok()), "{completions:?}");
    completions.iter().map(|completion| completion.token).collect()
}

/// The next completion, which has to be a grant of this token.
#[track_caller]
pub fn granted(completions: &Completions, token: u64) -> Permit {
    let completion = next(completions);
    assert_eq!(completion.token, token, "{completion:?}");
    completion.result.expect("a permit")
}

/// Asserts that nothing has come in. Absence cannot be waited for: call it after something that would have caused it.
#[track_caller]
pub fn assert_none(completions: &Completions) {
    let early = completions.poll(1, Duration::ZERO);
    assert!(early.is_empty(), "too early: {early:?}");
}

#[track_caller]
pub fn configure(limiter: &Limiter, change: Change) -> fairq::Status {
    limiter.configure(&change).expect("configure")
}

/// Numbers that look random and are the same in each run.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// Passes a random short time, by working.
    pub fn dawdle(&mut self, most: u64) {
        for _ in 0..self.below(most) {
            std::hint::spin_loop();
        }
    }
}
