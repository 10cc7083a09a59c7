//! The fault matrix: each row a fault, put upon several processes at work, with the promises checked and the time to
//! recover measured. docs/faults.md is what a full run writes.
//!
//! `cargo test` runs a few rows. The whole matrix, on all servers that are installed or those that are named:
//!
//! ```sh
//! FAIRQ_TEST_SERVER=redis70,valkey91 FAIRQ_FAULTS_REPORT=docs/faults.md \
//!     cargo test --all-features --test faults -- --ignored --test-threads=1
//! ```
//!
//! FAIRQ_FAULTS=WORD runs the rows whose name contains the word.

#[path = "../support/mod.rs"]
mod support;
#[allow(dead_code)] // the tests of the promises use the rest
#[path = "../promises/tools.rs"]
mod tools;
#[path = "../promises/workers/mod.rs"]
mod workers;

mod load;
mod matrix;
mod rows;

use support::{Flavor, Server};

#[test]
fn a_few_faults_under_load_break_no_promise() {
    matrix::run(rows::all().into_iter().filter(|row| row.is_quick), &[Server::default_flavor()]);
}

#[test]
#[ignore = "takes some minutes for each server: see the head of tests/faults/main.rs"]
fn no_fault_of_the_matrix_breaks_a_promise() {
    matrix::run(rows::all(), &Flavor::available());
}
