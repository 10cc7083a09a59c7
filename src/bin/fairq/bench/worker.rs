//! A process of the bench: keeps a number of tickets in flight from one thread, and notes every grant.

use std::collections::VecDeque;
use std::fmt::Write;
use std::io::BufRead;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, TryRecvError, unbounded};
use fairq::{Completion, Completions, Limiter, Permit, Request, Ticket, TicketState};

use super::usage::Usage;
use crate::exit::{Failure, Outcome};
use crate::site::Site;
use crate::{clock, connect, signals, term};

/// How often orders are looked for while nothing is granted.
const TICK: Duration = Duration::from_millis(20);
const BATCH: usize = 256;
/// How many come into line at once, of a process and of each of its clients.
const ARRIVALS: u64 = 256;
const ARRIVALS_EACH: u64 = 8;

/// The arguments of a worker process.
#[derive(clap::Args)]
pub struct Args {
    name: String,
    limit: u64,
    tickets: u64,
    hold_ns: u64,
    clients: u64,
    costs_up_to: u64,
    #[arg(long)]
    background: bool,
}

/// What a worker is to do, as its parent says it.
#[derive(Clone)]
pub struct Plan {
    pub name: String,
    pub limit: u64,
    /// Kept in flight at all times.
    pub tickets: u64,
    pub hold: Duration,
    /// Instances in this process, among which the tickets are shared.
    pub clients: u64,
    /// Requests cost 1, 2, … up to this, by turns.
    pub costs_up_to: u64,
    /// Whether permits are dropped, as a process with many of them on one thread does, or released one by one.
    pub background: bool,
}

impl Plan {
    pub fn arguments(&self) -> Vec<String> {
        let numbers = [self.limit, self.tickets, self.hold.as_nanos() as u64, self.clients, self.costs_up_to];
        let numbers = numbers.map(|number| number.to_string());
        let flag = self.background.then(|| "--background".to_string());
        ["bench-worker".to_string(), self.name.clone()].into_iter().chain(numbers).chain(flag).collect()
    }
}

/// Orders by stdin: `go`, `usage`, `stop`. The end of stdin is the order to leave.
pub fn work(site: &Site, args: &Args) -> Outcome {
    signals::leave_to_parent();
    let site = site.must_be_shared()?;
    let clients = (0..args.clients).map(|_| connect::client(site)).collect::<Result<Vec<_>, _>>()?;
    clients.iter().take(1).try_for_each(|client| client.check().map(drop))?;
    let open = |client| super::open(client, &args.name, args.limit);
    let limiters = clients.iter().map(open).collect::<Result<_, _>>()?;
    let orders = orders()?;
    let mut load = Load::new(limiters, args);
    say("ready")?;
    load.run(&orders)?;
    connect::goodbye_all(&clients);
    Ok(ExitCode::SUCCESS)
}

struct Load {
    /// One of each client. A token is an index.
    limiters: Vec<Limiter>,
    completions: Completions,
    tickets: u64,
    hold: Duration,
    costs_up_to: u64,
    asked: u64,
    background: bool,
    held: VecDeque<Held>,
    /// Fence, order, cost, start and end of every grant, as text ready to be sent.
    record: String,
}

struct Held {
    until: Instant,
    start_ns: u64,
    token: u64,
    permit: Permit,
}

impl Load {
    fn new(limiters: Vec<Limiter>, args: &Args) -> Load {
        Load {
            limiters,
            completions: Completions::new(),
            tickets: args.tickets,
            hold: Duration::from_nanos(args.hold_ns),
            costs_up_to: args.costs_up_to,
            asked: 0,
            background: args.background,
            held: VecDeque::new(),
            record: String::new(),
        }
    }

    fn run(&mut self, orders: &Receiver<String>) -> Result<(), Failure> {
        loop {
            match orders.try_recv().as_deref() {
                Ok("go") => self.go()?,
                Ok("usage") => say(&serde_json::to_string(&Usage::now()).map_err(std::io::Error::from)?)?,
                Ok("stop") => return self.stop(),
                Ok(_) | Err(TryRecvError::Empty) => self.turn()?,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
    }

    fn go(&mut self) -> Result<(), Failure> {
        let clients = self.limiters.len() as u64;
        let slice = ARRIVALS.max(ARRIVALS_EACH * clients);
        for number in 1..=self.tickets {
            let ticket = self.ask(number % clients)?;
            // A million at one moment would keep the server busy for longer than its clients wait for an answer.
            while number % slice == 0 && ticket.state() == TicketState::Pending && ticket.last_position().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        say("started")
    }

    /// Takes what was granted, gives back what was held long enough, and asks again for each.
    fn turn(&mut self) -> Result<(), Failure> {
        let next = self.held.front();
        let patience = next.map_or(TICK, |held| held.until.saturating_duration_since(Instant::now()));
        for Completion { token, result } in self.completions.poll(BATCH, patience.min(TICK)) {
            let start_ns = clock::now_ns();
            self.granted(Held { until: Instant::now() + self.hold, start_ns, token, permit: result? })?;
        }
        while self.held.front().is_some_and(|held| held.until <= Instant::now()) {
            if let Some(held) = self.held.pop_front() {
                self.over(held)?;
            }
        }
        Ok(())
    }

    fn granted(&mut self, held: Held) -> Result<(), Failure> {
        if self.hold.is_zero() {
            return self.over(held);
        }
        self.held.push_back(held);
        Ok(())
    }

    /// Gives it back, and asks for the next.
    fn over(&mut self, Held { start_ns, token, permit, .. }: Held) -> Result<(), Failure> {
        let (fence, order, cost, end_ns) = (permit.fence(), permit.order(), permit.cost(), clock::now_ns());
        if self.background {
            drop(permit)
        } else {
            permit.release()?
        }
        writeln!(self.record, "{fence} {order} {cost} {start_ns} {end_ns}").expect("a String takes all text");
        self.ask(token).map(drop)
    }

    fn ask(&mut self, token: u64) -> Result<Ticket, Failure> {
        let request = Request::new().wait_forever().cost(1 + self.asked % self.costs_up_to);
        self.asked += 1;
        Ok(self.limiters[token as usize].acquire_start(&request, &self.completions, token)?)
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
