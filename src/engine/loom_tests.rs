//! The races that an engine decides, in all interleavings of two or three threads: real engines, over the model as their
//! store, without scheduler threads. What loom cannot see (the clock, which stands still, and cells that are set once) no
//! thread waits for.

use std::sync::Weak;

use super::*;
use crate::store::memory::{MemoryStore, SharedWorld};
use crate::store::{Answer, Call, Listener, Reply, StoreError, Verdict};
use crate::{Client, Completions, Limiter, Permit, Ticket};

const FOREVER: Duration = Duration::MAX;

/// Under one lock there are few ways to take turns: more switches are tried than elsewhere (see test.sh).
fn search(scene: impl Fn() + Send + Sync + 'static) {
    search_deeper(2, scene);
}

/// All ways in which the threads of a scene may take turns, up to some switches where none is needed.
fn search_deeper(more: usize, scene: impl Fn() + Send + Sync + 'static) {
    let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let ways = count.clone();
    let mut search = loom::model::Builder::new();
    search.preemption_bound = search.preemption_bound.map(|bound| bound + more);
    search.check(move || {
        ways.fetch_add(1, Ordering::Relaxed);
        crate::jitter::seed(1); // or the same turns would not lead to the same end
        scene();
    });
    println!("{} ways", count.load(Ordering::Relaxed));
}

/// A process: a client, its engine, and a limiter of one permit.
struct Party {
    engine: Arc<Engine>,
    /// Open as long as this is.
    _client: Client,
    limiter: Limiter,
    clock: Clock,
}

impl Party {
    fn join(world: &SharedWorld, name: &str) -> Party {
        let clock = Clock::manual();
        Party::over(name, clock.clone(), |listener| {
            Box::new(MemoryStore::join(world.clone(), &name.into(), clock, listener))
        })
    }

    fn over(name: &str, clock: Clock, store: impl FnOnce(Weak<dyn Listener>) -> Box<dyn Store>) -> Party {
        let (client, engine) = Client::by_hand(name, clock.clone(), Duration::from_secs(1), store);
        let limiter = client.limiter("l").limit(1).open().expect("settings that mean something");
        Party { engine, _client: client, limiter, clock }
    }

    fn start(&self, to: &Completions, token: u64) -> Ticket {
        self.limiter.acquire_start(&Request::new().max_wait(FOREVER), to, token).expect("start")
    }

    /// A permit that is free.
    fn take(&self) -> Permit {
        let done = Completions::new();
        self.start(&done, 0);
        only(&done).expect("a free permit")
    }
}

/// The one completion that is there, and no second.
#[track_caller]
fn only(done: &Completions) -> Result<Permit, Error> {
    let mut all = done.poll(8, Duration::ZERO);
    assert_eq!(all.len(), 1, "one end for one request: {all:?}");
    all.remove(0).result
}

/// P3: the store knows of nobody any more.
#[track_caller]
fn assert_empty(world: &SharedWorld) {
    let (used, waiting, tickets) = world.lock().standing("l");
    assert_eq!((used, waiting, tickets), (0, 0, 0), "used, waiting, tickets");
}

/// The slot is freed by another process while the first in line gives up: it ends once, and the slot is free after all.
#[test]
fn loom_a_grant_and_a_cancel() {
    search(|| {
        let world = SharedWorld::default();
        let (ann, bob) = (Party::join(&world, "ann"), Party::join(&world, "bob"));
        let permit = ann.take();
        let done = Completions::new();
        let ticket = bob.start(&done, 1);
        let release = loom::thread::spawn(move || drop(permit));
        let cancelled = ticket.cancel();
        release.join().unwrap();
        let end = only(&done);
        assert_eq!(end.is_err(), cancelled);
        assert!(matches!(end, Ok(_) | Err(Error::Cancelled)), "{end:?}");
        drop(end);
        assert_empty(&world);
    });
}

