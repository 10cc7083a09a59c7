//! What runs in the worker process.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use fairq::*;
use parking_lot::Mutex;

use super::mix::Mixer;
use super::{Setup, now};

const POLL: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);

/// Everything is in front of a lock of its own: commands, completions and loops run in different threads.
struct Shop {
    client: Client,
    limiter: Limiter,
    completions: Completions,
    labels: Mutex<HashMap<u64, String>>,
    permits: Mutex<HashMap<String, Permit>>,
    next_token: AtomicU64,
    over: AtomicBool,
}

/// Obeys until stdin ends.
pub fn serve(setup: &Setup) {
    let shop = Arc::new(open(setup));
    let collector = shop.clone();
    thread::spawn(move || collector.collect());
    say("ready", now(), "-", "");
    let mut loops = Vec::new();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        obey(&shop, &line, &mut loops);
    }
}

fn open(setup: &Setup) -> Shop {
    let builder = Client::builder(&setup.url).io_timeout(setup.io_timeout).connect_timeout(setup.io_timeout);
    let client = builder.open().expect("open the client");
    let builder = client.limiter(&setup.name).limit(setup.limit).lease(setup.lease);
    let limiter = builder.max_hold(setup.max_hold).poll(POLL).open().expect("open the limiter");
    Shop {
        client,
        limiter,
        completions: Completions::new(),
        labels: Mutex::default(),
        permits: Mutex::default(),
        next_token: AtomicU64::new(1),
        over: AtomicBool::new(false),
    }
}

fn obey(shop: &Arc<Shop>, line: &str, loops: &mut Vec<JoinHandle<()>>) {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |i: usize| words[i].parse::<u64>().expect("a number");
    match words[0] {
        "acquire" => shop.acquire(words[1], number(2), number(3)),
        "flood" => (0..number(1)).for_each(|i| shop.acquire(&i.to_string(), 1, 600_000)),
        "release" => shop.release(words[1]),
        "valid" => {
            let valid = shop.permits.lock().get(words[1]).is_some_and(Permit::is_valid);
            say("valid", now(), words[1], valid);
        }
        "churn" => {
            let hold = Duration::from_millis(number(2));
            for _ in 0..number(1) {
                let shop = shop.clone();
                loops.push(thread::spawn(move || shop.churn(hold)));
            }
        }
        "mix" => {
            let hold = Duration::from_millis(number(2));
            for thread in 0..number(1) {
                let (shop, seed) = (shop.clone(), number(3) * 1000 + thread);
                loops.push(thread::spawn(move || Mixer::new(&shop.limiter, hold, seed).run(&shop.over)));
            }
        }
        "order" => {
            let (shop, verb) = (shop.clone(), words[1].to_owned());
            thread::spawn(move || shop.order(&verb));
        }
        "end" => {
            shop.over.store(true, Ordering::SeqCst);
            loops.drain(..).for_each(|thread| thread.join().expect("a loop"));
            say("ended", now(), "-", "");
        }
        other => panic!("an unknown command: {other}"),
    }
}

impl Shop {
    fn acquire(&self, label: &str, cost: u64, wait_ms: u64) {
        let token = self.next_token.fetch_add(1, Ordering::SeqCst);
        self.labels.lock().insert(token, label.to_owned());
        let request = Request::new().cost(cost).max_wait(Duration::from_millis(wait_ms)).label(label);
        let started = self.limiter.acquire_start(&request, &self.completions, token);
        started.expect("start a request");
    }

    fn collect(&self) {
        loop {
            for Completion { token, result } in self.completions.poll(100, LONG) {
                let label = self.labels.lock().remove(&token).expect("one completion for each token");
                match result {
                    Ok(permit) => self.granted(label, permit),
                    Err(error) => say("failed", now(), &label, format!("{error:?}").replace(' ', "")),
                }
            }
        }
    }

    fn granted(&self, label: String, permit: Permit) {
        let mut permits = self.permits.lock();
        let valid: Vec<&str> = permits.iter().filter(|(_, p)| p.is_valid()).map(|(l, _)| l.as_str()).collect();
        say_granted(&label, &permit, &valid);
        report_events(label.clone(), &permit);
        permits.insert(label, permit);
    }

    /// What operators do, and the end of a client. Whoever gives the order may be out to see it fail.
    fn order(&self, verb: &str) {
        let _ = match verb {
            "configure" => self.limiter.configure(&Change::new().max_wait(LONG)).map(drop),
            "revoke" => self.limiter.acquire(&Request::new()).and_then(|permit| {
                self.limiter.revoke(&permit.ticket_id())?;
                std::mem::forget(permit); // so that nothing else gives it back
                Ok(())
            }),
            "leave" => self.client.close(Duration::ZERO),
            other => panic!("an unknown order: {other}"),
        };
    }

    fn release(&self, label: &str) {
        let permit = self.permits.lock().remove(label).expect("a permit of that label");
        release(label, permit);
    }

    fn churn(&self, hold: Duration) {
        while !self.over.load(Ordering::SeqCst) {
            let label = format!("c{}", self.next_token.fetch_add(1, Ordering::SeqCst));
            match self.limiter.acquire(&Request::new().max_wait(LONG).label(&*label)) {
                Ok(permit) => {
                    say_granted(&label, &permit, &[]);
                    report_events(label.clone(), &permit);
                    thread::sleep(hold); // the guarded work
                    release(&label, permit);
                }
                Err(error) => say("failed", now(), &label, format!("{error:?}").replace(' ', "")),
            }
        }
    }
}

pub(super) fn say_granted(label: &str, permit: &Permit, valid: &[&str]) {
    let (order, fence) = (permit.order(), permit.fence());
    say("granted", now(), label, format_args!("{order} {fence} {}", valid.join(",")));
}

pub(super) fn report_events(label: String, permit: &Permit) {
    let events = permit.events();
    thread::spawn(move || {
        for event in events {
            say("event", now(), &label, format!("{event:?}"));
        }
    });
}

pub(super) fn release(label: &str, permit: Permit) {
    let at = now();
    say("leaving", at, label, ""); // should it be killed before the answer
    let result = permit.release();
    let result = result.map_or_else(|error| format!("{error:?}").replace(' ', ""), |()| "ok".into());
    say("released", at, label, result);
}

pub(super) fn say(what: &str, at: u64, label: &str, rest: impl Display) {
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "@{what} {at} {label} {rest}").and_then(|()| out.flush());
    if written.is_err() {
        std::process::exit(1); // the test is gone
    }
}
