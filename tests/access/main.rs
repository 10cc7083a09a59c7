//! How connections are let in: TLS, certificates, logins, and what happens when these are renewed while limiters work.
//!
//! Certificates are made by each test. Of the servers only the distribution's speaks TLS.

#[allow(dead_code)] // made for the promises, of which a part is wanted here
#[path = "../promises/stores.rs"]
mod stores;
#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code)] // as above
#[path = "../topology/scene.rs"]
mod scene;

mod command;
mod login;
mod rotation;
mod tls;
mod tls_faults;
mod unix;
