//! `fq_limiter`: a named limit, and requests for a permit of it.

use std::ffi::c_char;

use super::completions::{Queue, fq_completions};
use super::config::{Config, fq_config};
use super::error::fq_error;
use super::permit::fq_permit;
use super::status::fq_status;
use super::ticket::fq_ticket;
use super::{FQ_DEFAULT, fq_client, guard, handle, memory, millis, to_millis};
use crate::process::Made;
use crate::{Change, Client, Error, Limiter, LimiterBuilder, Request, Ticket};

/// A named limit with a line in front of it.
pub struct fq_limiter;

/// In `fq_request.flags`: report each new position in line as an event. For `fq_acquire_start`.
pub const FQ_REPORT_POSITION: u32 = 1;
/// In `fq_request.flags`: report what happens to the permit as events. For `fq_acquire_start`.
pub const FQ_REPORT_PERMIT: u32 = 2;

/// What is asked for. Begin with `FQ_REQUEST_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fq_request {
    /// `sizeof(fq_request)`.
    pub size: u32,
    /// `FQ_REPORT_` bits.
    pub flags: u32,
    /// How long to wait in line; 0: have it at once, or not at all; `FQ_FOREVER`; or `FQ_DEFAULT`, as the limiter says.
    pub max_wait_ms: u64,
    /// How much of the limit the permit takes; at least 1.
    pub cost: u64,
    /// What operators see in the lists of holders and waiters; up to 256 bytes of UTF-8. May be NULL.
    pub label: *const c_char,
    /// The label's length in bytes.
    pub label_len: usize,
}

// SAFETY: `repr(C)`, the size first, numbers and pointers only.
unsafe impl memory::Sized32 for fq_request {
    const FIRST: usize = size_of::<fq_request>();
}

/// How a limiter stands. Set `size` to `sizeof(fq_limiter_info)` before it is filled in.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fq_limiter_info {
    /// `sizeof(fq_limiter_info)`.
    pub size: u32,
    /// 1 while an operator has paused it.
    pub paused: u32,
    /// How much cost may be held at once.
    pub limit: u64,
    /// The cost that is held.
    pub used: u64,
    /// Permits that are held.
    pub holders: u64,
    /// Requests in line.
    pub waiting: u64,
    /// How many may wait; `FQ_FOREVER` for no bound.
    pub max_queue: u64,
    /// How long a request waits that does not say so; or `FQ_FOREVER`.
    pub max_wait_ms: u64,
    /// How long the store believes in a process that has stopped talking.
    pub lease_ms: u64,
    /// How long a permit may be held; `FQ_FOREVER` for no bound.
    pub max_hold_ms: u64,
    /// Permits given since the limiter came to be.
    pub granted_total: u64,
    /// Live instances that use it.
    pub instances: u64,
    /// Changes whenever the store has lost state.
    pub epoch: u64,
    /// For how long nobody is admitted yet, after a loss of state; 0 in quiet times.
    pub grace_ms: u64,
    /// Mean time a permit is held; `FQ_FOREVER` while not known.
    pub typical_hold_ms: u64,
    /// How long a newcomer is likely to wait; `FQ_FOREVER` while not known.
    pub estimate_ms: u64,
    /// Cost that came back over the limit since the limiter came to be: after a loss of state everything is taken that was
    /// held, also where others had been admitted in the meantime.
    pub overshoot_total: u64,
}

// SAFETY: `repr(C)`, the size first, numbers only.
unsafe impl memory::Sized32 for fq_limiter_info {
    const FIRST: usize = size_of::<fq_limiter_info>();
}

