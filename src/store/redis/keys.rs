//! The names of keys and channels.

use std::borrow::Cow;

/// What is behind the braces of the four keys of a limiter, in the order in which the scripts take them.
pub(super) const PARTS: [&str; 4] = ["", ":queue", ":held", ":instances"];

/// The keys of a limiter. They share one hash tag, so that they live in one cluster slot.
pub(super) fn keys_of(limiter: &str) -> [String; 4] {
    let tag = hash_tag(limiter);
    PARTS.map(|part| format!("fq:{{{tag}}}{part}"))
}

/// What decides about the slot of all these keys: it stands between their braces.
pub(super) fn hash_tag(limiter: &str) -> Cow<'_, str> {
    encode(limiter)
}

/// The channel on which an instance hears what was granted to it.
pub(super) fn channel_of(instance: &str) -> String {
    format!("fq:{instance}")
}

/// A pattern that matches the hashes of all limiters, and nothing else of ours.
pub(super) const ALL_LIMITERS: &str = "fq:{*}";

/// The limiter's name in its hash key. What is written otherwise than we do is a key of somebody else's.
pub(super) fn limiter_in(key: &str) -> Option<String> {
    let encoded = key.strip_prefix("fq:{")?.strip_suffix('}')?;
    let name = encoded.replace("%7D", "}").replace("%7B", "{").replace("%25", "%");
    (encode(&name) == encoded).then_some(name)
}

/// Braces in a name must not move its slot, and no two names may share a key.
fn encode(name: &str) -> Cow<'_, str> {
    if !name.contains(['%', '{', '}']) {
        return name.into();
    }
    name.replace('%', "%25").replace('{', "%7B").replace('}', "%7D").into()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// S42: whatever the name, its keys have one tag, and lead back to it.
        #[test]
        fn names_survive_their_keys(name in "[a-z{}%:é 257BD]{1,40}") {
            let [hash, queue, ..] = keys_of(&name);
            prop_assert_eq!(limiter_in(&hash), Some(name));
            prop_assert_eq!(hash.matches('{').count(), 1);
            prop_assert_eq!(hash.matches('}').count(), 1);
            prop_assert!(queue.starts_with(&hash));
            prop_assert_eq!(limiter_in(&queue), None);
        }
    }

    #[test]
    fn keys_that_are_not_ours_have_no_name() {
        for key in ["fq:{%}", "fq:{%41}", "fq:{%7d}", "fq:{a}b}", "fq:{a{b}", "fq:{a}:queue", "fq:a", "x"] {
            assert_eq!(limiter_in(key), None, "{key}");
        }
    }
}
