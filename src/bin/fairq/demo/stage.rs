//! Runs the plan: gives orders to the crew, listens to what it reports, and plays the operator.

use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, never, select, unbounded};
use fairq::{Change, Limiter};

use super::plan::{Ending, Plan, Step};
use super::record::Record;
use super::view::View;
use super::worker::{Event, Office, Order, What};
use crate::audit::LimitChange;
use crate::clock;
use crate::exit::{Failure, SOFTWARE};
use crate::signals::Signal;
use crate::site::Site;
use crate::workers::{Said, Team, Worker};

/// Between two requests of a burst, so that they arrive in the order of their numbers.
const SPACING: Duration = Duration::from_millis(40);
/// How often the picture moves and a condition is looked at.
const TICK: Duration = Duration::from_millis(50);
/// A condition that has not come true by then never will: something is broken, and the proof will say so.
const PATIENCE: Duration = Duration::from_secs(8);

/// Those who ask: threads of this process, or processes.
pub enum Crew {
    Threads(Office, Receiver<Event>),
    Processes(Team, Receiver<Said>),
}

pub struct Stage<'a> {
    limiter: &'a Limiter,
    plan: &'a Plan,
    crew: Crew,
    view: View<'a>,
    signals: &'a Receiver<Signal>,
    record: Record,
}

impl Crew {
    pub fn assemble(site: &Site, limiter: &Limiter, processes: usize) -> Result<Crew, Failure> {
        if processes == 0 {
            let (events, reported) = unbounded();
            return Ok(Crew::Threads(Office::new(limiter.clone(), events), reported));
        }
        let (said, heard) = unbounded();
        let arguments = ["demo-worker".to_string(), limiter.name().to_string()];
        let start = |index| Worker::start(index, site, &arguments, Sender::clone(&said));
        let workers = Team((0..processes).map(start).collect::<Result<_, _>>()?);
        for _ in 0..processes {
            match heard.recv_timeout(PATIENCE) {
                Ok(Said { line: Some(_), .. }) => {}
                _ => return Err(Failure::new(SOFTWARE, "a worker process did not start")),
            }
        }
        Ok(Crew::Processes(workers, heard))
    }

    fn tell(&mut self, process: usize, order: Order) -> Result<(), Failure> {
        match self {
            Crew::Threads(office, _) => office.obey(order),
            Crew::Processes(workers, _) => {
                let line = serde_json::to_string(&order).map_err(std::io::Error::from)?;
                workers.0[process].tell(&line);
                Ok(())
            }
        }
    }

    /// The next event, if one comes in time; a signal ends the demo.
    fn listen(&self, signals: &Receiver<Signal>, timeout: Duration) -> Result<Option<Event>, Failure> {
        let (events, lines) = match self {
            Crew::Threads(_, events) => (events.clone(), never()),
            Crew::Processes(_, lines) => (never(), lines.clone()),
        };
        select! {
            recv(events) -> event => Ok(event.ok()),
            recv(lines) -> said => Ok(said.ok().and_then(parse)),
            recv(signals) -> signal => match signal {
                Ok(signal) => Err(Failure::signalled(signal.number)),
                Err(_) => Ok(None),
            },
            default(timeout) => Ok(None),
        }
    }
}

/// What a worker said, as an event; nothing for its last word, the end of its output.
fn parse(said: Said) -> Option<Event> {
    serde_json::from_str(&said.line?).ok()
}

