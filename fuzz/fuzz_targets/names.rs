//! Names of limiters: each has five keys of its own with one hash tag, which lead back to it, and to nobody else.
#![no_main]

use fairq::fuzzing::{keys_of, limiter_in};
use fairq_fuzz::Input;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let one = input.text();
    let other = input.text();
    if one.is_empty() || other.is_empty() {
        return;
    }
    let (keys, others) = (keys_of(&one), keys_of(&other));
    for key in &keys {
        assert_eq!(tag(key), tag(&keys[0]));
        assert_eq!(others.contains(key), one == other, "{one:?} and {other:?} share {key:?}");
    }
    assert_eq!(limiter_in(&keys[0]).as_ref(), Some(&one));
    assert!(keys[1..].iter().all(|key| limiter_in(key).is_none()));

    // A key of somebody else's that looks like one of ours is not taken for one that it is not.
    let foreign = format!("fq:{{{}}}", String::from_utf8_lossy(input.rest()));
    for key in [&foreign, &one] {
        if let Some(name) = limiter_in(key) {
            assert_eq!(&keys_of(&name)[0], key, "{key:?} is taken for a key of {name:?}");
        }
    }
});

/// What a cluster makes the slot of: between the first `{` and the next `}`.
fn tag(key: &str) -> &str {
    let (_, after) = key.split_once('{').expect("a brace");
    let (tag, _) = after.split_once('}').expect("its fellow");
    assert!(!tag.is_empty(), "an empty tag is none");
    tag
}
