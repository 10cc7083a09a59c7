//! What time it is on the server. Each command says when it was sent: one that was stuck in the network for so long that its
//! instance was forgotten meanwhile is refused (`lua/lib/enter.lua`).

use std::time::{Duration, Instant};

use redis::{Connection, RedisResult};

/// Clocks drift apart, and are set.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// The server's clock, as a connection knows it.
#[derive(Clone, Copy)]
pub(super) struct ServerTime {
    micros: u64,
    at: Instant,
}

impl ServerTime {
    pub(super) fn ask(connection: &mut Connection) -> RedisResult<Self> {
        // As if it had come to the server at once: a command that takes no longer than this one did is not late.
        let at = Instant::now();
        connection.send_packed_command(&redis::cmd("TIME").get_packed_command())?;
        let (seconds, micros): (u64, u64) = redis::from_redis_value(connection.recv_response()?)?;
        Ok(ServerTime { micros: seconds * 1_000_000 + micros, at })
    }

    pub(super) fn is_old(&self) -> bool {
        self.at.elapsed() > GOOD_FOR
    }

    /// In microseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.micros + self.at.elapsed().as_micros() as u64
    }
}
