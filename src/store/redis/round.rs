//! One write of calls, and the reading of their answers; then, for what was not carried out for a reason that can be
//! mended at once, another: scripts that the server did not know, and calls that seemed to come by an old connection.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use redis::Value;

use super::encode::{Sender, pack};
use super::line::Open;
pub(super) use super::passes::Said;
use super::passes::{Parcel, Passes};
use super::router::Router;
use super::server_time::ServerTime;
use crate::store::Call;

/// The time that a command is allowed for each that stands before it in the same write, in microseconds.
const EACH: u64 = 1000;

/// What a round came to.
pub(super) struct Outcome {
    /// For each call.
    pub said: Vec<Said>,
    /// What ended the connection, if anything did.
    pub broken: Option<String>,
    /// This is not the server to talk to.
    pub elsewhere: bool,
    /// The cluster has not agreed yet on who has what.
    pub unsettled: bool,
    /// The answers did not come within the socket's time.
    pub timed_out: bool,
}

/// Sends calls and reads their answers.
pub(super) struct Round<'a> {
    open: &'a mut Open,
    router: &'a Router,
    probe: bool,
    /// Each with whether `ASKING` has to go before it.
    calls: &'a [(&'a Call, bool)],
    passes: Passes,
    timed_out: bool,
}

impl<'a> Round<'a> {
    pub(super) fn new(open: &'a mut Open, router: &'a Router, calls: &'a [(&'a Call, bool)]) -> Self {
        Round { open, router, probe: false, calls, passes: Passes::new(calls.len()), timed_out: false }
    }

    /// A sync among the calls is to publish a probe.
    pub(super) fn publishing(mut self, probe: bool) -> Self {
        self.probe = probe;
        self
    }

    /// The whole reading may take as long as `patience`.
    pub(super) fn run(mut self, patience: Duration) -> Outcome {
        if self.open.time.is_old() {
            self.look_at_the_clock();
        }
        while self.passes.broken.is_none() {
            if let Err(broken) = self.pass(patience) {
                self.passes.broken = Some(broken);
            }
            if self.passes.take_outdated() {
                // This connection is not older, it only has an older number; or its calls seem to be, by a clock that was set.
                self.look_at_the_clock();
                self.open.generation = self.router.generations.fetch_add(1, Ordering::Relaxed) + 1;
            }
            if !self.passes.next(|index| self.calls[index].0) {
                break;
            }
        }
        let Passes { elsewhere, unsettled, .. } = self.passes;
        let (broken, timed_out) = (self.passes.broken.clone(), self.timed_out);
        Outcome { said: self.passes.end(), broken, elsewhere, unsettled, timed_out }
    }

    fn look_at_the_clock(&mut self) {
        if self.passes.broken.is_some() {
            return;
        }
        match ServerTime::ask(&mut self.open.connection) {
            Ok(time) => self.open.time = time,
            Err(error) => {
                self.timed_out = error.is_timeout();
                self.passes.broken = Some(error.to_string());
            }
        }
    }

    /// `Err`: what ended the connection.
    fn pass(&mut self, patience: Duration) -> Result<(), String> {
        let (calls, parcels) = self.passes.parcels(|index| self.calls[index]);
        let bytes = self.packed(&calls, &parcels);
        let started = Instant::now();
        self.open.connection.send_packed_command(&bytes).map_err(|error| error.to_string())?;
        for Parcel { place, .. } in parcels {
            if started.elapsed() > patience {
                return Err("the server is too slow".into());
            }
            let value = self.receive(self.passes.number(place.start)).map_err(|error| {
                self.timed_out = error.is_timeout();
                error.to_string()
            })?;
            self.passes.take(place.clone(), &calls[place], value);
        }
        Ok(())
    }

    fn receive(&mut self, index: usize) -> redis::RedisResult<Value> {
        if self.calls[index].1 {
            self.open.connection.recv_response()?; // to ASKING
        }
        self.open.connection.recv_response()
    }

    fn packed(&self, calls: &[&Call], parcels: &[Parcel]) -> Vec<u8> {
        let Open { run_id, generation, time, .. } = &*self.open;
        let (instance, probe, listens) = (&self.router.instance, self.probe, self.router.probe.listens_on(run_id));
        let mut from = Sender { instance, generation: *generation, run_id, probe, listens, sent: time.now() };
        let mut bytes = Vec::with_capacity(parcels.len() * 512);
        for Parcel { place, by } in parcels {
            if self.calls[self.passes.number(place.start)].1 {
                redis::cmd("ASKING").write_packed_command(&mut bytes);
            }
            pack(&calls[place.clone()], &from, *by, &mut bytes);
            from.sent += EACH * place.len() as u64; // what stands before it has to be carried out first
        }
        bytes
    }
}
