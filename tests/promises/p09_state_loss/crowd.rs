//! Three clients that hold all of a limiter and wait for it, and how they stood before the loss.

use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::support::*;
use crate::tools::*;
use fairq::*;

const CLIENTS: usize = 3;
const WAITERS: u64 = 12;

/// Limiter `a`, limit 3: each client holds one permit, and they wait by turns.
pub struct Crowd<'a> {
    server: &'a Server,
    clients: Vec<(Client, Limiter)>,
    permits: Vec<Permit>,
    events: Vec<Receiver<PermitEvent>>,
    done: Completions,
    before: Standing,
    epoch: u64,
}

/// Tickets with fence and order.
#[derive(Debug, PartialEq)]
struct Standing {
    holders: Vec<(String, u64, u64)>,
    waiters: Vec<(String, u64)>,
}

impl Standing {
    fn of(limiter: &Limiter) -> Option<Standing> {
        let holders = limiter.holders().ok()?.into_iter();
        let waiters = limiter.waiters().ok()?.into_iter();
        Some(Standing {
            holders: holders.map(|entry| (entry.ticket, entry.fence.unwrap_or(0), entry.order)).collect(),
            waiters: waiters.map(|entry| (entry.ticket, entry.order)).collect(),
        })
    }
}

impl Crowd<'_> {
    pub fn gather(server: &Server, lease: Duration) -> Crowd<'_> {
        let clients: Vec<_> = (0..CLIENTS).map(|_| open(&server.url(), "a", CLIENTS as u64, lease)).collect();
        let acquire = |(_, limiter): &(Client, Limiter)| limiter.acquire(&Request::new()).expect("a permit");
        let permits: Vec<Permit> = clients.iter().map(acquire).collect();
        let done = Completions::new();
        for token in 0..WAITERS {
            line_up(&clients[token as usize % CLIENTS].1, &done, token..token + 1);
        }
        let events = permits.iter().map(Permit::events).collect();
        let before = Standing::of(&clients[0].1).expect("the state");
        let epoch = clients[0].1.status().expect("status").epoch;
        Crowd { server, clients, permits, events, done, before, epoch }
    }

    /// From here on it is a new epoch that is waited for.
    pub fn note(&mut self) {
        self.epoch = self.clients[0].1.status().expect("status").epoch;
    }

    /// Everybody has the ticket, order and fence from before, in a new epoch, and the grace is over.
    #[track_caller]
    pub fn wait_until_back(&self) {
        let limiter = &self.clients[0].1;
        wait_status(limiter, "the grace of a new epoch is over", |s| {
            s.epoch > self.epoch && s.grace == Duration::ZERO && s.used == CLIENTS as u64 && s.waiting == WAITERS
        });
        assert_eq!(Standing::of(limiter).as_ref(), Some(&self.before));
        self.permits.iter().for_each(assert_kept);
        assert!(self.events.iter().all(|events| !events.try_iter().any(|e| matches!(e, PermitEvent::Lost(_)))));
    }

    /// All finish: in line order, with growing fences, never above the limit, and nothing is left.
    #[track_caller]
    pub fn finish(self) {
        let limiter = &self.clients[0].1;
        let mut last = self.permits.iter().map(Permit::fence).max().expect("a permit");
        let mut held: std::collections::VecDeque<Permit> = self.permits.into();
        for expected in 0..WAITERS {
            assert!(limiter.status().expect("status").used <= CLIENTS as u64, "above the limit");
            assert!(self.done.poll(1, Duration::ZERO).is_empty(), "granted above the limit");
            held.pop_front().expect("a permit").release().expect("release");
            let (token, permit) = take(&self.done);
            assert_eq!(token, expected, "overtaken");
            assert!(permit.fence() > last, "a fence that does not grow");
            last = permit.fence();
            held.push_back(permit);
        }
        held.into_iter().for_each(|permit| permit.release().expect("release"));
        assert_empty(self.server, limiter);
    }
}
