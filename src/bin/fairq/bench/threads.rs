//! Threads of one client: they share its connection, and what waits is written together. Beside them as many clients of
//! their own, which do not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use fairq::{Client, Limiter, Request};
use serde::Serialize;

use super::Bench;
use super::usage::{PerGrant, Usage};
use crate::clock;
use crate::connect;
use crate::exit::Failure;
use crate::server::patient;
use crate::term::Table;

const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// More than anybody wants, so that no pair waits for another.
const LIMIT: u64 = 1000;
const WARM_UP: Duration = Duration::from_millis(200);

#[derive(Serialize)]
pub struct Threads {
    /// Acquire and release on a limiter where nobody waits, from one connection, as fast as the server can.
    pipelined_pairs_per_s: f64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    threads: usize,
    one_client: Pairs,
    a_client_each: Pairs,
}

#[derive(Serialize)]
pub struct Pairs {
    pub per_s: f64,
    pub each: PerGrant,
}

pub fn measure(bench: &mut Bench) -> Result<Threads, Failure> {
    let seconds = bench.seconds_up_to(2.0).as_secs_f64();
    let pipelined_pairs_per_s = fairq::bench_support::pipelined_ceiling(&patient(bench.site)?, 0, seconds)?;
    let rows = THREADS.into_iter().map(|threads| row(bench, threads)).collect::<Result<_, _>>()?;
    Ok(Threads { pipelined_pairs_per_s, rows })
}

fn row(bench: &mut Bench, threads: usize) -> Result<Row, Failure> {
    let clients = (0..threads).map(|_| connect::client(bench.site)).collect::<Result<Vec<Client>, _>>()?;
    let name = bench.name(&format!("threads-{threads}"));
    let open = |client| super::open(client, &name, LIMIT);
    let one = open(&clients[0])?;
    let one_client = pairs(bench, &vec![vec![one]; threads])?;
    let own = clients.iter().map(|client| Ok(vec![open(client)?])).collect::<Result<Vec<_>, Failure>>()?;
    let a_client_each = pairs(bench, &own)?;
    connect::goodbye_all(&clients);
    Ok(Row { threads, one_client, a_client_each })
}

/// A thread for each list of limiters, which takes permits of them by turns and gives them back.
pub fn pairs(bench: &mut Bench, lists: &[Vec<Limiter>]) -> Result<Pairs, Failure> {
    let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let duration = bench.seconds_up_to(2.0);
    thread::scope(|scope| {
        let (over, done) = (&over, &done);
        let workers: Vec<_> = lists.iter().map(|limiters| scope.spawn(move || until(over, done, limiters))).collect();
        let measured = bench.sleep(WARM_UP).and_then(|()| watch(bench, done, duration));
        over.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        measured
    })
}

fn until(over: &AtomicBool, done: &AtomicU64, limiters: &[Limiter]) -> Result<(), Failure> {
    let mut by_turns = limiters.iter().cycle().take_while(|_| !over.load(Ordering::Relaxed));
    by_turns.try_for_each(|limiter| {
        limiter.acquire(&Request::new())?.release()?;
        done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
}

fn watch(bench: &Bench, done: &AtomicU64, duration: Duration) -> Result<Pairs, Failure> {
    let (before, usage) = (done.load(Ordering::Relaxed), Usage::now());
    bench.sleep(duration)?;
    let (after, used) = (done.load(Ordering::Relaxed), Usage::now() - usage);
    let pairs = (after - before) as f64;
    Ok(Pairs { per_s: pairs / clock::seconds(0, used.at_ns), each: used.per(pairs) })
}

impl Threads {
    pub fn table(&self) -> Table {
        let mut table = Table::new(&[
            "threads",
            "pairs/s, one client",
            "CPU",
            "switches",
            "pairs/s, a client each",
            "CPU",
            "switches",
        ]);
        let numbers = |pairs: &Pairs| {
            [format!("{:.0}", pairs.per_s), super::us(pairs.each.cpu_us), format!("{:.2}", pairs.each.switches)]
        };
        for Row { threads, one_client, a_client_each } in &self.rows {
            let [one, each] = [one_client, a_client_each].map(numbers);
            table.row([threads.to_string()].into_iter().chain(one).chain(each).collect());
        }
        table
    }

    pub fn title(&self) -> String {
        let pipelined = self.pipelined_pairs_per_s;
        format!("Threads of one client, nobody waits; the server alone, pipelined: {pipelined:.0} pairs/s")
    }
}
