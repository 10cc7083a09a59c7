//! `fq_config`: options by key and value, before something is opened or changed with them.

use std::ffi::{CString, c_char};

use super::error::{c_string, fq_error};
use super::status::fq_status;
use super::{guard, handle, memory};
use crate::Error;
use crate::options::{OPTIONS, Scope};
use crate::process::Made;
use crate::sync::Mutex;

/// Options for opening a client or a limiter, or for changing a limiter.
pub struct fq_config;

/// An option of a client, set when it is opened.
pub const FQ_SCOPE_CLIENT: i32 = 0;
/// An option of a limiter, set when it is opened.
pub const FQ_SCOPE_LIMITER: i32 = 1;
/// A setting that an operator may change while a limiter runs.
pub const FQ_SCOPE_CHANGE: i32 = 2;

/// One option that there is. Its strings live for ever.
#[repr(C)]
pub struct fq_option {
    /// One of the `FQ_SCOPE_` constants.
    pub scope: i32,
    /// Its key.
    pub key: *const c_char,
    /// Its default, as it would be set; empty where that is nothing.
    pub default_value: *const c_char,
    /// What it does.
    pub doc: *const c_char,
}

/// What has been set, in that order.
#[derive(Default)]
pub(super) struct Config {
    pairs: Mutex<Vec<(String, String)>>,
}

impl Config {
    /// Applies what the handle holds, if it is one.
    pub(super) fn apply<B>(
        config: *const fq_config,
        mut to: B,
        set: impl Fn(B, &str, &str) -> Result<B, Error>,
    ) -> Result<B, Error> {
        if config.is_null() {
            return Ok(to);
        }
        let config = handle::get::<Config>(config)?;
        for (key, value) in config.pairs.lock().iter() {
            to = set(to, key, value)?;
        }
        Ok(to)
    }
}

/// Makes an empty set of options in `*config`, which the caller frees with `fq_config_free`. Does not block.
///
/// FQ_OK, FQ_INVALID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_config_new(config: *mut *mut fq_config, err: *mut *mut fq_error) -> fq_status {
    let body = || {
        // SAFETY: the caller's word.
        let out = unsafe { memory::Out::new(config, std::ptr::null_mut(), "config") }?;
        out.put(handle::give(Config::default())?);
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Sets an option. Durations are written `500ms`, `30s`, `2h`; see `fq_options` for all there are. A key of the wrong kind
/// (a limiter's, for a client) is refused when something is opened with it. Does not block.
///
/// FQ_OK; FQ_INVALID for an unknown key, or a value that means nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_config_set(
    config: *mut fq_config,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    err: *mut *mut fq_error,
) -> fq_status {
    let body = || {
        let config = handle::get::<Config>(config)?;
        // SAFETY: the caller's word.
        let (key, value) = unsafe { (memory::text(key, key_len, "key")?, memory::text(value, value_len, "value")?) };
        crate::options::check(key, value)?;
        config.pairs.lock().push((key.to_owned(), value.to_owned()));
        Ok(())
    };
    // SAFETY: the caller's word.
    unsafe { guard::call(err, body) }
}

/// Frees a set of options; what was opened with it stays as it is. NULL, and what is freed already, is left alone. Does not block.
#[unsafe(no_mangle)]
pub extern "C" fn fq_config_free(config: *mut fq_config) {
    guard::quiet((), || drop(handle::take::<Config>(config)));
}

/// All options that there are, `*count` of them. Lives for ever. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fq_options(count: *mut usize) -> *const fq_option {
    // SAFETY: the caller's word.
    if let Some(out) = unsafe { memory::Out::optional(count, 0) } {
        out.put(TABLE.rows.len());
    }
    TABLE.rows.as_ptr()
}

struct OptionTable {
    rows: Vec<fq_option>,
    /// What the rows point to.
    _texts: Vec<CString>,
}

// SAFETY: the pointers show to strings that are never changed, and live as long as the table: for ever.
unsafe impl Send for OptionTable {}
// SAFETY: as above.
unsafe impl Sync for OptionTable {}

static TABLE: Made<OptionTable> = Made::new(|| {
    let mut texts = Vec::new();
    let mut keep = |text: &str| {
        texts.push(c_string(text));
        texts.last().map_or(std::ptr::null(), |text| text.as_ptr())
    };
    let row = |option: &crate::OptionSpec| fq_option {
        scope: match option.scope {
            Scope::Client => FQ_SCOPE_CLIENT,
            Scope::Limiter => FQ_SCOPE_LIMITER,
            Scope::Change => FQ_SCOPE_CHANGE,
        },
        key: keep(option.key),
        default_value: keep(option.default),
        doc: keep(option.doc),
    };
    let rows = OPTIONS.iter().map(row).collect();
    OptionTable { rows, _texts: texts }
});