/// The same while its time is up.
#[test]
fn loom_a_grant_and_a_deadline() {
    search(|| {
        let world = SharedWorld::default();
        let (ann, bob) = (Party::join(&world, "ann"), Party::join(&world, "bob"));
        let permit = ann.take();
        let done = Completions::new();
        let request = Request::new().max_wait(Duration::from_millis(1));
        let ticket = bob.limiter.acquire_start(&request, &done, 1).expect("start");
        bob.clock.advance(Duration::from_millis(2));
        let engine = bob.engine.clone();
        let scheduler = loom::thread::spawn(move || engine.look_until_idle());
        drop(permit);
        scheduler.join().unwrap();
        let end = only(&done);
        assert!(matches!(end, Ok(_) | Err(Error::TimedOut { .. })), "{end:?}");
        drop((end, ticket));
        assert_empty(&world);
    });
}

/// A client is closed while its waiter is granted what another gives back: it ends once, and takes nothing along.
#[test]
fn loom_a_grant_and_a_close() {
    search(|| {
        let world = SharedWorld::default();
        let (ann, bob) = (Party::join(&world, "ann"), Party::join(&world, "bob"));
        let permit = ann.take();
        let done = Completions::new();
        let ticket = bob.start(&done, 1);
        let release = loom::thread::spawn(move || drop(permit));
        bob.engine.close_by_hand(Duration::ZERO);
        while bob.engine.look_until_idle().is_some() {
            loom::thread::yield_now();
        }
        release.join().unwrap();
        let end = only(&done);
        assert!(matches!(end, Ok(_) | Err(Error::Closed)), "{end:?}");
        drop((end, ticket));
        assert_empty(&world);
    });
}

/// A request that is started while its client is closed has one end as well.
#[test]
fn loom_a_start_and_a_close() {
    search(|| {
        let world = SharedWorld::default();
        let bob = Party::join(&world, "bob");
        drop(bob.take()); // it is known to the store
        let done = Completions::new();
        let (engine, limiter, to) = (bob.engine.clone(), bob.limiter.clone(), done.clone());
        let start = loom::thread::spawn(move || limiter.acquire_start(&Request::new(), &to, 1).map(drop));
        engine.close_by_hand(Duration::ZERO);
        while engine.look_until_idle().is_some() {
            loom::thread::yield_now();
        }
        start.join().unwrap().expect("a client that closes still says so by a completion");
        let end = only(&done);
        assert!(matches!(end, Ok(_) | Err(Error::Closed)), "{end:?}");
        drop(end);
        assert_empty(&world);
    });
}

/// A thread that waits for its permit is woken by whoever brings it.
#[test]
fn loom_who_waits_is_woken() {
    search(|| {
        let world = SharedWorld::default();
        let (ann, bob) = (Party::join(&world, "ann"), Party::join(&world, "bob"));
        let permit = ann.take();
        let release = loom::thread::spawn(move || drop(permit));
        let request = Request::new().max_wait(FOREVER);
        drop(bob.limiter.acquire(&request).expect("the permit that is given back"));
        release.join().unwrap();
        assert_empty(&world);
    });
}

/// A queue that its host frees while a grant is on its way gives back what nobody can take.
#[test]
fn loom_a_grant_and_the_end_of_its_queue() {
    search(|| {
        let world = SharedWorld::default();
        let (ann, bob) = (Party::join(&world, "ann"), Party::join(&world, "bob"));
        let permit = ann.take();
        let done = Completions::new();
        let ticket = bob.start(&done, 1);
        let release = loom::thread::spawn(move || drop(permit));
        drop(done);
        release.join().unwrap();
        drop(ticket);
        assert_empty(&world);
    });
}

/// A store whose answers are another thread's, as a link's are.
struct Post {
    mail: Arc<Mail>,
}

#[derive(Default)]
struct Mail {
    /// And whether no more will come.
    calls: Mutex<(std::collections::VecDeque<(Call, Reply)>, bool)>,
    arrived: Condvar,
}

impl Mail {
    fn end(&self) {
        self.calls.lock().1 = true;
        self.arrived.notify_all();
    }

    /// Carries out what comes, until the end.
    fn serve(&self, store: &MemoryStore) {
        loop {
            let mut calls = self.calls.lock();
            while calls.0.is_empty() && !calls.1 {
                calls = self.arrived.wait(calls);
            }
            let Some((call, reply)) = calls.0.pop_front() else { return };
            drop(calls);
            store.submit(call, reply);
        }
    }
}

