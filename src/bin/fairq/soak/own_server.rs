//! A redis-server of the run's own, for who has given none.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::exit::{Failure, UNAVAILABLE, USAGE};
use crate::server::{Server, number};
use crate::site::Site;

const START: Duration = Duration::from_secs(20);

/// Ends with the run.
pub struct OwnServer {
    child: Child,
    site: Site,
}

impl OwnServer {
    /// Starts one that keeps nothing on disk, and waits until it answers.
    pub fn start() -> Result<OwnServer, Failure> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| {
            Failure::new(USAGE, format_args!("no --url given, and redis-server does not start: {error}"))
                .hint("give a Redis server by --url redis://HOST or in FAIRQ_URL, and --faults if it may be disturbed")
        })?;
        let mut server = OwnServer { child, site: Site::open_to_all(format!("redis://127.0.0.1:{port}")) };
        server.await_answer()?;
        Ok(server)
    }

    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Somebody else may have taken the port meanwhile: it has to be our child that answers.
    fn await_answer(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        while start.elapsed() < START && matches!(self.child.try_wait(), Ok(None)) {
            let info = Server::connect(&self.site).and_then(|mut server| server.info("server"));
            if info.is_ok_and(|info| number(&info, "process_id") == Some(self.child.id().into())) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(Failure::new(UNAVAILABLE, "the redis-server that was started does not answer"))
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
