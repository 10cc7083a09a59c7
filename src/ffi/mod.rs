//! The C ABI: what `include/fairq.h` declares. One file per handle; nothing here decides anything, it only translates.
//!
//! A handle is a *name*, not an address: a number that [`handle`] looks up, made to look like a pointer so that C tells
//! the types apart. So a second free, a use after a free, a free while another thread uses it, or a handle of the parent
//! process is an error that is reported, and never a wild pointer. Every entry goes through [`guard`], which turns panics
//! into a status. `unsafe` here means one thing only: the memory that a caller's pointer shows to is read or written;
//! [`memory`] does it, everywhere.
//!
//! # Safety
//! Of every function here: each pointer is NULL or shows to what the function says; strings can be read for their length,
//! and places for answers can be written, for as long as the call lasts.
#![allow(non_camel_case_types, reason = "the names are C's")]
#![allow(clippy::missing_safety_doc, reason = "it is said above, for all")]

mod client;
mod completions;
mod config;
mod error;
mod guard;
mod handle;
mod limiter;
mod log;
mod memory;
mod permit;
mod status;
mod ticket;
mod time;
mod version;

pub use client::*;
pub use completions::*;
pub use config::*;
pub use error::*;
pub use limiter::*;
pub use permit::*;
pub use status::*;
pub use ticket::*;
pub use time::*;
pub use version::*;

use time::{millis, to_millis};
