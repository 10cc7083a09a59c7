//! Times, in milliseconds.

use std::time::Duration;

use crate::settings::{self, UNBOUNDED};

/// Milliseconds that never end: wait for ever. Also says "unbounded" and "not known" where a number is told.
pub const FQ_FOREVER: u64 = 0x7fff_ffff_ffff_ffff;

/// In `fq_request.max_wait_ms`: wait as long as the limiter says.
pub const FQ_DEFAULT: u64 = 0x7fff_ffff_ffff_fffe;

/// A duration that a caller gives in milliseconds.
pub(super) fn millis(ms: u64) -> Duration {
    settings::from_millis(ms)
}

/// A duration in whole milliseconds for a caller, rounded up; `FQ_FOREVER` for none and for no bound.
pub(super) fn to_millis(duration: impl Into<Option<Duration>>) -> u64 {
    let ms = duration.into().map_or(u64::MAX, settings::millis);
    if ms >= UNBOUNDED { FQ_FOREVER } else { ms }
}
