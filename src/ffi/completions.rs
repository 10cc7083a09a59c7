//! `fq_completions`: what becomes of requests, for one thread or an event loop to learn.

use std::sync::Arc;

use super::error::{Failure, fq_error};
use super::permit::fq_permit;
use super::status::{FQ_OK, fq_status};
use super::ticket::position_of;
use super::{FQ_FOREVER, guard, handle, memory, millis};
use crate::sync::Mutex;
use crate::{Completion, Completions, Error, Event, PermitEvent};

/// A queue of events. Any number of requests, limiters and clients may report to one, and any number of threads may poll it.
pub struct fq_completions;

/// The request has ended: with `status` FQ_OK and `permit`, or with another status and `error`.
pub const FQ_EVENT_DONE: i32 = 0;
/// The request stands at `position` now. With the flag FQ_REPORT_POSITION.
pub const FQ_EVENT_POSITION: i32 = 1;
/// The store has not confirmed the permit for a whole lease: others may have the slot. It may come back. With the flag
/// FQ_REPORT_PERMIT, as all that follow.
pub const FQ_EVENT_PERMIT_UNCONFIRMED: i32 = 2;
/// The store has confirmed the permit again.
pub const FQ_EVENT_PERMIT_CONFIRMED: i32 = 3;
/// The permit is lost for good, for the reason in `status` and `error`; guarded work has to stop.
pub const FQ_EVENT_PERMIT_LOST: i32 = 4;

/// Something that became of a request.
#[repr(C)]
pub struct fq_event {
    /// As given to `fq_acquire_start`.
    pub token: u64,
    /// One of the `FQ_EVENT_` constants.
    pub kind: i32,
    /// FQ_OK, or why there is no permit (any more).
    pub status: fq_status,
    /// The permit, which is the receiver's to give back with `fq_permit_free`; or NULL.
    pub permit: *mut fq_permit,
    /// Why there is none, which is the receiver's to free with `fq_error_free`; or NULL.
    pub error: *mut fq_error,
    /// Where the request stands in line; 1 is next; 0 in events of another kind.
    pub position: u64,
    /// How long it is likely to wait still; `FQ_FOREVER` while not known, and in events of another kind.
    pub estimate_ms: u64,
}

/// What a completion queue's handle stands for.
pub(super) struct Queue {
    completions: Completions,
    /// Where a wake-up is written to. Locked while it is written, so that whoever takes it away knows it unused.
    fd: Arc<Mutex<Option<i32>>>,
}

impl Queue {
    fn new() -> Self {
        let fd: Arc<Mutex<Option<i32>>> = Arc::default();
        let bell = fd.clone();
        let completions = Completions::with_notify(move || {
            if let Some(fd) = *bell.lock() {
                ring(fd);
            }
        });
        Queue { completions, fd }
    }

    pub(super) fn completions(&self) -> &Completions {
        &self.completions
    }
}

/// Eight bytes that read as the number 1: what an eventfd takes, and any pipe.
fn ring(fd: i32) {
    if is_full(fd) {
        return; // whoever waits for it will wake up
    }
    let one = 1u64;
    // SAFETY: eight bytes are readable at `one`; a bad descriptor is an error like others.
    while unsafe { libc::write(fd, (&raw const one).cast(), size_of::<u64>()) } < 0 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            if error.kind() != std::io::ErrorKind::WouldBlock {
                tracing::error!(fd, %error, "the completion queue's descriptor cannot be written to");
            }
            return;
        }
    }
}

/// Whether a write would block, as it may to a pipe whose reader takes eight bytes at a time and polls more often. It would
/// keep a thread of the library, or a caller that was promised not to be.
fn is_full(fd: i32) -> bool {
    let mut look = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one element, as said. It returns at once.
    unsafe { libc::poll(&raw mut look, 1, 0) == 0 }
}

