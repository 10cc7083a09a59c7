//! A server that answers anything, to a client at work: nothing panics, and every request ends exactly once.
#![no_main]

use std::sync::Mutex;
use std::time::Duration;

use fairq::fuzzing::{Deed, client_at, deliver};
use fairq::{Client, Clock, Completions, Event, Limiter, Permit, Request, Ticket};
use fairq_fuzz::Input;
use fairq_fuzz::reply::{notices, reply};
use libfuzzer_sys::fuzz_target;
use redis::Value;

const MOST_STEPS: usize = 60;

fuzz_target!(|bytes: &[u8]| {
    // What the server does, and what the client does, in two halves of the input.
    let (server, client) = bytes.split_at(bytes.len() / 2);
    let deeds = Mutex::new(deeds(server).into_iter());
    let clock = Clock::manual();
    let next = move || deeds.lock().ok().and_then(|mut deeds| deeds.next()).unwrap_or(Deed::Behave);
    let client_of_it = client_at(next, clock.clone());
    let limiter = client_of_it.limiter("a").limit(2).open().expect("open");
    let mut work =
        Work { limiter, clock, done: Completions::new(), started: 0, ended: vec![], permits: vec![], tickets: vec![] };
    let mut input = Input::new(client);
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        work.step(&mut input);
    }
    work.permits.clear();
    close(&client_of_it, &work.clock);
    work.take();
    let mut tokens = std::mem::take(&mut work.ended);
    tokens.sort_unstable();
    assert_eq!(tokens, (0..work.started).collect::<Vec<_>>(), "each ends once; their tickets: {:?}", work.tickets);
});

/// A farewell that is not answered is waited for: time has to go on.
fn close(client: &Client, clock: &Clock) {
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| client.close(Duration::ZERO).expect("close"));
        while !closing.is_finished() {
            clock.advance(Duration::from_millis(100));
            std::thread::yield_now();
        }
    });
}

fn deeds(bytes: &[u8]) -> Vec<Deed> {
    let mut input = Input::new(bytes);
    let mut deeds = Vec::new();
    while !input.is_empty() && deeds.len() < 200 {
        deeds.push(match input.choose(8) {
            0 => complaint(&mut input),
            1 => match input.choose(3) {
                0 => Deed::Hang,
                down => Deed::Leave { down: down == 1 },
            },
            2 => Deed::Behave,
            3 => Deed::Reply(reply(&mut input, 12)),
            _ => Deed::Reply(likely(&mut input)),
        });
    }
    deeds
}

/// Replies that get far, since the epoch is mostly the same.
fn likely(input: &mut Input<'_>) -> Value {
    const WORDS: [&str; 6] = ["granted", "queued", "ok", "resync", "gone", "busy"];
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let epoch = if input.choose(8) == 0 { input.number() as i64 } else { 1 };
    let mut fields = vec![text(input.pick(&WORDS)), Value::Int(epoch), text(&notices(input)), Value::Int(1)];
    fields.extend((0..input.choose(6)).map(|_| Value::Int((input.number() & 0xff) as i64)));
    Value::Array(fields)
}

fn complaint(input: &mut Input<'_>) -> Deed {
    const CODES: [&str; 8] = ["OOM", "BUSY", "READONLY", "NOPERM", "NOSCRIPT", "LOADING", "WRONGTYPE", "ERR"];
    let line = format!("-{} of the fuzzer's\r\n", input.pick(&CODES));
    match redis::parse_redis_value(line.as_bytes()) {
        Ok(Value::ServerError(error)) => Deed::Complain(error),
        _ => Deed::Behave,
    }
}

struct Work {
    limiter: Limiter,
    clock: Clock,
    done: Completions,
    started: u64,
    ended: Vec<u64>,
    permits: Vec<Permit>,
    tickets: Vec<Ticket>,
}

impl Work {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.choose(8) {
            0..=2 => self.start(input),
            3 => drop(self.tickets.get(input.choose(8)).map(Ticket::cancel)),
            4 if !self.permits.is_empty() => drop(self.permits.swap_remove(input.choose(self.permits.len()))),
            5 => self.clock.advance(Duration::from_millis(10 * input.number().min(2000))),
            6 => {
                let text = format!("{} {}|fq:{{a}}", input.choose(3), notices(input));
                deliver(&self.limiter, text.as_bytes());
            }
            _ => self.take(),
        }
    }

    fn start(&mut self, input: &mut Input<'_>) {
        let request = Request::new()
            .cost(1 + input.choose(3) as u64)
            .max_wait(Duration::from_millis(input.number()))
            .report_permit(input.choose(2) == 1)
            .report_position(input.choose(2) == 1);
        if let Ok(ticket) = self.limiter.acquire_start(&request, &self.done, self.started) {
            self.started += 1;
            self.tickets.push(ticket);
        }
    }

    fn take(&mut self) {
        for event in self.done.poll_events(1000, Duration::ZERO) {
            if let Event::Done(completion) = event {
                self.ended.push(completion.token);
                self.permits.extend(completion.result);
            }
        }
    }
}
