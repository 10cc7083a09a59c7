//! The Lua scripts, composed once: a line `--@include NAME` stands for the part `lua/lib/NAME.lua`.

use crate::process::Made;
use crate::store::{Call, Verb};

/// A script as the server knows it.
pub(super) struct Script {
    pub name: &'static str,
    /// As its file says it.
    #[cfg(all(test, not(loom)))]
    text: &'static str,
    pub source: String,
    /// SHA-1 of the source, in hex.
    pub sha: String,
}

const PARTS: [(&str, &str); 19] = [
    ("load", include_str!("../../../lua/lib/load.lua")),
    ("config", include_str!("../../../lua/lib/config.lua")),
    ("expect", include_str!("../../../lua/lib/expect.lua")),
    ("enter", include_str!("../../../lua/lib/enter.lua")),
    ("caller", include_str!("../../../lua/lib/caller.lua")),
    ("write", include_str!("../../../lua/lib/write.lua")),
    ("flush", include_str!("../../../lua/lib/flush.lua")),
    ("whole", include_str!("../../../lua/lib/whole.lua")),
    ("look", include_str!("../../../lua/lib/look.lua")),
    ("renew", include_str!("../../../lua/lib/renew.lua")),
    ("record", include_str!("../../../lua/lib/record.lua")),
    ("remind", include_str!("../../../lua/lib/remind.lua")),
    ("dispatch", include_str!("../../../lua/lib/dispatch.lua")),
    ("ask", include_str!("../../../lua/lib/ask.lua")),
    ("free", include_str!("../../../lua/lib/free.lua")),
    ("withdraw", include_str!("../../../lua/lib/withdraw.lua")),
    ("reply", include_str!("../../../lua/lib/reply.lua")),
    ("finish", include_str!("../../../lua/lib/finish.lua")),
    ("ticket", include_str!("../../../lua/lib/ticket.lua")),
];

macro_rules! scripts {
    ($($constant:ident = $file:literal),* $(,)?) => {
        $(pub(super) static $constant: Made<Script> =
            Made::new(|| Script::new($file, include_str!(concat!("../../../lua/", $file, ".lua"))));)*

        pub(super) fn all() -> Vec<&'static Script> {
            vec![$(&$constant),*]
        }
    };
}

scripts! {
    ACQUIRE = "acquire",
    RELEASE = "release",
    CANCEL = "cancel",
    PARCEL = "parcel",
    PUT_BACK = "put_back",
    SYNC = "sync",
    RESTORE = "restore",
    CONFIGURE = "configure",
    REVOKE = "revoke",
    LEAVE = "leave",
    STATUS = "status",
    LIST = "list",
    POSITION = "position",
    SELFTEST = "selftest",
}

impl Script {
    fn new(name: &'static str, text: &'static str) -> Self {
        let source = compose(text);
        #[cfg(all(test, not(loom)))]
        let source = crate::history::recorded(name, source);
        let sha = redis::Script::new(&source).get_hash().to_owned();
        Script {
            name,
            #[cfg(all(test, not(loom)))]
            text,
            source,
            sha,
        }
    }

    /// The commands it calls, each once.
    pub(super) fn commands(&self) -> std::collections::BTreeSet<&str> {
        let calls = self.source.split("call('").skip(1).chain(self.source.split("try('").skip(1));
        calls.filter_map(|rest| rest.split('\'').next()).collect()
    }

    /// One for a call, another for several.
    pub(super) fn for_calls(calls: &[&Call]) -> &'static Script {
        match calls {
            [call] => Script::of(&call.verb),
            _ => &PARCEL,
        }
    }

    pub(super) fn of(verb: &Verb) -> &'static Script {
        match verb {
            Verb::Acquire { .. } => &ACQUIRE,
            Verb::Release(_) => &RELEASE,
            Verb::Cancel(_) => &CANCEL,
            Verb::PutBack { .. } => &PUT_BACK,
            Verb::Sync { .. } => &SYNC,
            Verb::Restore(_) => &RESTORE,
            Verb::Configure(_) => &CONFIGURE,
            Verb::Revoke(_) => &REVOKE,
            Verb::Leave => &LEAVE,
            Verb::Status => &STATUS,
            Verb::List { .. } => &LIST,
            Verb::Position(_) => &POSITION,
        }
    }
}

fn compose(text: &str) -> String {
    compose_of(text, &|name| part(name))
}

/// Puts the parts in their places. Comments and blank lines stay here: the server need not keep them.
fn compose_of<'a>(text: &str, part: &dyn Fn(&str) -> &'a str) -> String {
    let mut source = String::new();
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("--@include ") {
            Some(name) => source.push_str(&compose_of(part(name), part)),
            None if line.is_empty() || line.starts_with("--") => {}
            None => {
                source.push_str(line);
                source.push('\n');
            }
        }
    }
    source
}

/// The files that the scripts are made of, with what is in them.
#[cfg(all(test, not(loom)))]
pub(crate) fn files() -> Vec<(String, &'static str)> {
    let parts = PARTS.iter().map(|(name, text)| (format!("lib/{name}"), *text));
    all().into_iter().map(|script| (script.name.to_owned(), script.text)).chain(parts).collect()
}

/// Every script as it is, and as it would be with another text in one of the files.
#[cfg(all(test, not(loom)))]
pub(crate) fn with_other(file: &str, text: &str) -> Vec<(String, String)> {
    let other = |name: &str| if file.strip_prefix("lib/") == Some(name) { text } else { part(name) };
    let changed = |script: &Script| compose_of(if script.name == file { text } else { script.text }, &other);
    all().into_iter().map(|script| (script.source.clone(), changed(script))).collect()
}

fn part(name: &str) -> &'static str {
    let found = PARTS.iter().find(|(part, _)| *part == name);
    found.unwrap_or_else(|| panic!("a script includes {name:?}, and lua/lib has no such part")).1
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_script_finds_its_parts() {
        for script in all() {
            assert!(!script.source.contains("@include"), "{}", script.name);
            assert!(script.source.contains("return"), "{}", script.name);
        }
    }

    /// The self-test has to try every command that the scripts call, or a missing right would show too late.
    #[test]
    fn the_self_test_tries_every_command() {
        let tried = SELFTEST.commands();
        for script in all() {
            let missing: Vec<_> = script.commands().difference(&tried).copied().collect();
            assert!(missing.is_empty(), "{} calls {missing:?}", script.name);
        }
    }
}
