//! A call on its caller's own thread, when nobody else is on the way: no hand-over to the link thread and back.
//!
//! The caller must not be stuck in a stalled server for longer than its own deadline bears, so it waits for a short
//! time only. An answer that does not come by then is skipped by the client crate when it does come; what became of the
//! call is unknown, and being idempotent it is asked again, by the link thread.

use std::time::Duration;

use super::line::Open;
use super::round::{Round, Said};
use super::router::Router;
use crate::store::{Call, StoreError};

/// How long a caller's thread may wait for the server.
const PATIENCE: Duration = Duration::from_millis(30);

/// What the server says, and whether the connection is still good.
pub(super) fn exchange(open: &mut Open, router: &Router, call: &Call) -> (Said, bool) {
    let io_timeout = router.options.io_timeout;
    if open.wait_for(PATIENCE.min(io_timeout)).is_err() {
        return (Said::Answer(Err(StoreError::away("the connection is closed"))), false);
    }
    let mut outcome = Round::new(open, router, &[(call, false)]).run(io_timeout);
    if outcome.timed_out {
        return (Said::Answer(Err(StoreError::Busy { detail: "no answer yet".into() })), true);
    }
    let lost = || Said::Answer(Err(StoreError::Lost { detail: "no answer".into() }));
    let said = outcome.said.pop().unwrap_or_else(lost);
    let misled = matches!(said, Said::Elsewhere(_)) && !router.is_cluster();
    (said, outcome.broken.is_none() && !misled)
}
