//! A process of the soak: a few threads that want one thing after the other, and say what became of it.
//!
//! Each line begins with a word and the number of the request, which is unique in its process; times are CLOCK_MONOTONIC
//! nanoseconds. What is said of a hold lies inside the true one: it begins after the grant was heard of, and ends before
//! the release is sent, or when the permit was last known to be valid.
//!
//! | line | meaning |
//! |---|---|
//! | `asked N AT LIMITER WAIT_MS CANCELS` | before the request is made; CANCELS is 1 when it may be given up |
//! | `granted N AT FENCE ORDER COST` | |
//! | `failed N AT ERROR` | |
//! | `ended N AT HOW` | the hold is over; HOW is `kept` or `lost` |
//! | `done` | the last word |

use std::io::BufRead;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairq::{Completions, Error, Limiter, Permit, Request};

use super::script::{Dice, Wish};
use crate::exit::Outcome;
use crate::site::Site;
use crate::{clock, connect, signals, term};

const THREADS: u64 = 4;
/// Below the lease by so much that a connection that fell silent costs nobody a permit.
const IO_TIMEOUT: Duration = Duration::from_millis(700);
/// How often a holder looks whether its permit is valid.
const LOOK: Duration = Duration::from_millis(5);
/// A completion that is not there so long after its deadline never comes; the ledger says so.
const OVERDUE: Duration = Duration::from_secs(60);

/// The arguments of a worker process.
#[derive(clap::Args)]
pub struct Args {
    name: String,
    seed: u64,
}

pub fn work(site: &Site, args: &Args) -> Outcome {
    signals::leave_to_parent();
    let builder = site.must_be_shared()?.builder()?;
    let client = builder.io_timeout(IO_TIMEOUT).connect_timeout(IO_TIMEOUT).open()?;
    let limiters = super::limiters(&client, &args.name)?;
    let over = Arc::new(AtomicBool::new(false));
    let order = over.clone();
    // The end of stdin is the order to leave, and so is any line.
    thread::Builder::new().name("orders".into()).spawn(move || {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        order.store(true, Ordering::SeqCst);
    })?;
    let next = AtomicU64::new(1);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let dice = Dice::new(args.seed * THREADS + number);
            let desk = Desk { limiters: &limiters, next: &next, completions: Completions::new() };
            let over = &over;
            scope.spawn(move || desk.work(dice, over));
        }
    });
    connect::goodbye(&client);
    term::print("done\n")?;
    Ok(ExitCode::SUCCESS)
}

/// One thread's.
struct Desk<'a> {
    limiters: &'a [Limiter],
    next: &'a AtomicU64,
    completions: Completions,
}

impl Desk<'_> {
    fn work(&self, mut dice: Dice, over: &AtomicBool) {
        while !over.load(Ordering::SeqCst) {
            self.carry_out(&Wish::next(&mut dice));
        }
    }

    fn carry_out(&self, wish: &Wish) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (wait, cancels) = (wish.wait.as_millis(), u8::from(wish.cancel_after.is_some()));
        say(&format!("asked {number} {} {} {wait} {cancels}", clock::now_ns(), wish.limiter));
        match self.ask(wish) {
            Some(Ok(permit)) => hold(number, permit, wish),
            Some(Err(error)) => {
                say(&format!("failed {number} {} {}", clock::now_ns(), format!("{error:?}").replace(' ', "")));
            }
            None => {}
        }
    }

    /// `None`: it has not ended, though it should have long ago.
    fn ask(&self, wish: &Wish) -> Option<Result<Permit, Error>> {
        let limiter = &self.limiters[wish.limiter];
        let request = Request::new().cost(wish.cost).max_wait(wish.wait);
        let Some(after) = wish.cancel_after else { return Some(limiter.acquire(&request)) };
        let ticket = match limiter.acquire_start(&request, &self.completions, 0) {
            Ok(ticket) => ticket,
            Err(error) => return Some(Err(error)),
        };
        let mut done = self.completions.poll(1, after);
        if done.is_empty() {
            ticket.cancel();
            done = self.completions.poll(1, wish.wait + OVERDUE);
        }
        done.pop().map(|completion| completion.result)
    }
}

fn hold(number: u64, permit: Permit, wish: &Wish) {
    let mut last_valid = clock::now_ns();
    let (fence, order, cost) = (permit.fence(), permit.order(), permit.cost());
    say(&format!("granted {number} {last_valid} {fence} {order} {cost}"));
    let until = Instant::now() + wish.hold;
    let valid = loop {
        let at = clock::now_ns();
        if !permit.is_valid() {
            break false;
        }
        last_valid = at;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break true;
        }
        thread::sleep(left.min(LOOK));
    };
    let how = if valid { "kept" } else { "lost" };
    say(&format!("ended {number} {last_valid} {how}"));
    if wish.dropped {
        drop(permit);
    } else if let Err(error) = permit.release() {
        tracing::debug!("release: {error}"); // during an outage it goes on in the background
    }
}

fn say(line: &str) {
    if term::print(&format!("{line}\n")).is_err() {
        std::process::exit(1); // the parent is gone
    }
}
