//! P3, conservation: when everything has ended, nothing is left.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fairq::{Client, Completions, Error, Limiter, Permit, Request, Ticket};

use crate::stores::*;
use crate::support::{Proxy, SOON, Server, eventually, tickets_in};

#[test]
fn a_panic_in_the_guarded_work_gives_the_permit_back() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _permit = take(&limiter);
            std::panic::resume_unwind(Box::new("the work failed"));
        }));
        assert!(outcome.is_err());
        world.assert_no_ticket_left(&limiter);
        take(&limiter).release().expect("release");
    });
}

#[test]
fn a_thread_that_dies_before_its_work_starts_gives_the_permit_back() {
    on_both(|world| {
        let limiter = world.limiter(1);
        let completions = Completions::new();
        limiter.acquire_start(&patient(), &completions, 1).expect("start");
        wait_for_use(&limiter, 1);
        drop(completions); // nobody has polled, and nobody ever will
        world.assert_no_ticket_left(&limiter);
    });
}

#[test]
fn a_release_whose_call_fails_once_is_repeated() {
    let server = Server::start(Server::default_flavor());
    let proxy = Proxy::to(server.port());
    let client = Client::open(&proxy.url()).expect("open");
    let limiter = limiter(&client, 1);
    let (background, waiting) = (take(&limiter), Completions::new());
    queue_up(&limiter, &waiting, 1, &patient(), 0);
    proxy.drop_reply_matching(background.fence().to_string().as_bytes());
    drop(background);
    let permit = granted(&waiting, 1);
    assert_eq!(proxy.fired(), 1);
    let held = proxy.hold_next_request(permit.fence().to_string().as_bytes());
    permit.release().expect("it is sent again");
    assert!(held.is_caught());
    wait_for_use(&limiter, 0);
}

#[test]
fn a_release_that_is_denied_for_a_while_is_repeated_until_it_counts() {
    let server = Server::start(Server::default_flavor());
    let user = |rights: &str| {
        let user = ["SETUSER", "app", "on", ">pw", "~*", "&*", rights];
        redis::cmd("ACL").arg(&user).exec(&mut server.conn()).expect("ACL SETUSER");
    };
    user("+@all");
    let client = Client::open(&format!("redis://app:pw@127.0.0.1:{}", server.port())).expect("open");
    let limiter = limiter(&client, 2);
    let _other = take(&limiter); // its heartbeat keeps the instance alive, and with it whatever leaks
    let permit = take(&limiter);
    user("-zrem");
    let error = permit.release().expect_err("the release is denied");
    assert!(!matches!(error, Error::Stale), "{error:?}");
    user("+@all");
    wait_for_use(&limiter, 1);
}

#[test]
fn a_client_that_closes_leaves_no_field_of_itself() {
    let world = World::redis();
    let server = world.server().expect("a server");
    for round in 0..3 {
        let client = world.client();
        let limiter = limiter(&client, 2);
        let kept = (take(&limiter), take(&limiter));
        let waiting = Completions::new();
        queue_up(&limiter, &waiting, 1, &patient(), 0);
        if round == 1 {
            drop(kept.0);
            drop(granted(&waiting, 1));
        }
        client.close(Duration::ZERO).expect("close");
        assert_eq!(instances_in(server, NAME), Vec::<String>::new());
        assert_eq!(tickets_in(server, NAME), Vec::<String>::new());
    }
}

/// Someone who does anything that a user may do, in any order.
struct Actor<'a> {
    limiter: &'a Limiter,
    rng: Rng,
    completions: Completions,
    pending: Vec<Ticket>,
    held: Vec<Permit>,
}

impl Actor<'_> {
    fn new(limiter: &Limiter, seed: u64) -> Actor<'_> {
        let (completions, pending, held) = (Completions::new(), Vec::new(), Vec::new());
        Actor { limiter, rng: Rng::new(seed), completions, pending, held }
    }

    fn act(&mut self) {
        match self.rng.below(10) {
            0..3 => self.start(),
            3 => self.held.extend(self.limiter.try_acquire(&Request::new()).expect("ask")),
            4 => self.cancel(),
            5..7 => self.end_one(drop),
            7 => self.end_one(|permit| permit.release().expect("it was held")),
            8 => self.put_back(),
            _ => self.revoke(),
        }
        self.collect();
    }

    fn start(&mut self) {
        let wait = [Duration::ZERO, Duration::from_millis(2), Duration::MAX][self.rng.below(3) as usize];
        let request = Request::new().cost(1 + self.rng.below(3)).max_wait(wait);
        self.pending.push(self.limiter.acquire_start(&request, &self.completions, 0).expect("start"));
    }

    fn cancel(&mut self) {
        if let Some(ticket) = self.pending.pop() {
            ticket.cancel();
        }
    }

    fn end_one(&mut self, how: impl FnOnce(Permit)) {
        if !self.held.is_empty() {
            let chosen = self.rng.below(self.held.len() as u64) as usize;
            how(self.held.swap_remove(chosen));
        }
    }

    /// It may be granted again at once, or wait behind an earlier one: but never for long, as nobody else waits on us.
    fn put_back(&mut self) {
        if let Some(permit) = self.held.pop()
            && let Ok(again) = permit.put_back(Duration::from_millis(1))
        {
            self.held.push(again);
        }
    }

    /// A revoked permit is not released: its owner may not have heard of it.
    fn revoke(&mut self) {
        if let Some(permit) = self.held.pop() {
            self.limiter.revoke(&permit.ticket_id()).expect("revoke");
        }
    }

    fn collect(&mut self) {
        let done = self.completions.poll(100, Duration::ZERO);
        self.held.extend(done.into_iter().filter_map(|completion| completion.result.ok()));
    }

    fn end(mut self) {
        for ticket in &self.pending {
            ticket.cancel();
        }
        self.collect();
    }
}

#[test]
fn whatever_was_done_in_whatever_order_nothing_is_left_in_the_end() {
    on_both(|world| {
        let limiters = [world.limiter(4), world.limiter(4)];
        let at_work = AtomicUsize::new(4);
        let steps = if world.is_memory() { 1000 } else { 200 };
        thread::scope(|scope| {
            for (number, limiter) in limiters.iter().cycle().take(4).enumerate() {
                let (clock, at_work) = (world.clock.clone(), &at_work);
                scope.spawn(move || {
                    let mut actor = Actor::new(limiter, number as u64 + 11);
                    for _ in 0..steps {
                        actor.act();
                        clock.advance(Duration::from_micros(actor.rng.below(1000)));
                    }
                    actor.end();
                    at_work.fetch_sub(1, Ordering::SeqCst);
                });
            }
            // Those who put back wait by the clock, perhaps all at once.
            while world.is_memory() && at_work.load(Ordering::SeqCst) > 0 {
                world.clock.advance(Duration::from_micros(100));
                thread::yield_now();
            }
        });
        world.assert_no_ticket_left(&limiters[0]);
        let _all = take_cost(&limiters[1], 4);
    });
}

#[test]
fn a_waiter_granted_after_everybody_left_finds_the_whole_limit() {
    on_both(|world| {
        let limiter = world.limiter(5);
        let completions = Completions::new();
        for round in 0..20 {
            let held: Vec<_> = (0..5).map(|_| take(&limiter)).collect();
            queue_up(&limiter, &completions, round, &patient().cost(5), 0);
            drop(held);
            granted(&completions, round).release().expect("release");
        }
        eventually("use is zero", SOON, || limiter.status().is_ok_and(|status| status.used == 0));
    });
}
