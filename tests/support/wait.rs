//! Waiting for a condition, with a bound and a name.

use std::thread;
use std::time::{Duration, Instant};

/// A bound that no healthy machine reaches, however busy it is. Under a sanitizer everything takes several times as long.
pub const SOON: Duration = Duration::from_secs(if SLOW { 60 } else { 20 });

/// Everything takes several times as long, as under a sanitizer: fewer take part where somebody's silence counts.
pub const SLOW: bool = option_env!("FAIRQ_TEST_SLOW").is_some();

/// The pause between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(3);

/// Waits until `condition` holds; panics with `what` after `bound`.
#[track_caller]
pub fn eventually(what: &str, bound: Duration, mut condition: impl FnMut() -> bool) {
    eventually_some(what, bound, || condition().then_some(()));
}

/// Waits until `probe` has a value and returns it; panics with `what` after
/// `bound`. The probe runs at least once, and once more when time is up.
#[track_caller]
pub fn eventually_some<T>(what: &str, bound: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        let last_look = start.elapsed() >= bound;
        if let Some(value) = probe() {
            return value;
        }
        assert!(!last_look, "waited {bound:?} in vain until: {what}");
        thread::sleep(PAUSE);
    }
}
