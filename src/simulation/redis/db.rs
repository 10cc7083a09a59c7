//! Keys and values, as far as the scripts can tell them from a real server's.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub(crate) type Bytes = Vec<u8>;

/// A score, in the order of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score(pub f64);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted {
    pub scores: BTreeMap<Bytes, f64>,
    pub order: BTreeSet<(Score, Bytes)>,
}

impl Sorted {
    /// True: the member is new.
    pub(super) fn add(&mut self, member: &Bytes, score: f64) -> bool {
        let old = self.scores.insert(member.clone(), score);
        if let Some(old) = old {
            self.order.remove(&(Score(old), member.clone()));
        }
        self.order.insert((Score(score), member.clone()));
        old.is_none()
    }

    pub(super) fn remove(&mut self, member: &Bytes) -> bool {
        let Some(score) = self.scores.remove(member) else { return false };
        self.order.remove(&(Score(score), member.clone()))
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Hash(BTreeMap<Bytes, Bytes>),
    Sorted(Sorted),
}

impl Data {
    fn is_empty(&self) -> bool {
        match self {
            Data::Hash(fields) => fields.is_empty(),
            Data::Sorted(sorted) => sorted.scores.is_empty(),
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    data: Data,
    /// When the key expires, in milliseconds of the wall clock.
    expires: Option<u64>,
}

/// A server's data. Clones are cheap, so that a state can be kept for a restart that loses the last writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Db {
    keys: BTreeMap<Bytes, Rc<Entry>>,
}

/// A key that holds something else.
pub(super) struct WrongType;

impl Db {
    pub(super) fn expire(&mut self, now_ms: u64) {
        if self.keys.values().any(|entry| entry.expires.is_some_and(|at| at <= now_ms)) {
            self.keys.retain(|_, entry| entry.expires.is_none_or(|at| at > now_ms));
        }
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        self.keys.remove(key).is_some()
    }

    pub(super) fn set_expiry(&mut self, key: &Bytes, at_ms: u64) -> bool {
        let Some(entry) = self.keys.get_mut(key) else { return false };
        Rc::make_mut(entry).expires = Some(at_ms);
        true
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&Data> {
        self.keys.get(key).map(|entry| &entry.data)
    }

    pub(super) fn hash(&self, key: &[u8]) -> Result<Option<&BTreeMap<Bytes, Bytes>>, WrongType> {
        match self.get(key) {
            None => Ok(None),
            Some(Data::Hash(fields)) => Ok(Some(fields)),
            Some(Data::Sorted(_)) => Err(WrongType),
        }
    }

    pub(super) fn sorted(&self, key: &[u8]) -> Result<Option<&Sorted>, WrongType> {
        match self.get(key) {
            None => Ok(None),
            Some(Data::Sorted(sorted)) => Ok(Some(sorted)),
            Some(Data::Hash(_)) => Err(WrongType),
        }
    }

    pub(super) fn change_hash<R>(
        &mut self,
        key: &Bytes,
        change: impl FnOnce(&mut BTreeMap<Bytes, Bytes>) -> R,
    ) -> Result<R, WrongType> {
        self.change(
            key,
            || Data::Hash(BTreeMap::new()),
            |data| match data {
                Data::Hash(fields) => Ok(change(fields)),
                Data::Sorted(_) => Err(WrongType),
            },
        )
    }

    pub(super) fn change_sorted<R>(
        &mut self,
        key: &Bytes,
        change: impl FnOnce(&mut Sorted) -> R,
    ) -> Result<R, WrongType> {
        self.change(
            key,
            || Data::Sorted(Sorted::default()),
            |data| match data {
                Data::Sorted(sorted) => Ok(change(sorted)),
                Data::Hash(_) => Err(WrongType),
            },
        )
    }

    /// A key comes to be with its first member, and goes with the last.
    fn change<R>(
        &mut self,
        key: &Bytes,
        new: impl FnOnce() -> Data,
        change: impl FnOnce(&mut Data) -> Result<R, WrongType>,
    ) -> Result<R, WrongType> {
        let entry = self.keys.entry(key.clone()).or_insert_with(|| Rc::new(Entry { data: new(), expires: None }));
        let entry = Rc::make_mut(entry);
        let result = change(&mut entry.data);
        if entry.data.is_empty() {
            self.keys.remove(key);
        }
        result
    }
}
