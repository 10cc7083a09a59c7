//! Randomness: names that cannot be guessed, and times that do not coincide.

use std::time::Duration;

use crate::Error;

/// `2^bits` characters that need no escaping anywhere.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A name of 96 random bits, in 16 characters.
pub(crate) fn random_name() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::Internal { detail: format!("the system has no random numbers: {e}") })?;
    Ok(bytes.iter().map(|byte| ALPHABET[usize::from(byte & 63)] as char).collect())
}

/// A duration up to an eighth shorter, so that many clients do not act at once.
pub(crate) fn spread(duration: Duration) -> Duration {
    // Without random numbers everything is still right, only less spread.
    let random = getrandom::u32().unwrap_or(0);
    duration - duration.mul_f64(f64::from(random) / f64::from(u32::MAX) / 8.0)
}
