//! A connection of the command's own, for what the library has no verb for: INFO, and the floors to measure against.

use std::collections::HashMap;
use std::time::Duration;

use fairq::ClientBuilder;
use hdrhistogram::Histogram;

use crate::clock;
use crate::exit::{Failure, SOFTWARE, USAGE};
use crate::site::Site;

const TIMEOUT: Duration = Duration::from_secs(5);

/// What scripts are called by, for the server's own count of them.
const SCRIPT_COMMANDS: [&str; 6] = ["eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro"];

pub struct Server {
    pub conn: redis::Connection,
    /// Which one it is, where a URL does not say so.
    pub address: String,
}

/// How often scripts ran, and how long the server spent on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scripts {
    pub calls: u64,
    pub usec: u64,
}

impl Server {
    /// The one server that the limiters live on.
    pub fn connect(site: &Site) -> Result<Server, Failure> {
        let all = Server::connect_all(site)?;
        let count = all.len();
        let only = all.into_iter().next().filter(|_| count == 1);
        only.ok_or_else(|| {
            Failure::new(USAGE, format!("there are {count} masters, where one is meant"))
                .hint("a single server, a cluster of one master, or a service behind sentinels")
        })
    }

    /// Every master that the limiters live on.
    pub fn connect_all(site: &Site) -> Result<Vec<Server>, Failure> {
        let all = fairq::bench_support::connect_all(&patient(site)?)?;
        Ok(all.into_iter().map(|(address, conn)| Server { conn, address }).collect())
    }

    /// One section of INFO, as names and values.
    pub fn info(&mut self, section: &str) -> Result<HashMap<String, String>, Failure> {
        let text: String = redis::cmd("INFO").arg(section).query(&mut self.conn)?;
        Ok(parse_info(&text))
    }

    /// The scripts that ran since the server's last reset of its statistics.
    pub fn scripts(&mut self) -> Result<Scripts, Failure> {
        Ok(count_scripts(&self.info("commandstats")?))
    }

    pub fn used_memory(&mut self) -> Result<u64, Failure> {
        let info = self.info("memory")?;
        number(&info, "used_memory").ok_or_else(|| Failure::new(SOFTWARE, "INFO memory has no used_memory"))
    }

    /// Of that, what connections take.
    pub fn connections_memory(&mut self) -> Result<u64, Failure> {
        Ok(number(&self.info("memory")?, "mem_clients_normal").unwrap_or(0))
    }

    /// What the server has computed since its start.
    pub fn cpu_seconds(&mut self) -> Result<f64, Failure> {
        let info = self.info("cpu")?;
        let seconds = |name: &str| info.get(name).and_then(|value| value.parse::<f64>().ok()).unwrap_or(0.0);
        Ok(seconds("used_cpu_user") + seconds("used_cpu_sys"))
    }

    /// Ends the connection that the server knows by this address.
    pub fn kill_client(&mut self, address: &str) -> Result<(), Failure> {
        Ok(redis::cmd("CLIENT").arg("KILL").arg("ADDR").arg(address).exec(&mut self.conn)?)
    }

    pub fn ping(&mut self) -> Result<(), Failure> {
        Ok(redis::cmd("PING").exec(&mut self.conn)?)
    }

    /// Loads a script and gives its digest.
    pub fn load(&mut self, script: &str) -> Result<String, Failure> {
        Ok(redis::cmd("SCRIPT").arg("LOAD").arg(script).query(&mut self.conn)?)
    }
}

/// For connections that are measured, or measure.
pub fn patient(site: &Site) -> Result<ClientBuilder, Failure> {
    Ok(site.builder()?.connect_timeout(TIMEOUT).io_timeout(TIMEOUT))
}

impl Scripts {
    pub fn since(self, before: Scripts) -> Scripts {
        Scripts { calls: self.calls.saturating_sub(before.calls), usec: self.usec.saturating_sub(before.usec) }
    }

    pub fn usec_per_call(self) -> f64 {
        self.usec as f64 / (self.calls.max(1)) as f64
    }
}

/// A number from INFO.
pub fn number(info: &HashMap<String, String>, name: &str) -> Option<u64> {
    info.get(name)?.parse().ok()
}

/// An empty histogram of nanoseconds up to a minute, exact to three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("constant bounds are valid")
}

/// How long each of `times` calls takes, in nanoseconds.
pub fn time_calls(times: usize, mut call: impl FnMut() -> Result<(), Failure>) -> Result<Histogram<u64>, Failure> {
    let mut taken = histogram();
    for _ in 0..times {
        let start = clock::now_ns();
        call()?;
        taken.saturating_record(clock::now_ns() - start);
    }
    Ok(taken)
}

fn parse_info(text: &str) -> HashMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.trim_end().split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn count_scripts(commandstats: &HashMap<String, String>) -> Scripts {
    let mut sum = Scripts::default();
    for command in SCRIPT_COMMANDS {
        if let Some(stats) = commandstats.get(&format!("cmdstat_{command}")) {
            sum.calls += stat(stats, "calls");
            sum.usec += stat(stats, "usec");
        }
    }
    sum
}

/// One number from `calls=1,usec=27,usec_per_call=27.00,…`.
fn stat(stats: &str, name: &str) -> u64 {
    let mut fields = stats.split(',').filter_map(|field| field.split_once('='));
    fields.find(|(field, _)| *field == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_scripts_however_they_are_called() {
        let text = "# Commandstats\r\ncmdstat_evalsha:calls=3,usec=30,usec_per_call=10.00\r\n\
                    cmdstat_evalsha_ro:calls=1,usec=2,usec_per_call=2.00\r\ncmdstat_get:calls=9,usec=9\r\n";
        assert_eq!(count_scripts(&parse_info(text)), Scripts { calls: 4, usec: 32 });
    }
}
