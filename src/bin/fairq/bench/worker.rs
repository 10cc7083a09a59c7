//! A process of the bench: keeps a number of tickets in flight from one thread, and notes every grant.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io::BufRead;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, TryRecvError, unbounded};
use fairq::{Completion, Completions, Limiter, Permit, Request};
use serde::{Deserialize, Serialize};

use crate::exit::{Failure, Outcome};
use crate::site::Site;
use crate::{clock, connect, signals, term};

/// How often orders are looked for while nothing is granted.
const TICK: Duration = Duration::from_millis(20);
const BATCH: usize = 256;

/// The arguments of a worker process.
#[derive(clap::Args)]
pub struct Args {
    name: String,
    limit: u64,
    tickets: u64,
    hold_ns: u64,
    #[arg(long)]
    background: bool,
}

/// What a worker is to do, as its parent says it.
pub struct Plan {
    pub name: String,
    pub limit: u64,
    /// Kept in flight at all times.
    pub tickets: u64,
    pub hold: Duration,
    /// Whether permits are dropped, as a process with many of them on one thread does, or released one by one.
    pub background: bool,
}

/// What the process uses of the machine.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Usage {
    pub at_ns: u64,
    pub cpu_us: u64,
    /// Linux only.
    pub rss_bytes: Option<u64>,
    /// Linux only.
    pub threads: Option<u64>,
}

impl Plan {
    pub fn arguments(&self) -> Vec<String> {
        let numbers = [self.limit, self.tickets, self.hold.as_nanos() as u64].map(|number| number.to_string());
        let flag = self.background.then(|| "--background".to_string());
        ["bench-worker".to_string(), self.name.clone()].into_iter().chain(numbers).chain(flag).collect()
    }
}

/// Orders by stdin: `go`, `usage`, `stop`. The end of stdin is the order to leave.
pub fn work(site: &Site, args: &Args) -> Outcome {
    signals::leave_to_parent();
    let client = connect::client(site.must_be_shared()?)?;
    client.check()?;
    let limiter = super::open(&client, &args.name, args.limit)?;
    let orders = orders()?;
    let mut load = Load::new(limiter, args);
    say("ready")?;
    load.run(&orders)?;
    connect::goodbye(&client);
    Ok(ExitCode::SUCCESS)
}

struct Load {
    limiter: Limiter,
    completions: Completions,
    tickets: u64,
    hold: Duration,
    background: bool,
    held: VecDeque<(Instant, u64, Permit)>,
    /// Fence, order, start and end of every grant, as text ready to be sent.
    record: String,
}

impl Load {
    fn new(limiter: Limiter, args: &Args) -> Load {
        Load {
            limiter,
            completions: Completions::new(),
            tickets: args.tickets,
            hold: Duration::from_nanos(args.hold_ns),
            background: args.background,
            held: VecDeque::new(),
            record: String::new(),
        }
    }

    fn run(&mut self, orders: &Receiver<String>) -> Result<(), Failure> {
        loop {
            match orders.try_recv().as_deref() {
                Ok("go") => self.go()?,
                Ok("usage") => say(&serde_json::to_string(&usage()).map_err(std::io::Error::from)?)?,
                Ok("stop") => return self.stop(),
                Ok(_) | Err(TryRecvError::Empty) => self.turn()?,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    fn go(&mut self) -> Result<(), Failure> {
        for token in 0..self.tickets {
            self.ask(token)?;
        }
        say("started")
    }

    /// Takes what was granted, gives back what was held long enough, and asks again for each.
    fn turn(&mut self) -> Result<(), Failure> {
        let patience = self.held.front().map_or(TICK, |(until, ..)| until.saturating_duration_since(Instant::now()));
        for Completion { token, result } in self.completions.poll(BATCH, patience.min(TICK)) {
            self.granted(token, clock::now_ns(), result?)?;
        }
        while self.held.front().is_some_and(|(until, ..)| *until <= Instant::now()) {
            if let Some((_, start_ns, permit)) = self.held.pop_front() {
                self.give_back(start_ns, permit)?;
                self.ask(0)?;
            }
        }
        Ok(())
    }

    fn granted(&mut self, token: u64, start_ns: u64, permit: Permit) -> Result<(), Failure> {
        if !self.hold.is_zero() {
            self.held.push_back((Instant::now() + self.hold, start_ns, permit));
            return Ok(());
        }
        self.give_back(start_ns, permit)?;
        self.ask(token)
    }

    fn give_back(&mut self, start_ns: u64, permit: Permit) -> Result<(), Failure> {
        let (fence, order, end_ns) = (permit.fence(), permit.order(), clock::now_ns());
        if self.background {
            drop(permit)
        } else {
            permit.release()?
        }
        writeln!(self.record, "{fence} {order} {start_ns} {end_ns}").expect("a String takes all text");
        Ok(())
    }

    fn ask(&self, token: u64) -> Result<(), Failure> {
        self.limiter.acquire_start(&Request::new().wait_forever(), &self.completions, token)?;
        Ok(())
    }

    /// The record is sent before the permits still held are given back, which nobody measures any more.
    fn stop(&mut self) -> Result<(), Failure> {
        self.held.clear();
        self.record.push_str("done");
        say(&self.record)
    }
}

fn orders() -> Result<Receiver<String>, Failure> {
    let (sender, receiver) = unbounded();
    std::thread::Builder::new().name("orders".into()).spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

fn say(line: &str) -> Result<(), Failure> {
    term::print(&format!("{line}\n"))
}

fn usage() -> Usage {
    // SAFETY: getrusage fills the structure, which is plain data.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Usage {
        at_ns: clock::now_ns(),
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        rss_bytes: field(&status, "VmRSS:").map(|kilobytes| kilobytes * 1024),
        threads: field(&status, "Threads:"),
    }
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_status() {
        let status = "Name:\tx\nVmRSS:\t    1234 kB\nThreads:\t4\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "Threads:")), (Some(1234), Some(4)));
    }
}
