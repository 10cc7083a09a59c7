//! The Lua scripts, composed at compile time: a verb's own file behind the parts that all share.

use once_cell::sync::Lazy;

use crate::store::Verb;

/// A script as the server knows it.
pub(super) struct Script {
    pub name: &'static str,
    pub source: &'static str,
    /// SHA-1 of the source, in hex.
    pub sha: String,
}

macro_rules! scripts {
    ($($constant:ident = $file:literal),* $(,)?) => {
        $(pub(super) static $constant: Lazy<Script> = Lazy::new(|| {
            const SOURCE: &str = concat!(
                include_str!("../../../lua/lib/state.lua"),
                include_str!("../../../lua/lib/config.lua"),
                include_str!("../../../lua/lib/enter.lua"),
                include_str!("../../../lua/lib/dispatch.lua"),
                include_str!(concat!("../../../lua/", $file, ".lua")),
            );
            Script { name: $file, source: SOURCE, sha: sha_of(SOURCE) }
        });)*
    };
}

scripts! {
    ACQUIRE = "acquire",
    RELEASE = "release",
    CANCEL = "cancel",
    PUT_BACK = "put_back",
    SYNC = "sync",
    RESTORE = "restore",
    CONFIGURE = "configure",
    REVOKE = "revoke",
    LEAVE = "leave",
    STATUS = "status",
    LIST = "list",
    POSITION = "position",
}

/// Stands alone: it shares nothing with the others but their commands.
pub(super) static SELFTEST: Lazy<Script> = Lazy::new(|| {
    const SOURCE: &str = include_str!("../../../lua/selftest.lua");
    Script { name: "selftest", source: SOURCE, sha: sha_of(SOURCE) }
});

fn sha_of(source: &str) -> String {
    redis::Script::new(source).get_hash().to_owned()
}

impl Script {
    pub(super) fn of(verb: &Verb) -> &'static Script {
        match verb {
            Verb::Acquire { .. } => &ACQUIRE,
            Verb::Release(_) => &RELEASE,
            Verb::Cancel(_) => &CANCEL,
            Verb::PutBack(_) => &PUT_BACK,
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
