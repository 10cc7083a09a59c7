//! A worker process of `benches/peers/run.py` for fairq itself, in Rust: one thread for all that wait. Its arguments and
//! its words are told in `benches/peers/README.md`.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::BufRead as _;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use fairq::{Client, Completion, Completions, Limiter, Permit, Request};

/// How often orders are looked for while nothing is granted.
const TICK: Duration = Duration::from_millis(20);

struct Worker {
    limiter: Limiter,
    completions: Completions,
    rounds: u64,
    hold: Duration,
    /// Asked, granted, released; a token is an index.
    records: Vec<[u64; 3]>,
    /// For each token, how many requests its waiter has left, with this one.
    left: Vec<u64>,
    held: VecDeque<(Instant, u64, Permit)>,
    running: usize,
}

impl Worker {
    fn ask(&mut self, left: u64) {
        let token = self.records.len() as u64;
        self.records.push([now_ns(), 0, 0]);
        self.left.push(left);
        let request = Request::new().max_wait(Duration::from_secs(600));
        self.limiter.acquire_start(&request, &self.completions, token).expect("start");
    }

    fn run(&mut self, waiters: u64, orders: &Receiver<String>) {
        self.running = waiters as usize;
        (0..waiters).for_each(|_| self.ask(self.rounds));
        while self.running > 0 && matches!(orders.try_recv(), Err(TryRecvError::Empty)) {
            self.turn();
        }
    }

    fn turn(&mut self) {
        let patience = self.held.front().map_or(TICK, |(until, ..)| until.saturating_duration_since(Instant::now()));
        for Completion { token, result } in self.completions.poll(256, patience.min(TICK)) {
            self.records[token as usize][1] = now_ns();
            self.held.push_back((Instant::now() + self.hold, token, result.expect("a permit")));
        }
        while self.held.front().is_some_and(|(until, ..)| *until <= Instant::now()) {
            let Some((_, token, permit)) = self.held.pop_front() else { return };
            self.records[token as usize][2] = now_ns();
            drop(permit);
            match self.left[token as usize] - 1 {
                0 => self.running -= 1,
                left => self.ask(left),
            }
        }
    }

    fn record(&self) -> String {
        self.records.iter().fold(String::new(), |mut text, [asked, granted, released]| {
            writeln!(text, "{asked} {granted} {released}").expect("to a string");
            text
        })
    }
}

/// CLOCK_MONOTONIC, which is the same in all processes.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn orders() -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [_, url, name, limit, waiters, rounds, hold_ms, file] = &words[..] else { panic!("see README.md") };
    let number = |text: &String| text.parse::<u64>().expect("a number");
    let client = Client::open(url).expect("open the client");
    let warm = client.limiter(&format!("warm-{}", std::process::id())).limit(1).open().expect("open");
    for _ in 0..50 {
        warm.acquire(&Request::new()).expect("a permit").release().expect("release");
    }
    let limiter = client.limiter(name).limit(number(limit)).open().expect("open the limiter");
    limiter.acquire(&Request::new()).expect("a permit").release().expect("release");
    let orders = orders();
    println!("ready");
    let mut worker = Worker {
        limiter,
        completions: Completions::new(),
        rounds: number(rounds),
        hold: Duration::from_millis(number(hold_ms)),
        records: Vec::new(),
        left: Vec::new(),
        held: VecDeque::new(),
        running: 0,
    };
    if orders.recv().is_ok_and(|order| order == "go") {
        worker.run(number(waiters), &orders);
    }
    std::fs::write(file, worker.record()).expect("write the record");
    println!("done");
    client.close(Duration::ZERO).expect("close");
}
