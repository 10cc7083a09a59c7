//! `fq_client`: one instance, over one store.

use std::ffi::c_char;

use super::config::{Config, fq_config};
use super::error::fq_error;
use super::status::fq_status;
use super::{guard, handle, memory, millis};
use crate::{Client, ClientBuilder};

/// An open client: one instance of fairq, with a connection or two and a thread or two, however many limiters and
/// waiters it has.
pub struct fq_client;

/// Opens a client in `*client`, which the caller frees with `fq_client_free`. `url`: `memory:` (or an empty string) for
/// this process alone; `redis://HOST`, `redis-cluster://HOST:PORT,HOST:PORT`, `redis-sentinel://HOST:PORT,HOST:PORT/SERVICE`,
/// each also with `rediss` (TLS), or `unix:///path/to/socket` for a cluster of processes. `config` may be NULL. Connects with the first request. Does not block. The first open of a process looks at the environment variable
/// `FAIRQ_LOG` (`warn`, `info` …), which has the library tell what it has to say on standard error.
///
/// FQ_OK, FQ_INVALID, FQ_FORKED, FQ_INTERNAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_client_open(
    url: *const c_char,
    url_len: usize,
    config: *const fq_config,
    client: *mut *mut fq_client,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        super::log::start();
        // SAFETY: the caller's word.
        let out = unsafe { memory::Out::new(client, std::ptr::null_mut(), "client") }?;
        // SAFETY: the caller's word.
        let url = unsafe { memory::text(url, url_len, "url") }?;
        let builder = Config::apply(config, Client::builder(url), ClientBuilder::option)?;
        out.put(handle::give(builder.open()?)?);
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Connects now, and looks whether the server is fit: its version, the rights of the user. Blocks for at most the
/// options `connect_timeout` and `io_timeout`.
///
/// FQ_OK, FQ_UNAVAILABLE, FQ_CONFIGURATION, FQ_SERVER, FQ_CLOSED, FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_client_check(client: *const fq_client, err: *mut *mut fq_error) -> fq_status {
    // SAFETY: the caller's word.
    unsafe { guard::call(err, || handle::get::<Client>(client)?.check().map(drop)) }
}

/// Closes a client: every waiter ends with FQ_CLOSED; what is held is renewed until it is given back or `drain_ms` is
/// over, then taken back; all its threads end. Blocks for `drain_ms` and a few seconds at most. Its handles stay valid until
/// they are freed, and answer FQ_CLOSED. Safe to call more than once, from any thread.
///
/// FQ_OK, FQ_INVALID, FQ_FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_client_close(
    client: *const fq_client,
    drain_ms: u64,
    err: *mut *mut fq_error,
) -> fq_status {
    // SAFETY: the caller's word.
    unsafe { guard::call(err, || handle::get::<Client>(client)?.close(millis(drain_ms))) }
}

/// Frees the handle. The client itself goes on for its limiters, tickets and permits, and for the requests that wait; when
/// the last of them is gone it closes in the background. NULL, and what is freed already, is left alone. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_client_free(client: *mut fq_client) {
    guard::quiet((), || drop(handle::take::<Client>(client)));
}
