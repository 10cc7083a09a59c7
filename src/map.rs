//! The hash map of the hot paths. Its keys are numbers and names that the process has made itself, or limiters' names, of
//! which a process has few; the standard library's hash, which withstands whoever chooses keys to collide, was a quarter
//! of the instructions of an acquire in memory.

#[cfg(not(loom))]
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// A search has to meet the same order each time.
#[cfg(loom)]
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::FixedState>;
