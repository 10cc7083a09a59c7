//! Many instances with many waiters each: real clients, with their threads and connections, in a few processes.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::Bench;
use super::load::{Crew, Load, Shape};
use crate::clock;
use crate::exit::Failure;
use crate::server::{Server, number};
use crate::term::Table;

/// Until what came with the crowd's arrival is over.
const SETTLE: f64 = 2.0;

#[derive(Serialize)]
pub struct Scale {
    instances: u64,
    waiters: u64,
    processes: u64,
    /// To get everybody into line.
    enqueued_per_s: f64,
    redis_bytes_per_waiter: f64,
    /// For its two connections.
    redis_bytes_per_instance: f64,
    /// Waiters and all, with the instances' threads and connections.
    process_bytes_per_waiter: Option<f64>,
    threads: Option<u64>,
    waiting: Waiting,
    pub load: Load,
}

/// While nobody is admitted: what polls and heartbeats cost.
#[derive(Serialize)]
struct Waiting {
    script_calls_per_s: f64,
    redis_us_per_script_call: f64,
    /// Of a core each.
    redis_cpu: f64,
    process_cpu: f64,
    bytes_in_per_s: f64,
    bytes_out_per_s: f64,
}

pub fn measure(bench: &mut Bench) -> Result<Scale, Failure> {
    let (processes, waiters) = (bench.args.processes, bench.args.waiters);
    let instances = bench.args.instances.clamp(processes, waiters);
    let shape = Shape { clients: instances, ..Shape::usual(bench, "scale") };
    let mut crew = Crew::start(bench, shape)?;
    let (empty, usage_empty, start) = (Memory::read(&mut bench.server)?, crew.fleet.usage()?, Instant::now());
    crew.queue_up(bench)?;
    let enqueued_per_s = waiters as f64 / start.elapsed().as_secs_f64();
    bench.sleep(bench.seconds_up_to(SETTLE))?;
    let waiting = watch(bench, &mut crew)?;
    let (full, usage) = (Memory::read(&mut bench.server)?, crew.fleet.usage()?);
    let rss = usage.rss_bytes.zip(usage_empty.rss_bytes);
    Ok(Scale {
        instances,
        waiters,
        processes,
        enqueued_per_s,
        redis_bytes_per_waiter: full.data.saturating_sub(empty.data) as f64 / waiters as f64,
        redis_bytes_per_instance: full.connections.saturating_sub(empty.connections) as f64 / instances as f64,
        process_bytes_per_waiter: rss.map(|(full, empty)| full.saturating_sub(empty) as f64 / waiters as f64),
        threads: usage.threads,
        waiting,
        load: crew.work(bench)?,
    })
}

fn watch(bench: &mut Bench, crew: &mut Crew) -> Result<Waiting, Failure> {
    let before =
        (bench.server.scripts()?, bench.server.cpu_seconds()?, traffic(&mut bench.server)?, crew.fleet.usage()?);
    bench.sleep(Duration::from_secs_f64(bench.args.seconds))?;
    let after =
        (bench.server.scripts()?, bench.server.cpu_seconds()?, traffic(&mut bench.server)?, crew.fleet.usage()?);
    let scripts = after.0.since(before.0);
    let used = after.3 - before.3;
    let seconds = clock::seconds(0, used.at_ns);
    Ok(Waiting {
        script_calls_per_s: scripts.calls as f64 / seconds,
        redis_us_per_script_call: scripts.usec_per_call(),
        redis_cpu: (after.1 - before.1) / seconds,
        process_cpu: used.cpu_us as f64 / 1e6 / seconds,
        bytes_in_per_s: (after.2.0 - before.2.0) as f64 / seconds,
        bytes_out_per_s: (after.2.1 - before.2.1) as f64 / seconds,
    })
}

/// Of the server, in bytes.
struct Memory {
    data: u64,
    connections: u64,
}

impl Memory {
    fn read(server: &mut Server) -> Result<Memory, Failure> {
        let connections = server.connections_memory()?;
        Ok(Memory { data: server.used_memory()?.saturating_sub(connections), connections })
    }
}

/// Bytes that the server has read and written.
fn traffic(server: &mut Server) -> Result<(u64, u64), Failure> {
    let info = server.info("stats")?;
    let total = |name| number(&info, name).unwrap_or(0);
    Ok((total("total_net_input_bytes"), total("total_net_output_bytes")))
}

impl Scale {
    pub fn title(&self) -> String {
        let Scale { instances, waiters, processes, .. } = self;
        format!("{instances} instances in {processes} processes, {waiters} waiters")
    }

    pub fn table(&self) -> Table {
        let mut table = Table::new(&["measured", ""]);
        let mut row = |name: &str, value: String| table.row(vec![name.into(), value]);
        row("enqueued per second", format!("{:.0}", self.enqueued_per_s));
        row("server memory per waiter", super::bytes(Some(self.redis_bytes_per_waiter)));
        row("- per instance, for its connections", super::bytes(Some(self.redis_bytes_per_instance)));
        row("process memory per waiter", super::bytes(self.process_bytes_per_waiter));
        row("threads", super::or_unknown(self.threads));
        let waiting = &self.waiting;
        row("all wait: script calls per second", format!("{:.0}", waiting.script_calls_per_s));
        row("- server time per script call", super::us(waiting.redis_us_per_script_call));
        row("- server busy, processes busy", [waiting.redis_cpu, waiting.process_cpu].map(super::percent).join(", "));
        let kilobytes = |bytes: f64| format!("{:.0} kB/s", bytes / 1e3);
        row("- to and from the server", [waiting.bytes_in_per_s, waiting.bytes_out_per_s].map(kilobytes).join(", "));
        let [grants, scripts, us, server, client, switches, p50, p99] = self.load.cells();
        row("admitting: grants per second", grants);
        row("- script calls per grant, server time of each", format!("{scripts}, {us}us"));
        row("- server busy", server);
        row("- client CPU and context switches per grant", format!("{client}, {switches}"));
        row("- release to the next grant, p50 and p99", format!("{p50}, {p99}"));
        row("- most at once, overtakings", format!("{}, {}", self.load.most_at_once, self.load.overtakings));
        table
    }
}
