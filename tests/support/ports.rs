//! Ports for servers.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports below the ephemeral ones, and so is the cluster bus, 10,000 above.
const PORTS: std::ops::Range<u16> = 10_400..22_400;
/// How far above its port a node of a cluster has its bus.
const BUS: u16 = 10_000;

/// A port that nobody listens on at this moment. Test processes start at
/// different places, so that they seldom meet.
pub fn free_port(with_bus: bool) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = (std::process::id().wrapping_mul(37) % 65_536) as u16;
    for _ in PORTS {
        let step = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(start);
        let port = PORTS.start + step % (PORTS.end - PORTS.start);
        let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && (!with_bus || is_free(port + BUS)) {
            return port;
        }
    }
    panic!("no free port in {PORTS:?}")
}
