//! Not part of the API: what the command `fairq` and the fault tests need of the store: connections to the servers
//! themselves, how fast they take the scripts, and what tells those apart on the wire.

mod crowd;

use std::time::{Duration, Instant};

use super::connect::RedisOptions;
use super::examine;
use crate::store::StoreError;
use crate::{ClientBuilder, Error};

pub use crowd::{Crowd, Deed};

const PAIRS_IN_FLIGHT: u64 = 100;

/// How many acquire + release pairs per second one Redis carries out when their scripts come fully pipelined from one
/// connection, with `waiters` tickets in line. Blocks for about `seconds`.
///
/// # Errors
/// Whatever keeps the server from answering.
pub fn pipelined_ceiling(at: &ClientBuilder, waiters: u64, seconds: f64) -> Result<f64, Error> {
    let mut crowd = Crowd::open(at, 1, PAIRS_IN_FLIGHT)?;
    crowd.grow_to(waiters)?;
    let started = Instant::now();
    let mut pairs = 0;
    while started.elapsed().as_secs_f64() < seconds {
        // As in life: each release grants the head of the line, and each grant brings another waiter.
        crowd.turn()?;
        pairs += PAIRS_IN_FLIGHT;
    }
    Ok(pairs as f64 / started.elapsed().as_secs_f64())
}

/// A connection to each master that this leads to, by its address.
///
/// # Errors
/// Whatever keeps one of them from being reached.
pub fn connect_all(at: &ClientBuilder) -> Result<Vec<(String, redis::Connection)>, Error> {
    let options = of_server(at)?;
    let all = examine::connect_all(&options).map_err(to_error)?;
    Ok(all.into_iter().map(|(address, connection)| (address.to_string(), connection)).collect())
}

/// The name of each script, and the SHA-1 by which it is called.
pub fn script_hashes() -> Vec<(&'static str, String)> {
    super::script::all().into_iter().map(|script| (script.name, script.sha.clone())).collect()
}

fn of_server(at: &ClientBuilder) -> Result<RedisOptions, Error> {
    at.redis_options()?.ok_or_else(|| Error::invalid("url", "it names no server"))
}

fn to_error(error: StoreError) -> Error {
    match error {
        StoreError::Fatal(error) => error,
        other => Error::Unavailable { detail: other.to_string(), retry_after: Duration::from_secs(1) },
    }
}