/// Makes an empty queue in `*completions`, which the caller frees with `fq_completions_free`. Does not block.
///
/// FQ_OK, FQ_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_completions_new(
    completions: *mut *mut fq_completions,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        // SAFETY: the caller's word.
        let out = unsafe { memory::Out::new(completions, std::ptr::null_mut(), "completions") }?;
        out.put(handle::give(Queue::new())?);
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// From now on, writes the eight bytes of the number 1 to `fd` (an eventfd, or the write end of a pipe) when there is something
/// to poll for, so that an event loop can wait for it: once, and then not again before the next poll. On a wake-up read `fd`
/// first (of a pipe, all that is in it), then poll until nothing is left. The descriptor stays the caller's: it has to stay
/// open, and its pipe's read end too, until this was called with -1, or the queue is freed; after either returns it is not
/// written to any more. Does not block.
///
/// FQ_OK, FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_completions_set_fd(
    completions: *const fq_completions,
    fd: i32,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        let queue = handle::get::<Queue>(completions)?;
        if fd < -1 {
            return Err(Error::invalid("fd", format!("{fd} is no descriptor; -1 takes the present one away")));
        }
        let mut present = queue.fd.lock();
        if queue.completions.is_closed() {
            return Err(Error::invalid("completions", "it was freed just now"));
        }
        *present = Some(fd).filter(|fd| *fd >= 0);
        drop(present);
        queue.completions.renotify(); // for what came before
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Takes up to `capacity` events into `events`, and their number into `*count`. Blocks up to `timeout_ms` for the first (0: not
/// at all; FQ_FOREVER) and not for more; none in time is FQ_OK with a count of 0.
///
/// FQ_OK; FQ_CLOSED when the queue was freed meanwhile; FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_completions_poll(
    completions: *const fq_completions,
    events: *mut fq_event,
    capacity: usize,
    timeout_ms: u64,
    count: *mut usize,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        // SAFETY: the caller's word.
        let count = unsafe { memory::Out::new(count, 0, "count") }?;
        if capacity == 0 || events.is_null() {
            return Err(Error::invalid("events", "there has to be room for one, at least"));
        }
        let queue = handle::get::<Queue>(completions)?;
        let news = queue.completions.poll_events(capacity, millis(timeout_ms));
        if news.is_empty() && queue.completions.is_closed() {
            return Err(Error::Closed);
        }
        count.put(news.len());
        for (at, event) in news.into_iter().enumerate() {
            let event = to_event(event);
            // SAFETY: `at` is below the capacity, which the caller's array has.
            unsafe { events.add(at).write(event) };
        }
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Frees a queue. Requests that would have reported to it are cancelled, permits that nobody has taken are given back, a
/// thread that polls returns with FQ_CLOSED. NULL, and what is freed already, is left alone. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_completions_free(completions: *mut fq_completions) {
    guard::quiet((), || {
        if let Some(queue) = handle::take::<Queue>(completions) {
            queue.completions.close(); // first, so that nobody sets another descriptor
            *queue.fd.lock() = None;
        }
    });
}

fn to_event(event: Event) -> fq_event {
    match event {
        Event::Done(Completion { token, result: Ok(permit) }) => match handle::give(permit) {
            Ok(permit) => fq_event { permit, ..plain(token, FQ_EVENT_DONE) },
            Err(error) => failed(token, FQ_EVENT_DONE, &error), // no room for its handle; the permit went back
        },
        Event::Done(Completion { token, result: Err(error) }) => failed(token, FQ_EVENT_DONE, &error),
        Event::Position { token, position } => {
            let told = position_of(Some(position));
            fq_event { position: told.position, estimate_ms: told.estimate_ms, ..plain(token, FQ_EVENT_POSITION) }
        }
        Event::Permit { token, event: PermitEvent::Unconfirmed } => plain(token, FQ_EVENT_PERMIT_UNCONFIRMED),
        Event::Permit { token, event: PermitEvent::Confirmed } => plain(token, FQ_EVENT_PERMIT_CONFIRMED),
        Event::Permit { token, event: PermitEvent::Lost(reason) } => {
            failed(token, FQ_EVENT_PERMIT_LOST, &Error::PermitLost(reason))
        }
    }
}

fn plain(token: u64, kind: i32) -> fq_event {
    let (permit, error) = (std::ptr::null_mut(), std::ptr::null_mut());
    fq_event { token, kind, status: FQ_OK, permit, error, position: 0, estimate_ms: FQ_FOREVER }
}

fn failed(token: u64, kind: i32, error: &Error) -> fq_event {
    let failure = Failure::new(error);
    let status = failure.status;
    // Without room for another error there is still the status.
    fq_event { status, error: handle::give(failure).unwrap_or(std::ptr::null_mut()), ..plain(token, kind) }
}
