//! An ordered set for what mostly comes in order: numbers that only grow, of which any may go again. A tree of few entries
//! would take memory for a node and give it back with every second visitor; here a place is one at the end of a list.

use std::collections::VecDeque;

/// So many dead entries are borne in any case.
const BORNE: usize = 32;

/// The set. Who leaves stays as a dead entry, until those at the ends can be dropped, or the dead are in the majority.
#[derive(Debug)]
pub(crate) struct Lane<K> {
    /// Ascending.
    entries: VecDeque<Entry<K>>,
    live: usize,
}

#[derive(Debug)]
struct Entry<K> {
    key: K,
    live: bool,
}

impl<K> Default for Lane<K> {
    fn default() -> Self {
        Lane { entries: VecDeque::new(), live: 0 }
    }
}

impl<K: Ord> Lane<K> {
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Takes it in, if it is not there.
    pub(crate) fn insert(&mut self, key: K) {
        let at = match self.entries.back() {
            Some(last) if last.key >= key => self.entries.partition_point(|entry| entry.key < key),
            _ => self.entries.len(),
        };
        match self.entries.get_mut(at) {
            Some(entry) if entry.key == key => {
                self.live += usize::from(!entry.live);
                entry.live = true;
            }
            Some(_) => {
                self.entries.insert(at, Entry { key, live: true });
                self.live += 1;
            }
            None => {
                self.entries.push_back(Entry { key, live: true });
                self.live += 1;
            }
        }
    }

    /// Takes it out. False: it was not there.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        let Some(entry) = self.find(key).and_then(|at| self.entries.get_mut(at)) else { return false };
        entry.live = false;
        self.live -= 1;
        self.tidy_up();
        true
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.find(key).is_some()
    }

    /// In order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().filter(|entry| entry.live).map(|entry| &entry.key)
    }

    /// In order, from this one or the first behind it.
    pub(crate) fn starting_at(&self, key: &K) -> impl Iterator<Item = &K> {
        let at = self.entries.partition_point(|entry| entry.key < *key);
        self.entries.range(at..).filter(|entry| entry.live).map(|entry| &entry.key)
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.live = 0;
    }

    fn find(&self, key: &K) -> Option<usize> {
        let last = self.entries.len().checked_sub(1)?;
        let at = match self.entries[last].key == *key {
            true => last,
            false => self.entries.binary_search_by(|entry| entry.key.cmp(key)).ok()?,
        };
        self.entries[at].live.then_some(at)
    }

    fn tidy_up(&mut self) {
        while self.entries.back().is_some_and(|entry| !entry.live) {
            self.entries.pop_back();
        }
        while self.entries.front().is_some_and(|entry| !entry.live) {
            self.entries.pop_front();
        }
        // Half of all at least, so that each removal pays for one entry or two.
        if self.entries.len() > 2 * self.live + BORNE {
            self.entries.retain(|entry| entry.live);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_tree_would(deeds in prop::collection::vec((any::<bool>(), 0..200_u8), 0..1000)) {
            let (mut lane, mut tree) = (Lane::default(), BTreeSet::new());
            for (comes, key) in deeds {
                prop_assert_eq!(lane.contains(&key), tree.contains(&key));
                if comes {
                    lane.insert(key);
                    tree.insert(key);
                } else {
                    prop_assert_eq!(lane.remove(&key), tree.remove(&key));
                }
                prop_assert_eq!((lane.len(), lane.is_empty()), (tree.len(), tree.is_empty()));
                prop_assert!(lane.starting_at(&key).eq(tree.range(key..)));
                prop_assert!(lane.entries.len() <= 2 * lane.live + BORNE);
            }
            prop_assert!(lane.iter().eq(tree.iter()));
        }
    }

    /// The oldest stays while others come and go: the list does not grow with them.
    #[test]
    fn who_stays_does_not_hold_on_to_those_who_went() {
        let mut lane = Lane::default();
        lane.insert(0);
        for key in 1..10_000 {
            lane.insert(key);
            if key % 100 > 0 {
                assert!(lane.remove(&key));
            }
        }
        assert_eq!(lane.len(), 100);
        assert!(lane.entries.len() <= 2 * 100 + BORNE);
    }
}
