//! The saturated limiter: many processes, many waiting, every release is somebody's grant.

use std::time::Duration;

use fairq::{Change, Limiter};
use serde::Serialize;

use super::Bench;
use super::fleet::Fleet;
use super::floors::micros;
use super::usage::{PerGrant, Usage};
use super::worker::Plan;
use crate::audit::{self, Grant, LimitChange};
use crate::clock;
use crate::exit::Failure;
use crate::server::{self, Server};

/// From the first grant until the measurement starts.
const WARM_UP: Duration = Duration::from_millis(500);

/// Who competes for what.
#[derive(Clone)]
pub struct Shape {
    pub name: String,
    pub processes: u64,
    /// Instances, at least one in each process.
    pub clients: u64,
    pub waiters: u64,
    pub limit: u64,
    pub hold: Duration,
    pub costs_up_to: u64,
    pub seconds: f64,
}

#[derive(Serialize)]
pub struct Load {
    pub grants_per_s: f64,
    pub script_calls_per_grant: f64,
    pub redis_us_per_script_call: f64,
    /// Of one core; 1 means that the server could do no more.
    pub redis_cpu: f64,
    pub client_per_grant: PerGrant,
    /// From a release to the grant that takes its slot. Where requests differ in cost, slots are not alike.
    pub refill_p50_us: Option<f64>,
    pub refill_p99_us: Option<f64>,
    pub most_at_once: u64,
    pub over_limit: u64,
    pub overtakings: u64,
    pub fences_given_twice: u64,
    pub grants_recorded: u64,
}

pub fn measure(bench: &mut Bench) -> Result<Load, Failure> {
    let shape = Shape::usual(bench, "load");
    Crew::assemble(bench, shape)?.work(bench)
}

/// So many slots that no turn of one of them, from a release to the grant in another process, is what bounds the grants.
pub const WIDE: u64 = 50;

pub fn measure_wide(bench: &mut Bench) -> Result<Load, Failure> {
    let shape = Shape { limit: WIDE, ..Shape::usual(bench, "wide") };
    Crew::assemble(bench, shape)?.work(bench)
}

impl Shape {
    /// As the command line says.
    pub fn usual(bench: &Bench, phase: &str) -> Shape {
        let args = bench.args;
        Shape {
            name: bench.name(phase),
            processes: args.processes,
            clients: args.processes,
            waiters: args.waiters,
            limit: args.limit,
            hold: args.hold,
            costs_up_to: 1,
            seconds: args.seconds,
        }
    }

    /// Clients and waiters, spread evenly.
    fn plans(&self) -> Vec<Plan> {
        let share = |of: u64, index| of / self.processes + u64::from(index < of % self.processes);
        let plan = |index| Plan {
            name: self.name.clone(),
            limit: self.limit,
            tickets: share(self.waiters, index),
            hold: self.hold,
            clients: share(self.clients, index),
            costs_up_to: self.costs_up_to,
            background: true,
        };
        (0..self.processes).map(plan).collect()
    }
}

/// The processes of a load, and its limiter, on which nobody is admitted yet.
pub struct Crew<'a> {
    pub fleet: Fleet<'a>,
    pub limiter: Limiter,
    shape: Shape,
}

impl<'a> Crew<'a> {
    /// All stand in line when this returns, so that the line is full from the first grant on.
    pub fn assemble(bench: &Bench<'a>, shape: Shape) -> Result<Crew<'a>, Failure> {
        let mut crew = Crew::start(bench, shape)?;
        crew.queue_up(bench)?;
        Ok(crew)
    }

    pub fn start(bench: &Bench<'a>, shape: Shape) -> Result<Crew<'a>, Failure> {
        let limiter = super::open(bench.client, &shape.name, shape.limit)?;
        limiter.configure(&Change::new().pause())?;
        let fleet = Fleet::start(bench, &shape.plans())?;
        Ok(Crew { fleet, limiter, shape })
    }

    pub fn queue_up(&mut self, bench: &Bench<'a>) -> Result<(), Failure> {
        self.fleet.order("go", "started")?;
        bench.await_waiting(&self.limiter, self.shape.waiters)
    }

    /// Admits for the time that is measured.
    pub fn work(mut self, bench: &mut Bench) -> Result<Load, Failure> {
        self.limiter.configure(&Change::new().resume())?;
        bench.sleep(WARM_UP)?;
        let before = self.read(&mut bench.server)?;
        bench.sleep(Duration::from_secs_f64(self.shape.seconds))?;
        let after = self.read(&mut bench.server)?;
        let grants = self.fleet.stop()?;
        Ok(Load::new(&self.shape, &before, &after, &grants))
    }

    fn read(&mut self, server: &mut Server) -> Result<Reading, Failure> {
        let granted = self.limiter.status()?.granted_total;
        let at_ns = clock::now_ns();
        let (scripts, cpu_s) = (server.scripts()?, server.cpu_seconds()?);
        Ok(Reading { at_ns, granted, scripts, cpu_s, clients: self.fleet.usage()? })
    }
}

/// The counters at one moment.
struct Reading {
    at_ns: u64,
    granted: u64,
    scripts: server::Scripts,
    cpu_s: f64,
    clients: Usage,
}

impl Load {
    fn new(shape: &Shape, before: &Reading, after: &Reading, grants: &[Grant]) -> Load {
        let limits = [LimitChange { asked_ns: 0, done_ns: 0, limit: shape.limit }];
        let scripts = after.scripts.since(before.scripts);
        let granted = (after.granted - before.granted) as f64;
        let seconds = clock::seconds(before.at_ns, after.at_ns);
        let mut refills = server::histogram();
        let times = before.at_ns..after.at_ns;
        audit::refills_ns(grants, shape.limit, times).into_iter().for_each(|ns| refills.saturating_record(ns));
        Load {
            grants_per_s: granted / seconds,
            script_calls_per_grant: scripts.calls as f64 / granted.max(1.0),
            redis_us_per_script_call: scripts.usec_per_call(),
            redis_cpu: (after.cpu_s - before.cpu_s) / seconds,
            client_per_grant: (after.clients - before.clients).per(granted),
            refill_p50_us: (shape.costs_up_to == 1).then(|| micros(&refills, 0.5)),
            refill_p99_us: (shape.costs_up_to == 1).then(|| micros(&refills, 0.99)),
            most_at_once: audit::most_at_once(grants),
            over_limit: audit::over_limit(grants, &limits) as u64,
            overtakings: audit::overtaken(grants) as u64,
            fences_given_twice: audit::repeated_fences(grants) as u64,
            grants_recorded: grants.len() as u64,
        }
    }

    /// Whether the limit held and nobody was overtaken.
    pub fn promises_kept(&self, limit: u64) -> bool {
        self.most_at_once <= limit && self.over_limit + self.overtakings + self.fences_given_twice == 0
    }
}
