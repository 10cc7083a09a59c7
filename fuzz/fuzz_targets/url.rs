//! Whatever is given for a URL is judged without connecting, and no password in it is shown: not by the client, nor in the error.
#![no_main]

use std::time::Duration;

use fairq::Client;
use fairq_fuzz::Input;
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "hUnTeR2";
const SCHEMES: [&str; 12] = [
    "redis://",
    "rediss://",
    "valkey://",
    "unix://",
    "redis+unix:///",
    "redis:",
    "redis:/",
    "http://",
    "",
    "redis-cluster://",
    "redis-sentinel://",
    "valkeys-cluster://",
];

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let url = match input.choose(4) {
        0 => String::from_utf8_lossy(input.rest()).into_owned(),
        1 => format!(
            "{}{}?{}={SECRET}&{}",
            input.pick(&SCHEMES),
            input.text(),
            input.pick(&["pass", "password", "sentinel_password"]),
            input.text()
        ),
        _ => format!(
            "{}{}:{}{SECRET}{}@{}",
            input.pick(&SCHEMES),
            input.text(),
            input.text(),
            input.text(),
            input.text()
        ),
    };
    if url.starts_with("memory:") {
        return; // names a world; has no password, and would be kept
    }
    let without_breaks = url.replace(['\t', '\r', '\n'], ""); // as it is parsed
    if without_breaks.matches(SECRET).count() > 1 {
        return; // the fuzzer has learnt it, and puts it anywhere
    }
    let timeout = Duration::from_millis(input.number().min(1 << 40));
    let shown = match Client::builder(&url).connect_timeout(timeout).io_timeout(timeout).open() {
        Ok(client) => format!("{client:?} {}", client.url()),
        Err(error) => format!("{error} {error:?}"),
    };
    let is_planted = url.contains(&format!("{SECRET}")) && !url.starts_with(SECRET);
    assert!(!is_planted || !shown.contains(SECRET) || is_no_place_for_one(&url), "{url:?} is shown as {shown}");
});

/// The whole is at our mercy in the first kind of input, where the secret may stand as the host, for instance.
fn is_no_place_for_one(url: &str) -> bool {
    let Some(at) = url.find(SECRET) else { return true };
    let before = &url[..at];
    let in_authority = url[at..].contains('@') && before.contains(':');
    let in_query =
        ["?pass=", "?password=", "&pass=", "&password=", "sentinel_password="].iter().any(|key| before.ends_with(key));
    !in_authority && !in_query
}