impl Store for Post {
    fn submit(&self, call: Call, reply: Reply) {
        self.mail.calls.lock().0.push_back((call, reply));
        self.mail.arrived.notify_all();
    }

    fn submit_and_wait(&self, call: Call, reply: Reply) {
        self.submit(call, reply);
    }

    fn check(&self) -> Result<crate::ServerInfo, StoreError> {
        Ok(crate::ServerInfo::default())
    }

    fn limiters(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn close(&self) {}
}

/// The answer to an enqueue comes by another thread while its owner gives up, or waits: one end, and nothing is left.
fn answered_elsewhere(scene: impl Fn(&Party)) {
    let (world, mail, clock) = (SharedWorld::default(), Arc::new(Mail::default()), Clock::manual());
    let mut store = None;
    let party = Party::over("ann", clock.clone(), |listener| {
        store = Some(MemoryStore::join(world.clone(), &"ann".into(), clock, listener));
        Box::new(Post { mail: mail.clone() })
    });
    let (calls, store) = (mail.clone(), store.expect("a store"));
    let link = loom::thread::spawn(move || calls.serve(&store));
    scene(&party);
    mail.end();
    link.join().unwrap();
    assert_empty(&world);
}

#[test]
fn loom_an_answer_and_a_cancel() {
    search_deeper(0, || {
        answered_elsewhere(|party| {
            let done = Completions::new();
            let cancelled = party.start(&done, 1).cancel();
            let end = done.poll(8, FOREVER).remove(0).result;
            assert_eq!(end.is_err(), cancelled);
            drop(end);
        });
    });
}

#[test]
fn loom_an_answer_wakes_who_waits() {
    search_deeper(0, || {
        answered_elsewhere(|party| {
            drop(party.limiter.acquire(&Request::new()).expect("a free permit"));
        });
    });
}

/// Writes down what it is handed, and answers at once.
struct Notebook(Arc<Mutex<Vec<(&'static str, TicketNo)>>>);

impl Store for Notebook {
    fn submit(&self, call: Call, reply: Reply) {
        let what = match call.verb {
            Verb::Acquire { no, .. } => ("acquire", no),
            Verb::Cancel(tickets) => ("cancel", tickets[0]),
            other => panic!("{other:?}"),
        };
        self.0.lock().push(what);
        let verdict = match what.0 {
            "acquire" => Verdict::Queued { order: what.1, position: 1, estimate: None },
            _ => Verdict::Cancelled([crate::store::Was::Queued].into()),
        };
        reply(Ok(Answer { epoch: 1, version: 0, notices: Vec::new(), verdict }));
    }

    fn submit_and_wait(&self, call: Call, reply: Reply) {
        self.submit(call, reply);
    }

    fn check(&self) -> Result<crate::ServerInfo, StoreError> {
        Ok(crate::ServerInfo::default())
    }

    fn limiters(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn close(&self) {}
}

/// Calls of several threads reach the store in the order in which they were decided, all of them, and once each.
#[test]
fn loom_no_cancel_overtakes_its_enqueue() {
    search(|| {
        let handed = Arc::new(Mutex::new(Vec::new()));
        let book = handed.clone();
        let party = Arc::new(Party::over("ann", Clock::manual(), |_| Box::new(Notebook(book))));
        let done = Completions::new();
        party.start(&done, 0); // what is not known yet is asked of one at a time
        let (other, to) = (party.clone(), done.clone());
        let thread = loom::thread::spawn(move || {
            other.start(&to, 1).cancel();
        });
        party.start(&done, 2).cancel();
        thread.join().unwrap();
        let left = party.engine.lock();
        assert!(left.outbox.is_empty() && !left.submitting, "a call is left that nobody hands over");
        drop(left);
        let handed = std::mem::take(&mut *handed.lock());
        let mut acquired = Vec::new();
        for (what, no) in &handed {
            match *what {
                "acquire" => acquired.push(*no),
                _ => assert!(acquired.contains(no), "{handed:?}"),
            }
        }
        acquired.sort_unstable();
        assert_eq!((&acquired[..], handed.len()), (&[1, 2, 3][..], 5), "each once: {handed:?}");
    });
}
