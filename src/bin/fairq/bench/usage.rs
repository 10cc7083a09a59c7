//! What a process uses of its machine.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use crate::clock;

/// Up to a moment; the difference of two is what was used between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub at_ns: u64,
    pub cpu_us: u64,
    /// Times at which a thread gave up its core, or had it taken away.
    pub switches: u64,
    /// Linux only.
    pub rss_bytes: Option<u64>,
    /// Linux only.
    pub threads: Option<u64>,
}

impl Usage {
    pub fn now() -> Usage {
        // SAFETY: getrusage fills the structure, which is plain data.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Usage {
            at_ns: clock::now_ns(),
            cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
            switches: usage.ru_nvcsw as u64 + usage.ru_nivcsw as u64,
            rss_bytes: field(&status, "VmRSS:").map(|kilobytes| kilobytes * 1024),
            threads: field(&status, "Threads:"),
        }
    }

    /// CPU and context switches for each of so many.
    pub fn per(&self, count: f64) -> PerGrant {
        let each = count.max(1.0);
        PerGrant { cpu_us: self.cpu_us as f64 / each, switches: self.switches as f64 / each }
    }
}

/// What the clients' processes spend on a grant: the asking, the waking, the release.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PerGrant {
    pub cpu_us: f64,
    pub switches: f64,
}

/// Counters of several processes.
impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b).or(a).or(b);
        Usage {
            at_ns: self.at_ns.max(other.at_ns),
            cpu_us: self.cpu_us + other.cpu_us,
            switches: self.switches + other.switches,
            rss_bytes: sum(self.rss_bytes, other.rss_bytes),
            threads: sum(self.threads, other.threads),
        }
    }
}

/// What was used since; memory and threads are what they are now.
impl Sub for Usage {
    type Output = Usage;

    fn sub(self, before: Usage) -> Usage {
        Usage {
            at_ns: self.at_ns.saturating_sub(before.at_ns),
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            switches: self.switches.saturating_sub(before.switches),
            ..self
        }
    }
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_status() {
        let status = "Name:\tx\nVmRSS:\t    1234 kB\nThreads:\t4\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "Threads:")), (Some(1234), Some(4)));
    }

    #[test]
    fn the_difference_is_shared_by_the_grants() {
        let before = Usage { at_ns: 10, cpu_us: 100, switches: 6, rss_bytes: Some(1), threads: Some(2) };
        let after = Usage { at_ns: 30, cpu_us: 500, switches: 10, rss_bytes: Some(5), threads: Some(3) };
        let used = after - before;
        assert_eq!((used.at_ns, used.cpu_us, used.switches, used.rss_bytes), (20, 400, 4, Some(5)));
        assert_eq!((used.per(4.0).cpu_us, used.per(4.0).switches), (100.0, 1.0));
        assert_eq!((before + after).threads, Some(5));
    }
}
