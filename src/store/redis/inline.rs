//! A call on its caller's own thread, when nobody else is on the way: no hand-over to the link thread and back.
//!
//! The caller must not be stuck in a stalled server for longer than its own deadline bears, so it waits for a short
//! time only. An answer that does not come by then is skipped by the client crate when it does come; what became of the
//! call is unknown, and being idempotent it is asked again, by the link thread.

use std::sync::Arc;
use std::time::Duration;

use super::encode::Sender;
use super::line::Open;
use super::probe::Probe;
use super::round::Round;
use crate::store::{Answer, Call, StoreError};

/// How long a caller's thread may wait for the server.
const PATIENCE: Duration = Duration::from_millis(30);

/// The answer, and whether the connection is still good.
pub(super) fn exchange(
    open: &mut Open,
    instance: &Arc<str>,
    probe: &Probe,
    io_timeout: Duration,
    call: &Call,
) -> (Result<Answer, StoreError>, bool) {
    if open.wait_for(PATIENCE.min(io_timeout)).is_err() {
        return (Err(StoreError::Away { detail: "the connection is closed".into() }), false);
    }
    let Open { connection, run_id, generation, .. } = open;
    let listens = probe.listens_on(run_id);
    let from = Sender { instance, generation: *generation, run_id, probe: false, listens };
    let mut outcome = Round::new(connection, io_timeout, &[call], &from).run();
    if outcome.timed_out {
        return (Err(StoreError::Busy { detail: "no answer yet".into() }), true);
    }
    let answer = outcome.answers.pop().unwrap_or_else(|| Err(StoreError::Lost { detail: "no answer".into() }));
    (answer, outcome.broken.is_none())
}
