//! One clock for all processes of a machine, so that what two of them saw can be put in order.

/// Nanoseconds of CLOCK_MONOTONIC. `std::time::Instant` reads the same clock but cannot be sent to another process.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; the clock exists on every system that Rust's std supports here.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Seconds between two readings; 0 when they are the wrong way round.
pub fn seconds(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e9
}
