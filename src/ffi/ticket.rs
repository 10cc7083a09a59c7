//! `fq_ticket`: one request on its way.

use super::error::fq_error;
use super::status::fq_status;
use super::{fq_limiter, guard, handle, memory, to_millis};
use crate::{Error, Limiter, Position, Ticket};

/// One request on its way, to be cancelled or watched from any thread.
pub struct fq_ticket;

/// Where a request stands in line.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fq_position {
    /// 1 is next; 0: it does not wait in line.
    pub position: u64,
    /// How long it is likely to wait still; `FQ_FOREVER` while not known.
    pub estimate_ms: u64,
}

/// Makes a ticket in `*ticket` for one request, which the caller frees with `fq_ticket_free`. Cancelling it is sticky: a
/// request that is started with it afterwards ends as cancelled. Does not block.
///
/// FQ_OK, FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_ticket_new(
    limiter: *const fq_limiter,
    ticket: *mut *mut fq_ticket,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        // SAFETY: the caller's word.
        let out = unsafe { memory::Out::new(ticket, std::ptr::null_mut(), "ticket") }?;
        out.put(handle::give(handle::get::<Limiter>(limiter)?.ticket())?);
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Cancels the request, also one that is not started yet, or waits in another thread. FQ_OK: it is cancelled and will not be
/// granted. FQ_STALE: it had ended otherwise. Does not block; the store is told in the background.
///
/// FQ_OK, FQ_STALE, FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_cancel(ticket: *const fq_ticket, err: *mut *mut fq_error) -> fq_status {
    let body = || {
        if handle::get::<Ticket>(ticket)?.cancel() { Ok(()) } else { Err(Error::Stale) }
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Asks the store where the request stands. Blocks for a round trip.
///
/// FQ_OK, and as `fq_limiter_status`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_ticket_position(
    ticket: *const fq_ticket,
    position: *mut fq_position,
    err: *mut *mut fq_error,
) -> fq_status {
    // SAFETY: the caller's word.
    unsafe { tell(ticket, position, err, Ticket::position) }
}

/// Where the request stood when the store last told. Does not block.
///
/// FQ_OK, FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_ticket_last_position(
    ticket: *const fq_ticket,
    position: *mut fq_position,
    err: *mut *mut fq_error,
) -> fq_status {
    // SAFETY: the caller's word.
    unsafe { tell(ticket, position, err, |ticket| Ok(ticket.last_position())) }
}

/// Frees the handle; the request goes on. NULL, and what is freed already, is left alone. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_ticket_free(ticket: *mut fq_ticket) {
    guard::quiet((), || drop(handle::take::<Ticket>(ticket)));
}

/// # Safety
/// As of `fq_ticket_position`.
unsafe fn tell(
    ticket: *const fq_ticket,
    position: *mut fq_position,
    err: *mut *mut fq_error,
    ask: impl FnOnce(&Ticket) -> Result<Option<Position>, Error>,
) -> fq_status {
    let body = || {
        // SAFETY: the caller's word.
        let out = unsafe { memory::Out::new(position, position_of(None), "position") }?;
        out.put(position_of(ask(&*handle::get::<Ticket>(ticket)?)?));
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

pub(super) fn position_of(position: Option<Position>) -> fq_position {
    fq_position {
        position: position.map_or(0, |p| p.position),
        estimate_ms: to_millis(position.and_then(|p| p.estimate)),
    }
}
