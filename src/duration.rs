//! Durations as people write them: `500ms`, `30s`, `1m30s`, `2h`.

use std::time::Duration;

const UNITS: [(&str, u64); 6] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses a duration: one or more numbers with a unit (`us`, `ms`, `s`, `m`, `h`, `d`), largest first by custom.
///
/// Fractions are allowed (`1.5s`); a bare `0` needs no unit; `forever` is [`Duration::MAX`].
///
/// # Errors
/// A sentence that says what was expected.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(fairq::parse_duration("1m30s"), Ok(Duration::from_secs(90)));
/// assert_eq!(fairq::parse_duration("500ms"), Ok(Duration::from_millis(500)));
/// assert!(fairq::parse_duration("30").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    match trimmed {
        "" => return Err("a duration is empty: write for example 30s or 500ms".into()),
        "0" => return Ok(Duration::ZERO),
        "forever" => return Ok(Duration::MAX),
        _ => {}
    }
    let mut rest = trimmed;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (part, after) = parse_part(rest).map_err(|why| format!("{text:?} is not a duration: {why}"))?;
        total = total.checked_add(part).ok_or_else(|| format!("{text:?} is too long"))?;
        rest = after;
    }
    Ok(total)
}

fn parse_part(text: &str) -> Result<(Duration, &str), String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().map_err(|_| "it needs a number such as 30s or 500ms".to_string())?;
    let tail = &text[digits..];
    let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
    let unit = UNITS
        .iter()
        .find(|(name, _)| *name == &tail[..letters])
        .ok_or_else(|| "it needs a unit, one of us, ms, s, m, h, d".to_string())?;
    let part = Duration::try_from_secs_f64(number * (unit.1 as f64) / 1e9).map_err(|e| e.to_string())?;
    Ok((part, &tail[letters..]))
}

/// Writes a duration for people, with about three digits: `850us`, `12.3ms`, `4.5s`, `2m10s`, `3h05m`.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(fairq::format_duration(Duration::from_millis(12)), "12ms");
/// assert_eq!(fairq::format_duration(Duration::from_secs(130)), "2m10s");
/// ```
pub fn format_duration(duration: Duration) -> String {
    if duration == Duration::MAX {
        return "forever".into();
    }
    let secs = duration.as_secs();
    match secs {
        0 if duration.is_zero() => "0s".into(),
        0 if duration < Duration::from_millis(1) => format!("{}us", duration.as_micros()),
        0 => format!("{}ms", trim(duration.as_secs_f64() * 1e3)),
        1..=59 => format!("{}s", trim(duration.as_secs_f64())),
        60..=3599 => format!("{}m{:02}s", secs / 60, secs % 60),
        _ => format!("{}h{:02}m", secs / 3600, secs % 3600 / 60),
    }
}

fn trim(value: f64) -> String {
    let text = if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, ms) in [("0", 0), ("1.5s", 1500), ("2m", 120_000), ("1h1m1s", 3_661_000), (" 10s ", 10_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse_duration("forever"), Ok(Duration::MAX));
    }

    #[test]
    fn refuses_what_it_cannot_mean() {
        for text in ["", "5", "s", "-3s", "3x", "1..2s", "1s 2", "99999999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
