//! Many limiters on one client.

use std::time::{Duration, Instant};

use fairq::{Limiter, Permit, Request};
use serde::Serialize;

use super::Bench;
use super::threads::{Pairs, pairs};
use super::usage::Usage;
use crate::clock;
use crate::connect;
use crate::exit::Failure;
use crate::term::Table;

const THREADS: usize = 8;
/// Every instance says in each of its limiters that it lives, every third of the lease (10 s here): long enough to see it.
const WATCH: Duration = Duration::from_secs(7);

#[derive(Serialize)]
pub struct Names {
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    names: u64,
    pairs: Pairs,
    /// While the client holds a permit of each.
    held: Held,
}

#[derive(Serialize)]
struct Held {
    /// To open the limiters and take a permit of each, one after the other.
    taken_us_each: f64,
    heartbeats_per_s: f64,
    /// Of a core each.
    process_cpu: f64,
    redis_cpu: f64,
    redis_bytes_per_name: f64,
    process_bytes_per_name: Option<f64>,
}

pub fn measure(bench: &mut Bench) -> Result<Names, Failure> {
    let counts = [1, 100, 10_000].into_iter().filter(|names| *names <= bench.args.names);
    let counts: Vec<u64> = counts.collect();
    Ok(Names { rows: counts.into_iter().map(|names| row(bench, names)).collect::<Result<_, _>>()? })
}

fn row(bench: &mut Bench, names: u64) -> Result<Row, Failure> {
    let client = connect::client(bench.site)?;
    let (memory, usage, start) = (bench.server.used_memory()?, Usage::now(), Instant::now());
    let open = |name| super::open(&client, &bench.name(&format!("name-{names}-{name}")), 100);
    let limiters = (0..names).map(open).collect::<Result<Vec<Limiter>, _>>()?;
    let take = |limiter: &Limiter| limiter.acquire(&Request::new());
    let permits = limiters.iter().map(take).collect::<Result<Vec<Permit>, _>>()?;
    let taken_us_each = start.elapsed().as_secs_f64() * 1e6 / names as f64;
    let rss = Usage::now().rss_bytes.zip(usage.rss_bytes);
    let of_each = |bytes: u64| bytes as f64 / names as f64;
    let redis_bytes_per_name = of_each(bench.server.used_memory()?.saturating_sub(memory));
    let (heartbeats_per_s, process_cpu, redis_cpu) = beats(bench)?;
    let held = Held {
        taken_us_each,
        heartbeats_per_s,
        process_cpu,
        redis_cpu,
        redis_bytes_per_name,
        process_bytes_per_name: rss.map(|(full, empty)| of_each(full.saturating_sub(empty))),
    };
    permits.into_iter().try_for_each(Permit::release)?;
    // Each thread goes its own way through the names.
    let pairs = pairs(bench, &shares(&limiters))?;
    connect::goodbye(&client);
    Ok(Row { names, pairs, held })
}

fn shares(limiters: &[Limiter]) -> Vec<Vec<Limiter>> {
    let from = |thread| limiters.iter().cycle().skip(thread * limiters.len() / THREADS).take(limiters.len());
    (0..THREADS).map(|thread| from(thread).cloned().collect()).collect()
}

fn beats(bench: &mut Bench) -> Result<(f64, f64, f64), Failure> {
    let (scripts, usage, cpu) = (bench.server.scripts()?, Usage::now(), bench.server.cpu_seconds()?);
    bench.sleep(bench.seconds_up_to(WATCH.as_secs_f64()))?;
    let used = Usage::now() - usage;
    let seconds = clock::seconds(0, used.at_ns);
    let calls = bench.server.scripts()?.since(scripts).calls as f64;
    let redis = bench.server.cpu_seconds()? - cpu;
    Ok((calls / seconds, used.cpu_us as f64 / 1e6 / seconds, redis / seconds))
}

impl Names {
    pub fn table(&self) -> Table {
        let head = ["names", "pairs/s", "CPU", "taking one", "heartbeats/s, all held", "client", "server"];
        let mut table = Table::new(&[&head[..], &["server, each", "client, each"]].concat());
        for Row { names, pairs, held } in &self.rows {
            table.row(vec![
                names.to_string(),
                format!("{:.0}", pairs.per_s),
                super::us(pairs.each.cpu_us),
                super::us(held.taken_us_each),
                format!("{:.1}", held.heartbeats_per_s),
                super::percent(held.process_cpu),
                super::percent(held.redis_cpu),
                super::bytes(Some(held.redis_bytes_per_name)),
                super::bytes(held.process_bytes_per_name),
            ]);
        }
        table
    }
}
