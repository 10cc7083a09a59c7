//! Not part of the API: what the command `fairq` and the fault tests need of the store: connections to the servers
//! themselves, how fast they take the scripts, and what tells those apart on the wire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Value;

use super::connect::{RedisOptions, server_info};
use super::encode::{By, Sender, pack};
use super::script::Script;
use super::{decode, examine, fault, keys::keys_of};
use crate::settings::{Declaration, Settings};
use crate::store::{Call, Header, StoreError, Verb, Verdict};
use crate::{ClientBuilder, Error};

const PAIRS_IN_FLIGHT: u64 = 100;

/// How many acquire + release pairs per second one Redis carries out when their scripts come fully pipelined from one
/// connection, with `waiters` tickets in line. Blocks for about `seconds`.
///
/// # Errors
/// Whatever keeps the server from answering.
pub fn pipelined_ceiling(at: &ClientBuilder, waiters: u64, seconds: f64) -> Result<f64, Error> {
    let options = of_server(at)?;
    let mut bench = Bench::open(&options).map_err(to_error)?;
    let result = bench.run(waiters, seconds).map_err(to_error);
    bench.tidy();
    result
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

struct Bench {
    connection: redis::Connection,
    run_id: String,
    instance: Arc<str>,
    limiter: Arc<str>,
    declaration: Arc<Declaration>,
    epoch: u64,
    version: u64,
    next_no: u64,
    /// The scripts that the server knows by now.
    loaded: Vec<&'static str>,
}

impl Bench {
    fn open(options: &RedisOptions) -> Result<Self, StoreError> {
        let name = crate::jitter::random_name().map_err(StoreError::Fatal)?;
        let (mut connection, limiter) = examine::connect_first(options, &format!("bench:{name}:"))?;
        let run_id = server_info(&mut connection)?.run_id;
        let settings = Settings { limit: PAIRS_IN_FLIGHT, lease: 3_600_000, idle: 7_200_000, ..Settings::default() };
        let declaration = Declaration { declared: settings.words(), declares: true, ..Declaration::default() };
        Ok(Bench {
            connection,
            run_id,
            limiter: limiter.into(),
            instance: name.into(),
            declaration: Arc::new(declaration),
            epoch: 0,
            version: 0,
            next_no: 1,
            loaded: Vec::new(),
        })
    }

    fn run(&mut self, waiters: u64, seconds: f64) -> Result<f64, StoreError> {
        let mut held = self.acquire(PAIRS_IN_FLIGHT)?;
        let mut left = waiters;
        while left > 0 {
            let some = left.min(PAIRS_IN_FLIGHT);
            self.acquire(some)?;
            left -= some;
        }
        let started = Instant::now();
        let mut pairs = 0;
        while started.elapsed().as_secs_f64() < seconds {
            // As in life: each release grants the head of the line, and each grant brings another waiter.
            held = self.turn(&held)?;
            pairs += held.len() as u64;
        }
        Ok(pairs as f64 / started.elapsed().as_secs_f64())
    }

    fn acquire(&mut self, count: u64) -> Result<Vec<(u64, u64)>, StoreError> {
        let verbs = (0..count).map(|_| self.next_acquire()).collect();
        self.pipeline(verbs)
    }

    fn next_acquire(&mut self) -> Verb {
        let no = self.next_no;
        self.next_no += 1;
        Verb::Acquire { no, cost: 1, may_wait: true, order: 0, label: "".into() }
    }

    fn turn(&mut self, held: &[(u64, u64)]) -> Result<Vec<(u64, u64)>, StoreError> {
        let mut verbs = Vec::with_capacity(held.len() * 2);
        for permit in held {
            verbs.push(Verb::Release(vec![*permit]));
            verbs.push(self.next_acquire());
        }
        self.pipeline(verbs)
    }

    /// Sends all at once; returns what was granted.
    fn pipeline(&mut self, verbs: Vec<Verb>) -> Result<Vec<(u64, u64)>, StoreError> {
        let (epoch, version) = (self.epoch, self.version);
        let header = Header { epoch, bare: epoch == 0, version, declaration: self.declaration.clone() };
        let (probe, listens) = (false, false);
        let from =
            Sender { instance: &self.instance, generation: 1, run_id: &self.run_id, probe, listens, sent: u64::MAX };
        let mut bytes = Vec::new();
        let calls: Vec<Call> = verbs
            .into_iter()
            .map(|verb| Call { limiter: self.limiter.clone(), header: header.clone(), verb })
            .collect();
        for call in &calls {
            let name = Script::of(&call.verb).name;
            let by = if self.loaded.contains(&name) { By::Sha } else { By::Source };
            if by == By::Source {
                self.loaded.push(name);
            }
            pack(&[call], &from, by, &mut bytes);
        }
        self.connection.send_packed_command(&bytes).map_err(|e| fault::of_connect(&e))?;
        let mut granted = Vec::new();
        for call in &calls {
            let value = self.connection.recv_response().map_err(|e| fault::of_connect(&e))?;
            self.take(call, value, &mut granted)?;
        }
        Ok(granted)
    }

    fn take(&mut self, call: &Call, value: Value, granted: &mut Vec<(u64, u64)>) -> Result<(), StoreError> {
        let server = |detail: String| StoreError::Fatal(Error::Server { detail });
        if let Value::ServerError(error) = &value {
            return Err(server(format!("{} {}", error.code(), error.details().unwrap_or_default())));
        }
        let answer = decode::answer(call, value).map_err(|garbled| server(garbled.to_string()))?;
        (self.epoch, self.version) = (answer.epoch, answer.version);
        if answer.verdict == Verdict::Resync {
            return Err(server("the state was lost during the measurement".into()));
        }
        if let (Verb::Acquire { no, .. }, Verdict::Granted { fence, .. }, []) =
            (&call.verb, &answer.verdict, &answer.notices[..])
        {
            granted.push((*no, *fence)); // at once, as nobody waited
        }
        for notice in answer.notices {
            if let crate::store::Notice::Granted { no, fence, .. } = notice {
                granted.push((no, fence));
            }
        }
        Ok(())
    }

    fn tidy(&mut self) {
        // What is left expires by itself.
        let _ = redis::cmd("UNLINK").arg(&keys_of(&self.limiter)[..]).exec(&mut self.connection);
    }
}
