//! `fairq` limits how many long-running requests run *at once* over a whole cluster, with a strict
//! first-come-first-served line in front.
//!
//! ```
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), fairq::Error> {
//! let client = fairq::Client::open("memory:lib-doc")?; // or redis://host, shared by every process
//! let chat = client.limiter("rag:chat").limit(4).max_queue(100).open()?;
//!
//! let permit = chat.acquire(&fairq::Request::new().max_wait(Duration::from_secs(15)))?;
//! // ... stream tokens; `permit.is_valid()` tells whether the slot is still ours ...
//! permit.release()?; // or drop it
//! # Ok(()) }
//! ```
//!
//! The parts, from the face inward; each may call those below it:
//!
//! - [`Client`], [`Limiter`], [`Ticket`], [`Permit`], [`Completions`]: what callers use.
//! - [`ffi`]: the same for C, and through it for other languages.
//! - `engine`: what an instance's tickets go through, and when the store is asked; a scheduler thread.
//! - `ticket`, `coalescer`: the two small machines that races are decided by; pure, model-checked.
//! - `store`: where a limiter's state lives. `store::model` is the specification of every verb, `store::memory` runs
//!   it in this process, `store::redis` runs the same as Lua scripts, over a router, a link thread for each server and a
//!   Pub/Sub thread.

mod client;
mod clock;
mod coalescer;
mod completions;
mod duration;
mod engine;
mod error;
mod events;
#[cfg(target_pointer_width = "64")] // a handle is a number of 64 bits
pub mod ffi;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(all(test, not(loom)))]
mod history;
mod jitter;
mod label;
mod lane;
mod limiter;
mod limiter_builder;
mod map;
mod options;
mod permit;
mod process;
mod request;
mod settings;
#[cfg(all(test, not(loom)))]
mod simulation;
mod status;
mod store;
#[cfg(all(test, not(loom)))]
#[path = "../tests/support/mod.rs"]
mod support;
mod sync;
mod ticket;
#[cfg(all(test, not(loom)))]
#[path = "../tests/promises/workers/mod.rs"]
mod workers;

#[cfg(all(test, not(loom)))]
extern crate self as fairq; // so that the unit tests can share what knows the public face only

pub use client::{Client, ClientBuilder};
pub use clock::Clock;
pub use completions::{Completion, Completions, Event};
pub use duration::{format_duration, parse_duration};
pub use error::Error;
pub use events::{LostReason, PermitEvent};
pub use limiter::Limiter;
pub use limiter_builder::LimiterBuilder;
pub use options::{OPTIONS, OptionSpec, Scope};
pub use permit::{Permit, PermitState};
pub use request::{Request, Ticket};
pub use settings::{Change, Outage};
pub use status::{Entry, Position, Revoked, ServerInfo, Status};
pub use ticket::TicketState;

#[doc(hidden)]
pub use store::redis::bench_support;
pub use store::redis::redis_acl;
