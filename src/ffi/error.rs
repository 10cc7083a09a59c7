//! `fq_error`: why a call failed.

use std::ffi::{CString, c_char};

use super::status::{FQ_OK, FQ_PANIC, fq_status, status_of};
use super::{FQ_FOREVER, guard, handle, to_millis};
use crate::Error;

/// Why a call or a request failed. Owned by whoever received it, who frees it with `fq_error_free`.
pub struct fq_error;

/// What an error handle stands for.
pub(super) struct Failure {
    pub status: fq_status,
    message: CString,
    retryable: bool,
    retry_after_ms: u64,
}

impl Failure {
    pub(super) fn new(error: &Error) -> Self {
        Failure {
            status: status_of(error),
            message: c_string(&error.to_string()),
            retryable: error.is_retryable(),
            retry_after_ms: to_millis(error.retry_after()),
        }
    }

    pub(super) fn of_panic(words: &str) -> Self {
        let message = c_string(&format!("fairq panicked, which is a bug: {words}"));
        Failure { status: FQ_PANIC, message, retryable: false, retry_after_ms: FQ_FOREVER }
    }
}

/// C's strings end at the first zero byte; one inside would hide the rest.
pub(super) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// The status of the failure; `FQ_OK` for NULL, `FQ_INVALID` for what is no error. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_error_status(error: *const fq_error) -> fq_status {
    if error.is_null() {
        return FQ_OK;
    }
    of(error, super::FQ_INVALID, |failure| failure.status)
}

/// What went wrong and what to do, in a sentence; never a password. Belongs to the error: it may be read until
/// `fq_error_free`. Empty for NULL, and for what is no error. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_error_message(error: *const fq_error) -> *const c_char {
    of(error, c"".as_ptr(), |failure| failure.message.as_ptr())
}

/// 1 when the same request may succeed later without anything being changed, else 0. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_error_retryable(error: *const fq_error) -> i32 {
    of(error, 0, |failure| i32::from(failure.retryable))
}

/// After how many milliseconds to try again; `FQ_FOREVER` where that is not known. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_error_retry_after_ms(error: *const fq_error) -> u64 {
    of(error, FQ_FOREVER, |failure| failure.retry_after_ms)
}

/// Frees an error, and its message with it. NULL, and what is freed already, is left alone. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_error_free(error: *mut fq_error) {
    guard::quiet((), || drop(handle::take::<Failure>(error)));
}

fn of<T: Copy>(error: *const fq_error, otherwise: T, read: impl FnOnce(&Failure) -> T) -> T {
    guard::quiet(otherwise, || handle::get::<Failure>(error).map_or(otherwise, |failure| read(&failure)))
}
