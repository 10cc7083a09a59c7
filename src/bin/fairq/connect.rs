//! Opening clients and limiters, with errors that say which option was missing.

use std::time::Duration;

use fairq::{Client, Limiter};

use crate::exit::{Failure, USAGE};

/// How long an unreachable server is tried before a command gives up on it.
const CONNECT: Duration = Duration::from_secs(5);

/// The address of a server that several processes can share, or a clear no.
pub fn shared_url(url: Option<&str>) -> Result<&str, Failure> {
    match url.filter(|url| !is_memory(url)) {
        Some(url) => Ok(url),
        None => Err(no_server(url)),
    }
}

/// Whether limiters at this address live and die with the process.
pub fn is_memory(url: &str) -> bool {
    url.is_empty() || url.starts_with("memory:")
}

/// Opens a client that operators can tell from the services' own.
pub fn client(url: &str) -> Result<Client, Failure> {
    let description = format!("fairq command, pid {}", std::process::id());
    // As many as a benchmark wants; whoever works with it knows how many that is.
    Ok(Client::builder(url).connect_timeout(CONNECT).max_tickets(u64::MAX).description(description).open()?)
}

/// Attaches to a limiter that exists; declares nothing.
pub fn existing(url: Option<&str>, name: &str) -> Result<(Client, Limiter), Failure> {
    let client = client(shared_url(url)?)?;
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

fn no_server(url: Option<&str>) -> Failure {
    let what = match url {
        Some(url) if !url.is_empty() => {
            format!("{url} keeps limiters inside one process: of no use to a command that has to share them")
        }
        _ => "no server given, and limiters in the memory of this command would be shared with nobody".into(),
    };
    Failure::new(USAGE, what).hint("give a Redis server by --url redis://HOST or in FAIRQ_URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_refused_where_it_would_mislead() {
        for url in [None, Some(""), Some("memory:")] {
            assert_eq!(shared_url(url).unwrap_err().status, USAGE, "{url:?}");
        }
        assert_eq!(shared_url(Some("redis://h")).unwrap(), "redis://h");
    }
}
