//! What the server's errors mean for a call. The crate has no kind for most of them, and Redis 6.2 wraps those from
//! within a script, so the code is looked for in the text.

use redis::{ErrorKind, RedisError, ServerError, ServerErrorKind};

use crate::Error;
use crate::store::StoreError;

/// What to do about an error reply.
#[derive(Debug)]
pub(super) enum Fault {
    /// The script is not loaded: send its source.
    NoScript,
    /// The connection leads to the wrong server, or is of no use: find the right one anew.
    Reconnect(String),
    /// Another node of the cluster has to be asked.
    Redirect(Redirect),
    Store(StoreError),
}

/// Who has to be asked instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// The slot that has moved for good; none: only this call is sent there, with `ASKING` before it.
    pub moved: Option<u16>,
    /// An empty host means the one that said so.
    pub host: String,
    pub port: u16,
}

/// Codes of states that pass by themselves while the connection stays good.
const PASSING: [&str; 6] = ["LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "NOREPLICAS", "MISCONF"];
/// Codes that say that this is not the master.
const ELSEWHERE: [&str; 3] = ["READONLY", "MASTERDOWN", "UNBLOCKED"];

pub(super) fn of_reply(error: &ServerError) -> Fault {
    let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
    if error.kind() == Some(ServerErrorKind::NoScript) || error.code() == "NOSCRIPT" {
        return Fault::NoScript;
    }
    match redirect(error.code(), error.details().unwrap_or_default()) {
        Some(redirect) => Fault::Redirect(redirect),
        None => classify(error.code(), &text),
    }
}

/// `MOVED 3999 127.0.0.1:6381`, and the same with `ASK`.
fn redirect(code: &str, details: &str) -> Option<Redirect> {
    if !matches!(code, "MOVED" | "ASK") {
        return None;
    }
    let (slot, address) = details.split_once(' ')?;
    let (host, port) = address.trim().rsplit_once(':')?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let slot: u16 = slot.parse().ok()?;
    Some(Redirect { moved: (code == "MOVED").then_some(slot), host, port: port.parse().ok()? })
}

/// Whether the server says that another node of its cluster has to be asked, now or for good.
pub(super) fn is_redirect(error: &RedisError) -> bool {
    matches!(error.code(), Some("MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN"))
}

/// Whether an error's text tells of a state that passes by itself.
pub(super) fn will_pass(text: &str) -> bool {
    PASSING.iter().any(|word| wrapped(text, word))
}

fn classify(code: &str, text: &str) -> Fault {
    let says = |word: &str| code == word || wrapped(text, word);
    let detail = text.trim().to_owned();
    if ELSEWHERE.iter().any(|word| says(word)) || code == "ReadOnly" || text.contains("read only replica") {
        return Fault::Reconnect(detail);
    }
    if says("OOM") {
        return Fault::Store(StoreError::Full { detail });
    }
    if PASSING.iter().any(|word| says(word)) || text.contains("max number of clients") {
        return Fault::Store(StoreError::Busy { detail });
    }
    Fault::Store(StoreError::Fatal(fatal(code, text)))
}

/// The code of an error that happened within a script: `ERR Error running script (...): @user_script:1: -OOM ...`.
fn wrapped(text: &str, code: &str) -> bool {
    text.split_whitespace().any(|word| word.trim_start_matches('-') == code)
}

fn fatal(code: &str, text: &str) -> Error {
    let detail = text.trim();
    if code == "NOPERM" || text.contains("NOPERM") || text.contains("no permissions") {
        let hint = "give the user the rights that the README lists under \"Rights\"";
        return Error::Config { detail: format!("the server denies a right: {detail}; {hint}") };
    }
    if matches!(code, "WRONGPASS" | "NOAUTH") || text.contains("invalid username-password") {
        return Error::Config {
            detail: format!("the server wants another password: {detail}; see the URL, or the option password_file"),
        };
    }
    if code == "DENIED" {
        return Error::Config { detail: format!("the server lets nobody in from other machines: {detail}") };
    }
    if code == "WRONGTYPE" || text.contains("WRONGTYPE") {
        let hint = "a key under the limiter's name holds something else; choose another name, or delete the key";
        return Error::Config { detail: format!("{detail}; {hint}") };
    }
    if code == "FQFORMAT" {
        let hint = "let all processes have one version, or the newer ones another name for the limiter";
        return Error::Config { detail: format!("the limiter was {}; {hint}", detail.trim_start_matches("FQFORMAT ")) };
    }
    if code == "CROSSSLOT" || text.contains("CROSSSLOT") {
        return Error::Config { detail: format!("{detail}; a proxy rewrites the keys") };
    }
    Error::Server { detail: detail.to_owned() }
}

/// What an attempt to connect, or to ask anything before the first call, came to.
pub(super) fn of_connect(error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::InvalidClientConfig => StoreError::Fatal(Error::Config { detail: error.to_string() }),
        ErrorKind::Server(_) | ErrorKind::Extension => {
            let text = error.to_string();
            match classify(error.code().unwrap_or_default(), &text) {
                Fault::Store(StoreError::Fatal(error)) => StoreError::Fatal(error),
                _ => StoreError::away(text),
            }
        }
        _ => StoreError::away(error.to_string()),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn finds_the_code_within_a_script_error() {
        let wrapped =
            "ERR Error running script (call to f_1): @user_script:40: -OOM command not allowed when used memory";
        assert!(matches!(classify("ERR", wrapped), Fault::Store(StoreError::Full { .. })));
        let plain = "OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:40.";
        assert!(matches!(classify("OOM", plain), Fault::Store(StoreError::Full { .. })));
    }

    #[test]
    fn a_redirection_names_the_slot_and_the_node() {
        let moved = redirect("MOVED", "3999 127.0.0.1:6381").expect("a redirection");
        assert_eq!(moved, Redirect { moved: Some(3999), host: "127.0.0.1".into(), port: 6381 });
        let ask = redirect("ASK", "3999 [::1]:6381").expect("a redirection");
        assert_eq!(ask, Redirect { moved: None, host: "::1".into(), port: 6381 });
        assert_eq!(redirect("MOVED", "1 :6381").expect("a redirection").host, "");
        assert_eq!(redirect("MOVED", "nonsense"), None);
        assert_eq!(redirect("ERR", "1 127.0.0.1:6381"), None);
    }

    #[test]
    fn a_word_in_passing_is_no_code() {
        let text = "ERR user_script:3: attempt to index BUSYBODY";
        assert!(matches!(classify("ERR", text), Fault::Store(StoreError::Fatal(Error::Server { .. }))));
    }
}
