//! Opening clients and limiters, and letting go of them.

use std::time::Duration;

use fairq::{Client, Limiter};

use crate::exit::Failure;
use crate::site::Site;

/// How long an unreachable server is tried before a command gives up on it.
const CONNECT: Duration = Duration::from_secs(5);

/// Opens a client that operators can tell from the services' own.
pub fn client(site: &Site) -> Result<Client, Failure> {
    let description = format!("fairq command, pid {}", std::process::id());
    // As many as a benchmark wants; whoever works with it knows how many that is.
    Ok(site.builder()?.connect_timeout(CONNECT).max_tickets(u64::MAX).description(description).open()?)
}

/// Attaches to a limiter that exists; declares nothing.
pub fn existing(site: &Site, name: &str) -> Result<(Client, Limiter), Failure> {
    let client = client(site.must_be_shared()?)?;
    let limiter = client.limiter(name).open()?;
    Ok((client, limiter))
}

/// Lets go of everything. A command that has its answer does not fail because the goodbye did.
pub fn goodbye(client: &Client) {
    if let Err(error) = client.close(Duration::ZERO) {
        tracing::debug!("close: {error}");
    }
}

/// The same for many, whose farewells need not wait for one another.
pub fn goodbye_all(clients: &[Client]) {
    std::thread::scope(|scope| {
        for client in clients {
            scope.spawn(|| goodbye(client));
        }
    });
}
