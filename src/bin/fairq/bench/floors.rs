//! What the server and the machine do without fairq, and one thread with it: the yardsticks of the run.

use std::thread;
use std::time::{Duration, Instant};

use fairq::Request;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::Bench;
use crate::clock;
use crate::exit::{Failure, SOFTWARE};
use crate::server::{self, Server, patient};

const PUBLISH: &str = "return redis.call('PUBLISH', KEYS[1], ARGV[1])";
/// Calls before measuring, so that caches and connections are warm.
const WARM_UP: usize = 200;
/// A message that takes longer is lost.
const MESSAGE: Duration = Duration::from_secs(5);

#[derive(Serialize)]
pub struct Floors {
    pub evalsha_mean_us: f64,
    pub evalsha_p50_us: f64,
    pub publish_p50_us: f64,
    pub publish_p99_us: f64,
    /// Acquire and release pairs per second, pipelined from one connection.
    pub ceiling_pairs_per_s: f64,
    /// What the server spent on each of those script calls, with one client. Under a load of many processes the same
    /// figure also counts the moments in which the server had no core.
    pub ceiling_us_per_script_call: f64,
}

#[derive(Serialize)]
pub struct Uncontended {
    pub pair_mean_us: f64,
    pub pair_p50_us: f64,
    /// Measured between the pairs, so that both meet the same machine.
    pub evalsha_mean_us: f64,
}

pub fn measure(bench: &mut Bench) -> Result<Floors, Failure> {
    let sha = bench.server.load("return 1")?;
    let round_trips = time_for(bench.seconds_up_to(1.0), || evalsha(&mut bench.server, &sha))?;
    let messages = publish_to_reception(bench)?;
    let seconds = bench.seconds_up_to(3.0).as_secs_f64();
    let before = bench.server.scripts()?;
    let ceiling = fairq::bench_support::pipelined_ceiling(&patient(bench.site)?, bench.args.waiters, seconds)?;
    Ok(Floors {
        evalsha_mean_us: round_trips.mean() / 1e3,
        evalsha_p50_us: micros(&round_trips, 0.5),
        publish_p50_us: micros(&messages, 0.5),
        publish_p99_us: micros(&messages, 0.99),
        ceiling_pairs_per_s: ceiling,
        ceiling_us_per_script_call: bench.server.scripts()?.since(before).usec_per_call(),
    })
}

/// Acquire and release with permits to spare, in turns with bare round trips.
pub fn uncontended(bench: &mut Bench) -> Result<Uncontended, Failure> {
    const ROUND: usize = 100;
    let limiter = bench.limiter("uncontended", 100)?;
    let sha = bench.server.load("return 1")?;
    let mut pair = || limiter.acquire(&Request::new())?.release().map_err(Failure::from);
    let (mut pairs, mut round_trips) = (server::histogram(), server::histogram());
    server::time_calls(WARM_UP, &mut pair)?;
    let end = Instant::now() + bench.seconds_up_to(2.0);
    while Instant::now() < end {
        pairs += server::time_calls(ROUND, &mut pair)?;
        round_trips += server::time_calls(2 * ROUND, || evalsha(&mut bench.server, &sha))?;
    }
    Ok(Uncontended {
        pair_mean_us: pairs.mean() / 1e3,
        pair_p50_us: micros(&pairs, 0.5),
        evalsha_mean_us: round_trips.mean() / 1e3,
    })
}

pub fn micros(taken: &Histogram<u64>, quantile: f64) -> f64 {
    taken.value_at_quantile(quantile) as f64 / 1e3
}

fn evalsha(server: &mut Server, sha: &str) -> Result<(), Failure> {
    Ok(redis::cmd("EVALSHA").arg(sha).arg(0).exec(&mut server.conn)?)
}

/// From just before an EVALSHA that publishes until a subscriber in another thread has the message. One at a time: the
/// subscriber sleeps in between, as a waiting process does.
fn publish_to_reception(bench: &mut Bench) -> Result<Histogram<u64>, Failure> {
    let channel = format!("fq:bench:{}", std::process::id());
    let sha = bench.server.load(PUBLISH)?;
    let (received, receptions) = crossbeam_channel::bounded::<u64>(1);
    let mut listener = Server::connect(bench.site)?;
    listener.conn.set_read_timeout(Some(MESSAGE))?;
    let (subscribed, ready) = crossbeam_channel::bounded::<()>(0);
    let subscriber_channel = channel.clone();
    thread::Builder::new().name("subscriber".into()).spawn(move || {
        let mut subscription = listener.conn.as_pubsub();
        if subscription.subscribe(&subscriber_channel).is_err() {
            return;
        }
        drop(subscribed);
        while subscription.get_message().is_ok() && received.send(clock::now_ns()).is_ok() {}
    })?;
    let _ = ready.recv();
    time_until(bench.seconds_up_to(1.0), || {
        let start = clock::now_ns();
        redis::cmd("EVALSHA").arg(&sha).arg(1).arg(&channel).arg("x").exec(&mut bench.server.conn)?;
        let end = receptions.recv_timeout(MESSAGE);
        end.map(|end| end.saturating_sub(start)).map_err(|_| Failure::new(SOFTWARE, "a published message was lost"))
    })
}

fn time_for(duration: Duration, mut call: impl FnMut() -> Result<(), Failure>) -> Result<Histogram<u64>, Failure> {
    time_until(duration, || {
        let start = clock::now_ns();
        call()?;
        Ok(clock::now_ns() - start)
    })
}

/// Collects what `sample` measures, after a warm-up.
fn time_until(duration: Duration, mut sample: impl FnMut() -> Result<u64, Failure>) -> Result<Histogram<u64>, Failure> {
    for _ in 0..WARM_UP {
        sample()?;
    }
    let mut taken = server::histogram();
    let end = Instant::now() + duration;
    while Instant::now() < end {
        taken.saturating_record(sample()?);
    }
    Ok(taken)
}
