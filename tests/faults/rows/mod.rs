//! The rows, by what is broken.

mod clocks;
mod crash;
mod death;
mod memory;
mod processes;
mod proxy;
mod pubsub;
mod server;
mod wall;

use crate::matrix::Row;

pub fn all() -> Vec<Row> {
    let groups = [
        ("The network", proxy::rows()),
        ("Pub/Sub", pubsub::rows()),
        ("The server", server::rows()),
        ("The server's data and memory", memory::rows()),
        ("Clocks", [clocks::rows(), wall::rows()].into_iter().flatten().collect()),
        ("Processes", [processes::rows(), death::rows()].into_iter().flatten().collect()),
        ("How soon the dead are noticed", crash::rows()),
    ];
    groups.into_iter().flat_map(|(group, rows)| rows.into_iter().map(move |row| Row { group, ..row })).collect()
}
