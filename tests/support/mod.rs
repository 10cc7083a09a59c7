//! What the integration tests share: real servers, a proxy that breaks the
//! network on demand, and waiting for a condition with a bound.
//!
//! Use it by `mod support;` and then, for instance:
//!
//! ```ignore
//! for flavor in Flavor::available() {
//!     let server = Server::start(flavor);
//!     let proxy = Proxy::to(server.port());
//!     // … a client of proxy.url() …
//!     proxy.drop_reply_matching(b"enqueue");
//!     eventually("the reply was lost", SOON, || proxy.fired() == 1);
//! }
//! ```
//!
//! Everything here panics with its reason instead of returning errors: a test
//! whose tools fail has nothing left to decide.

// Each test binary compiles this module for itself and uses a part of it.
#![allow(dead_code, unused_imports)]

mod certificates;
mod cluster;
mod flavor;
mod left;
mod ports;
mod proxy;
mod sentinel;
mod server;
mod spawner;
mod tls;
mod wait;

pub use certificates::{Authority, Pair, Valid};
pub use cluster::Cluster;
pub use flavor::Flavor;
pub use left::tickets_in;
pub use proxy::{Held, Proxy};
pub use sentinel::{SERVICE, Watched};
pub use server::{Server, ServerBuilder};
pub use tls::Tls;
pub use wait::{SLOW, SOON, eventually, eventually_some};