impl<'a> Stage<'a> {
    pub fn new(
        limiter: &'a Limiter,
        plan: &'a Plan,
        crew: Crew,
        view: View<'a>,
        signals: &'a Receiver<Signal>,
    ) -> Stage<'a> {
        let record = Record::new(plan.requests.len());
        Stage { limiter, plan, crew, view, signals, record }
    }

    /// Plays it to the end.
    pub fn run(mut self) -> Result<Record, Failure> {
        let plan = self.plan;
        for step in &plan.steps {
            self.perform(step)?;
        }
        self.until(|stage| Ok(stage.record.all_ended()))?;
        // Releases in the background may still be on their way.
        self.until(|stage| {
            let status = stage.limiter.status()?;
            stage.record.left_over = Some((status.used, status.waiting));
            Ok(status.used == 0 && status.waiting == 0)
        })?;
        self.view.finish(&self.record)?;
        Ok(self.record)
    }

    fn perform(&mut self, step: &Step) -> Result<(), Failure> {
        match *step {
            Step::Ask(id) => self.ask(id),
            Step::Pause(time) => self.play(time),
            Step::UntilWaiting(n) => self.until(|stage| Ok(stage.waiting()? == n)),
            Step::Cancel(id) => self.crew.tell(self.plan.request(id).process, Order::Cancel { id }),
            Step::Kill(id) => self.kill(id),
            Step::UntilGone(id) => self.until_gone(id),
            Step::Revoke(id) => self.revoke(id),
            Step::Limit(limit) => self.change_limit(limit),
        }
    }

    fn ask(&mut self, id: usize) -> Result<(), Failure> {
        let request = self.plan.request(id);
        self.crew.tell(request.process, Order::ask(request))?;
        self.play(SPACING)
    }

    /// The whole process of this request dies, and with it whatever else it had going. Of the dead no report comes: the
    /// stage notes for them when they ended.
    fn kill(&mut self, id: usize) -> Result<(), Failure> {
        let process = self.plan.request(id).process;
        // What it has reported before is heard first.
        self.play(Duration::ZERO)?;
        let at_ns = clock::now_ns();
        if let Crew::Processes(workers, _) = &mut self.crew {
            workers.0[process].kill()?;
        }
        for request in self.plan.requests.iter().filter(|request| request.process == process) {
            let life = self.record.life(request.id);
            let holds = life.granted.is_some();
            if life.end().is_none() {
                let ending = if holds { Ending::KilledHolding } else { Ending::KilledWaiting };
                self.note(Event { id: request.id, at_ns, what: What::Ended(ending) })?;
            }
        }
        self.view.say(&self.record, &format!("process p{} is killed (kill -9)", process + 1))
    }

    fn revoke(&mut self, id: usize) -> Result<(), Failure> {
        let Some(ticket) = self.record.life(id).granted.as_ref().map(|granted| granted.ticket.clone()) else {
            return self.view.say(&self.record, &format!("r{id:02} holds nothing to revoke"));
        };
        self.record.lives[id - 1].taken_ns = Some(clock::now_ns());
        self.limiter.revoke(&ticket)?;
        self.view.say(&self.record, &format!("an operator revokes the permit of r{id:02}"))
    }

    fn until_gone(&mut self, id: usize) -> Result<(), Failure> {
        let life = self.record.life(id);
        let Some(ticket) = life.granted.as_ref().map(|granted| granted.ticket.clone()) else { return Ok(()) };
        let end_ns = life.taken_ns.or_else(|| life.end().map(|end| end.0));
        let since_ns = end_ns.unwrap_or_else(clock::now_ns);
        self.until(|stage| {
            let gone = stage.limiter.holders()?.iter().all(|entry| entry.ticket != ticket);
            if gone {
                let took = clock::now_ns().saturating_sub(since_ns);
                stage.record.freed_after = Some(Duration::from_nanos(took));
            }
            Ok(gone)
        })
    }

    fn change_limit(&mut self, limit: u64) -> Result<(), Failure> {
        let asked_ns = clock::now_ns();
        let status = self.limiter.configure(&Change::new().limit(limit))?;
        self.record.limits.push(LimitChange { asked_ns, done_ns: clock::now_ns(), limit });
        let text = format!("an operator sets the limit to {limit} (held now: {})", status.used);
        self.view.say(&self.record, &text)
    }

    fn waiting(&mut self) -> Result<u64, Failure> {
        let waiting = self.limiter.status()?.waiting;
        self.record.most_waiting = self.record.most_waiting.max(waiting);
        Ok(waiting)
    }

    /// Listens and shows until a condition holds, or patience ends.
    fn until(&mut self, mut done: impl FnMut(&mut Self) -> Result<bool, Failure>) -> Result<(), Failure> {
        let start_ns = clock::now_ns();
        while !done(self)? && clock::seconds(start_ns, clock::now_ns()) < PATIENCE.as_secs_f64() {
            self.play(TICK)?;
        }
        Ok(())
    }

    /// Listens and shows for this long.
    fn play(&mut self, time: Duration) -> Result<(), Failure> {
        let end_ns = clock::now_ns() + time.as_nanos() as u64;
        loop {
            let left = Duration::from_nanos(end_ns.saturating_sub(clock::now_ns())).min(TICK);
            match self.crew.listen(self.signals, left)? {
                Some(event) => self.note(event)?,
                None if clock::now_ns() >= end_ns => return Ok(()),
                None => self.view.draw(&self.record)?,
            }
        }
    }

    fn note(&mut self, event: Event) -> Result<(), Failure> {
        self.record.add(&event);
        self.view.tell(&self.record, &event)
    }
}
