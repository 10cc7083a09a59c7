//! A deterministic simulation of the whole system: the same seed is the same run.
//!
//! Several real clients (tickets, permits, the engine; without its thread: it is driven by hand) talk to one server, a
//! [`redis`] in memory that runs the real scripts, by the real encoding and decoding. Between them is a network that
//! does what networks do, and everybody's time is virtual. Applications acquire, cancel, put back, release and
//! close; operators change limits, pause and revoke; and what [`faults`] lists goes wrong, any mixture of it in a run. After
//! each script and each step the [`oracle`] and [`checks`] look whether a promise is broken. In the end misfortune stops,
//! and all that are left have to be served, in order, and to leave nothing behind.
//!
//! What is not simulated: sockets and TLS, the threads that do I/O and the races between threads (loom and the other
//! tests look at these), and the parts of `store::redis` about connections; [`link`] and [`network`] do in their place what they do.
//!
//! ```sh
//! cargo test --all-features --lib simulation                    # a hundred seeds, others each time
//! FAIRQ_SIM_SEEDS=5000 FAIRQ_SIM_START=1 cargo test …           # as many as there is time for
//! FAIRQ_SIM_SEED=42 cargo test … -- --nocapture                 # one seed, with all that happens in it
//! FAIRQ_SIM_FAULTS=stop,wall cargo test …                       # only what these kinds of faults bring about
//! cargo test --all-features --lib mutants -- --ignored --nocapture   # would mistakes in the scripts be noticed?
//! ```
//!
//! A run that fails says with which of these it comes again, with the fewest kinds of faults that bring it about.

mod checks;
mod expiry;
mod faults;
mod instance;
mod link;
mod lost;
mod mutants;
mod network;
mod oracle;
mod presence;
pub(crate) mod redis;
mod regressions;
mod rng;
mod run;
mod server;
mod trace;
mod view;
mod workload;
mod world;
