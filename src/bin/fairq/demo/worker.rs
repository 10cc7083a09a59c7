//! Those who ask for permits: one thread a request, reporting what happens to it.

use std::collections::HashMap;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, unbounded};
use fairq::{Error, Limiter, Permit, PermitEvent, Ticket};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::plan::{Ending, Request};
use crate::exit::{Failure, Outcome};
use crate::site::Site;
use crate::{clock, connect, signals, term};

/// The arguments of a worker process.
#[derive(clap::Args)]
pub struct Args {
    name: String,
}

/// What the stage tells a worker to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    Ask { id: usize, hold_ms: u64, max_wait_ms: u64, cost: u64 },
    Cancel { id: usize },
}

/// What a worker reports, and when (CLOCK_MONOTONIC) it happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    pub id: usize,
    pub at_ns: u64,
    pub what: What,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum What {
    Asked,
    Granted { fence: u64, order: u64, ticket: String },
    Ended(Ending),
}

/// Carries out orders; shared by the worker processes and the stage itself, when it works in memory.
#[derive(Clone)]
pub struct Office {
    limiter: Limiter,
    events: Sender<Event>,
    tickets: Arc<Mutex<HashMap<usize, Ticket>>>,
}

impl Order {
    pub fn ask(request: &Request) -> Order {
        Order::Ask {
            id: request.id,
            hold_ms: request.hold.as_millis() as u64,
            max_wait_ms: request.max_wait.as_millis() as u64,
            cost: request.cost,
        }
    }
}

impl Office {
    pub fn new(limiter: Limiter, events: Sender<Event>) -> Office {
        Office { limiter, events, tickets: Arc::default() }
    }

    pub fn obey(&self, order: Order) -> Result<(), Failure> {
        match order {
            Order::Cancel { id } => {
                if let Some(ticket) = self.tickets.lock().get(&id) {
                    ticket.cancel();
                }
            }
            Order::Ask { id, hold_ms, max_wait_ms, cost } => {
                let ticket = self.limiter.ticket();
                self.tickets.lock().insert(id, ticket.clone());
                let max_wait = Duration::from_millis(max_wait_ms);
                let request = fairq::Request::new().cost(cost).max_wait(max_wait).label(format!("r{id:02}"));
                let office = self.clone();
                let hold = Duration::from_millis(hold_ms);
                thread::Builder::new().spawn(move || office.live(id, &ticket, &request, hold))?;
            }
        }
        Ok(())
    }

    /// One request from the question to the end.
    fn live(&self, id: usize, ticket: &Ticket, request: &fairq::Request, hold: Duration) {
        self.report(id, What::Asked);
        let (ending, at_ns) = match self.limiter.acquire_with(ticket, request) {
            Ok(permit) => self.hold(id, permit, hold),
            Err(error) => (ending_of(&error), clock::now_ns()),
        };
        self.report_at(id, at_ns, What::Ended(ending));
    }

    /// Holds the permit, unless it is taken away; says how it ended and when the holding did.
    fn hold(&self, id: usize, permit: Permit, hold: Duration) -> (Ending, u64) {
        let granted = What::Granted { fence: permit.fence(), order: permit.order(), ticket: permit.ticket_id() };
        self.report(id, granted);
        let lost = loses_within(&permit, hold);
        let at_ns = clock::now_ns();
        if lost {
            return (Ending::Revoked, at_ns);
        }
        match permit.release() {
            Ok(()) => (Ending::Finished, at_ns),
            Err(error) => (ending_of(&error), at_ns),
        }
    }

    fn report(&self, id: usize, what: What) {
        self.report_at(id, clock::now_ns(), what);
    }

    fn report_at(&self, id: usize, at_ns: u64, what: What) {
        // Nobody listens any more when the demo was interrupted.
        let _ = self.events.send(Event { id, at_ns, what });
    }
}

/// A worker process: orders by stdin, events by stdout, both JSON lines. The end of stdin is the order to leave.
pub fn work(site: &Site, args: &Args) -> Outcome {
    signals::leave_to_parent();
    let client = connect::client(site.must_be_shared()?)?;
    let limiter = super::open(&client, &args.name)?;
    let (events, reported) = unbounded::<Event>();
    thread::Builder::new().name("reports".into()).spawn(move || {
        for event in reported {
            let line = serde_json::to_string(&event).expect("an event is plain data");
            if term::print(&(line + "\n")).is_err() {
                return;
            }
        }
    })?;
    let office = Office::new(limiter, events);
    term::print("ready\n")?;
    for line in std::io::stdin().lock().lines() {
        let order = serde_json::from_str(&line?).map_err(std::io::Error::from)?;
        office.obey(order)?;
    }
    connect::goodbye(&client);
    Ok(ExitCode::SUCCESS)
}

fn loses_within(permit: &Permit, hold: Duration) -> bool {
    let events = permit.events();
    let until = Instant::now() + hold;
    loop {
        match events.recv_deadline(until) {
            Ok(PermitEvent::Lost(_)) => return true,
            Ok(_) => {}
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => return false,
            // The permit has ended without saying so: it is certainly no longer held.
            Err(crossbeam_channel::RecvTimeoutError::Disconnected) => return true,
        }
    }
}

fn ending_of(error: &Error) -> Ending {
    match error {
        Error::Cancelled => Ending::Cancelled,
        Error::TimedOut { .. } => Ending::TimedOut,
        Error::QueueFull { .. } => Ending::Rejected,
        Error::Revoked | Error::PermitLost(_) | Error::Stale => Ending::Revoked,
        other => {
            tracing::warn!("a request failed: {other}");
            Ending::Failed
        }
    }
}
