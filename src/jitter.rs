//! Randomness: names that cannot be guessed, and times that do not coincide.

use std::cell::Cell;
use std::time::Duration;

use crate::Error;

/// `2^bits` characters that need no escaping anywhere.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A name of 95 random bits, in 16 characters. The first is a letter: on a command line a `-` would begin an option.
pub(crate) fn random_name() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::Internal { detail: format!("the system has no random numbers: {e}") })?;
    bytes[0] &= 31;
    Ok(bytes.iter().map(|byte| ALPHABET[usize::from(byte & 63)] as char).collect())
}

/// A duration up to an eighth shorter, so that many clients do not act at once.
pub(crate) fn spread(duration: Duration) -> Duration {
    duration - duration.mul_f64(f64::from(roll()) / f64::from(u32::MAX) / 8.0)
}

thread_local! {
    static STATE: Cell<u64> = Cell::new(getrandom::u64().unwrap_or(1) | 1);
}

/// From here on this thread's jitter is the same each time.
#[cfg(test)]
pub(crate) fn seed(seed: u64) {
    STATE.set(seed | 1);
}

/// A number for which it is enough that no two threads have the same ones: xorshift, seeded by the system once a thread. To
/// ask the system each time would be a system call for each grant.
fn roll() -> u32 {
    STATE
        .try_with(|state| {
            let mut x = state.get();
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            state.set(x);
            (x >> 32) as u32
        })
        .unwrap_or(0) // in a thread that is ending; then nothing is spread
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_name_begins_with_a_letter() {
        let names = (0..1000).map(|_| random_name().expect("random bits"));
        assert!(names.into_iter().all(|name| name.len() == 16 && name.starts_with(|c: char| c.is_ascii_alphabetic())));
    }
}
