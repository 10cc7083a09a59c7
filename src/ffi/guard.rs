//! What every entry goes through.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::{Failure, fq_error};
use super::handle;
use super::memory::Out;
use super::status::{FQ_OK, fq_status};
use crate::Error;

/// Runs an entry; what goes wrong, panics included, becomes a status, and an error for those who want one.
///
/// # Safety
/// `err` is NULL, or a pointer can be written there.
pub(super) unsafe fn call(err: *mut *mut fq_error, body: impl FnOnce() -> Result<(), Error>) -> fq_status {
    // SAFETY: the caller's word.
    let err = unsafe { Out::optional(err, std::ptr::null_mut()) };
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return FQ_OK,
        Ok(Err(error)) => Failure::new(&error),
        Err(panic) => Failure::of_panic(&words(panic.as_ref())),
    };
    let status = failure.status;
    if let Some(err) = err {
        // Without room for another error there is still the status.
        err.put(handle::give(failure).unwrap_or(std::ptr::null_mut()));
    }
    status
}

/// Runs an entry that has no way to fail; after a panic it answers `otherwise`.
pub(super) fn quiet<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        tracing::error!(panic = words(panic.as_ref()), "a call panicked");
        otherwise
    })
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no words".into())
}