/// Opens a limiter in `*limiter`, which the caller frees with `fq_limiter_free`. `name`: 1 to 256 bytes of UTF-8.
/// `config`: NULL (or without the option `limit`) attaches to a limiter that others have declared. All that open one name on one
/// client have the same limiter. Does not block.
///
/// FQ_OK, FQ_INVALID, FQ_CLOSED, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_limiter_open(
    client: *const fq_client,
    name: *const c_char,
    name_len: usize,
    config: *const fq_config,
    limiter: *mut *mut fq_limiter,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        // SAFETY: the caller's word.
        let out = unsafe { memory::Out::new(limiter, std::ptr::null_mut(), "limiter") }?;
        let client = handle::get::<Client>(client)?;
        // SAFETY: the caller's word.
        let name = unsafe { memory::text(name, name_len, "name") }?;
        let builder = Config::apply(config, client.limiter(name), LimiterBuilder::option)?;
        out.put(handle::give(builder.open()?)?);
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Waits in line for a permit, and puts it into `*permit`, which the caller gives back with `fq_permit_free`. `request` may
/// be NULL: cost 1, and the limiter's own wait. `ticket` may be NULL; one from `fq_ticket_new` lets other threads cancel or
/// watch, and serves for one request. Blocks until the request has ended: never longer than its wait and a little, whatever
/// the store does.
///
/// FQ_OK, FQ_TIMED_OUT, FQ_CANCELLED, FQ_CLOSED, FQ_QUEUE_FULL, FQ_IMPOSSIBLE, FQ_REVOKED, FQ_UNAVAILABLE, FQ_OVERLOADED,
/// FQ_INVALID, FQ_CONFIGURATION, FQ_SERVER, FQ_NO_SUCH_LIMITER, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_acquire(
    limiter: *const fq_limiter,
    request: *const fq_request,
    ticket: *const fq_ticket,
    permit: *mut *mut fq_permit,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        // SAFETY: the caller's word.
        let out = unsafe { memory::Out::new(permit, std::ptr::null_mut(), "permit") }?;
        let limiter = handle::get::<Limiter>(limiter)?;
        // SAFETY: the caller's word.
        let request = unsafe { read_request(request) }?;
        let granted = match ticket.is_null() {
            true => limiter.acquire(&request),
            false => limiter.acquire_with(&*handle::get::<Ticket>(ticket)?, &request),
        };
        out.put(handle::give(granted?)?);
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Starts a request and returns; it does not wait for the network. FQ_OK means exactly one event of kind FQ_EVENT_DONE with
/// this token in `completions`, whatever happens, unless the queue itself is freed. `request` and `ticket` as for `fq_acquire`.
///
/// FQ_OK, FQ_INVALID, FQ_FORKED, FQ_INTERNAL. With any but FQ_OK there is no event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_acquire_start(
    limiter: *const fq_limiter,
    request: *const fq_request,
    ticket: *const fq_ticket,
    completions: *const fq_completions,
    token: u64,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        let limiter = handle::get::<Limiter>(limiter)?;
        let queue = handle::get::<Queue>(completions)?;
        // SAFETY: the caller's word.
        let request = unsafe { read_request(request) }?;
        match ticket.is_null() {
            true => limiter.acquire_start(&request, queue.completions(), token).map(drop),
            false => {
                let ticket = handle::get::<Ticket>(ticket)?;
                limiter.acquire_start_with(&ticket, &request, queue.completions(), token)
            }
        }
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Asks how the limiter stands. Blocks for a round trip.
///
/// FQ_OK, FQ_NO_SUCH_LIMITER, FQ_UNAVAILABLE, FQ_CLOSED, FQ_CONFIGURATION, FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_limiter_status(
    limiter: *const fq_limiter,
    info: *mut fq_limiter_info,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        // SAFETY: the caller's word.
        let out = unsafe { memory::SizedOut::new(info, "info") }?;
        out.put(&info_of(&handle::get::<Limiter>(limiter)?.status()?));
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Changes the limit while the limiter runs, as its operator. Lowering it revokes nothing; nobody is admitted until use is
/// below it. Stands above what processes declare, until it is reset. Blocks for two round trips.
///
/// FQ_OK, FQ_INVALID, FQ_UNKNOWN_OUTCOME, and as `fq_limiter_status`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_limiter_set_limit(
    limiter: *const fq_limiter,
    limit: u64,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || handle::get::<Limiter>(limiter)?.configure(&Change::new().limit(limit)).map(drop);
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Changes settings while the limiter runs, as its operator: the options of scope FQ_SCOPE_CHANGE. Blocks for two round
/// trips.
///
/// FQ_OK, FQ_INVALID, FQ_UNKNOWN_OUTCOME, and as `fq_limiter_status`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_limiter_configure(
    limiter: *const fq_limiter,
    changes: *const fq_config,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        let change = Config::apply(changes, Change::new(), Change::option)?;
        handle::get::<Limiter>(limiter)?.configure(&change).map(drop)
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Frees the handle; requests that wait, and permits, are not touched. NULL, and what is freed already, is left alone. Does
/// not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_limiter_free(limiter: *mut fq_limiter) {
    guard::quiet((), || drop(handle::take::<Limiter>(limiter)));
}

/// What NULL asks for. A copy shares the empty label, which to make is a good part of what a call costs here.
static PLAIN: Made<Request> = Made::new(Request::new);

/// # Safety
/// `request` is NULL or a request.
unsafe fn read_request(request: *const fq_request) -> Result<Request, Error> {
    if request.is_null() {
        return Ok(PLAIN.clone());
    }
    let empty = fq_request { size: 0, flags: 0, max_wait_ms: 0, cost: 0, label: std::ptr::null(), label_len: 0 };
    // SAFETY: the caller's word.
    let asked = unsafe { memory::read_sized(request, empty, "request") }?;
    if asked.flags & !(FQ_REPORT_POSITION | FQ_REPORT_PERMIT) != 0 {
        return Err(Error::invalid("flags", format!("{:#x} has bits that mean nothing here", asked.flags)));
    }
    // SAFETY: the caller's word.
    let label = unsafe { memory::text(asked.label, asked.label_len, "label") }?;
    let plain = PLAIN.clone();
    let request = if label.is_empty() { plain } else { plain.label(label) }
        .cost(asked.cost)
        .report_position(asked.flags & FQ_REPORT_POSITION != 0)
        .report_permit(asked.flags & FQ_REPORT_PERMIT != 0);
    Ok(match asked.max_wait_ms {
        FQ_DEFAULT => request,
        ms => request.max_wait(millis(ms)),
    })
}

fn info_of(status: &crate::Status) -> fq_limiter_info {
    fq_limiter_info {
        size: 0,
        paused: u32::from(status.paused),
        limit: status.limit,
        used: status.used,
        holders: status.holders,
        waiting: status.waiting,
        max_queue: status.max_queue.min(super::FQ_FOREVER),
        max_wait_ms: to_millis(status.max_wait),
        lease_ms: to_millis(status.lease),
        max_hold_ms: to_millis(status.max_hold),
        granted_total: status.granted_total,
        instances: status.instances,
        epoch: status.epoch,
        grace_ms: to_millis(status.grace),
        typical_hold_ms: to_millis(status.typical_hold),
        estimate_ms: to_millis(status.estimate),
        overshoot_total: status.overshoot_total,
    }
}
