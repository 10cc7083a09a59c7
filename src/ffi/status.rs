//! What a call came to, as a number.

use std::ffi::{CStr, c_char};

use crate::Error;

/// What a call, or a request, came to. Values are only ever added.
pub type fq_status = i32;

/// It is done.
pub const FQ_OK: fq_status = 0;
/// The request waited as long as it was allowed to (with `max_wait_ms` 0: nothing was free).
pub const FQ_TIMED_OUT: fq_status = 1;
/// The request was cancelled.
pub const FQ_CANCELLED: fq_status = 2;
/// The client, or the completion queue, is closed or closing.
pub const FQ_CLOSED: fq_status = 3;
/// The line is as long as it may be.
pub const FQ_QUEUE_FULL: fq_status = 4;
/// The cost is above the limit: the request could never be granted.
pub const FQ_IMPOSSIBLE: fq_status = 5;
/// An operator took the place in line away.
pub const FQ_REVOKED: fq_status = 6;
/// The permit was lost; the message says why.
pub const FQ_PERMIT_LOST: fq_status = 7;
/// What it was about had ended before; nothing was done.
pub const FQ_STALE: fq_status = 8;
/// The store cannot be reached, or does not take commands now. Whatever was asked is safe to ask again.
pub const FQ_UNAVAILABLE: fq_status = 9;
/// An operator's order was sent, and its answer was lost: look whether it was carried out.
pub const FQ_UNKNOWN_OUTCOME: fq_status = 10;
/// The store has no memory for another ticket, or this process has as many as it may (`max_tickets`).
pub const FQ_OVERLOADED: fq_status = 11;
/// An argument means nothing; nothing was done.
pub const FQ_INVALID: fq_status = 12;
/// The client or the server is not set up right; trying again does not help.
pub const FQ_CONFIGURATION: fq_status = 13;
/// The server answered with something that fairq does not understand.
pub const FQ_SERVER: fq_status = 14;
/// The limiter does not exist, and the caller has not declared a limit for it.
pub const FQ_NO_SUCH_LIMITER: fq_status = 15;
/// The handle belongs to the parent process: a forked child opens a client of its own.
pub const FQ_FORKED: fq_status = 16;
/// A bug in fairq: it panicked, and the panic ended here.
pub const FQ_PANIC: fq_status = 17;
/// Another fault inside of fairq; the message says which.
pub const FQ_INTERNAL: fq_status = 18;

/// The status of an error.
pub(super) fn status_of(error: &Error) -> fq_status {
    match error {
        Error::TimedOut { .. } => FQ_TIMED_OUT,
        Error::Cancelled => FQ_CANCELLED,
        Error::Closed => FQ_CLOSED,
        Error::QueueFull { .. } => FQ_QUEUE_FULL,
        Error::Impossible { .. } => FQ_IMPOSSIBLE,
        Error::Revoked => FQ_REVOKED,
        Error::PermitLost(_) => FQ_PERMIT_LOST,
        Error::Stale => FQ_STALE,
        Error::Unavailable { .. } => FQ_UNAVAILABLE,
        Error::UnknownOutcome { .. } => FQ_UNKNOWN_OUTCOME,
        Error::Overloaded { .. } => FQ_OVERLOADED,
        Error::Invalid { .. } => FQ_INVALID,
        Error::Config { .. } => FQ_CONFIGURATION,
        Error::Server { .. } => FQ_SERVER,
        Error::NoSuchLimiter { .. } => FQ_NO_SUCH_LIMITER,
        Error::Forked => FQ_FORKED,
        Error::Internal { .. } => FQ_INTERNAL,
    }
}

/// The name of a status, for logs: `timed out`, `queue full` … Never NULL; lives for ever. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_status_name(status: fq_status) -> *const c_char {
    name_of(status).as_ptr()
}

fn name_of(status: fq_status) -> &'static CStr {
    match status {
        FQ_OK => c"ok",
        FQ_TIMED_OUT => c"timed out",
        FQ_CANCELLED => c"cancelled",
        FQ_CLOSED => c"closed",
        FQ_QUEUE_FULL => c"queue full",
        FQ_IMPOSSIBLE => c"impossible",
        FQ_REVOKED => c"revoked",
        FQ_PERMIT_LOST => c"permit lost",
        FQ_STALE => c"stale",
        FQ_UNAVAILABLE => c"unavailable",
        FQ_UNKNOWN_OUTCOME => c"unknown outcome",
        FQ_OVERLOADED => c"overloaded",
        FQ_INVALID => c"invalid",
        FQ_CONFIGURATION => c"configuration",
        FQ_SERVER => c"server",
        FQ_NO_SUCH_LIMITER => c"no such limiter",
        FQ_FORKED => c"forked",
        FQ_PANIC => c"panic",
        FQ_INTERNAL => c"internal",
        _ => c"unknown status",
    }
}
