//! `fq_permit`: a held slot.

use super::error::fq_error;
use super::status::fq_status;
use super::{guard, handle};
use crate::{Permit, PermitState};

/// A held slot of a limiter.
pub struct fq_permit;

/// Held, and confirmed within the lease.
pub const FQ_PERMIT_STATE_VALID: i32 = 0;
/// Held as far as is known, but the store has been silent for a lease: others may have the slot.
pub const FQ_PERMIT_STATE_UNCONFIRMED: i32 = 1;
/// Lost; guarded work has to stop.
pub const FQ_PERMIT_STATE_LOST: i32 = 2;
/// Given back.
pub const FQ_PERMIT_STATE_RELEASED: i32 = 3;
/// The handle is none of a permit, or of a parent process.
pub const FQ_PERMIT_STATE_NONE: i32 = 4;

/// Gives the slot back, and waits for the store's answer, at most about twice the option `io_timeout`; after that the release
/// goes on in the background. The handle stays, to be freed; a second release answers FQ_STALE.
///
/// FQ_OK; FQ_STALE and FQ_PERMIT_LOST when it had been given or taken back before; FQ_UNAVAILABLE when there was no answer in
/// time; FQ_CLOSED, FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_release(permit: *const fq_permit, err: *mut *mut fq_error) -> fq_status {
    // SAFETY: the caller's word.
    unsafe { guard::call(err, || handle::get::<Permit>(permit)?.release_shared()) }
}

/// Gives the slot back in the background, if that has not been done, and frees the handle. NULL, and what is freed already,
/// is left alone. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_permit_free(permit: *mut fq_permit) {
    guard::quiet((), || drop(handle::take::<Permit>(permit)));
}

/// A number that grows with every grant of the limiter, for the guarded resource to refuse whoever comes with a smaller one.
/// 0 for a permit admitted locally while the store was away, and for what is no permit. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_permit_fence(permit: *const fq_permit) -> u64 {
    of(permit, 0, Permit::fence)
}

/// The request's place in line, given once at its arrival: microseconds of the store's clock. 0 for what is no permit.
/// Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_permit_order(permit: *const fq_permit) -> u64 {
    of(permit, 0, Permit::order)
}

/// How much of the limit it takes; 0 for what is no permit. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_permit_cost(permit: *const fq_permit) -> u64 {
    of(permit, 0, Permit::cost)
}

/// 1 while nobody else can have the slot: it was neither lost nor given back, and the store has confirmed it within the
/// lease. Else 0. A local, conservative judgement; does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_permit_is_valid(permit: *const fq_permit) -> i32 {
    of(permit, 0, |permit| i32::from(permit.is_valid()))
}

/// How it stands: one of the `FQ_PERMIT_STATE_` constants. A local, conservative judgement; does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_permit_state(permit: *const fq_permit) -> i32 {
    of(permit, FQ_PERMIT_STATE_NONE, |permit| match permit.state() {
        PermitState::Valid => FQ_PERMIT_STATE_VALID,
        PermitState::Unconfirmed => FQ_PERMIT_STATE_UNCONFIRMED,
        PermitState::Lost => FQ_PERMIT_STATE_LOST,
        PermitState::Released => FQ_PERMIT_STATE_RELEASED,
    })
}

fn of<T: Copy>(permit: *const fq_permit, otherwise: T, read: impl FnOnce(&Permit) -> T) -> T {
    guard::quiet(otherwise, || handle::get::<Permit>(permit).map_or(otherwise, |permit| read(&permit)))
}
