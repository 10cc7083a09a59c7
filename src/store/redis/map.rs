//! Which node a limiter lives on, as far as is known. No I/O, and no lock.

use std::sync::Arc;

use super::node::Node;
use super::slots::{SLOTS, View, slot_of};
use super::url::{Address, Layout};

const NOBODY: u16 = u16::MAX;

/// The nodes, and who of them owns each slot.
pub(super) struct Map {
    nodes: Vec<Arc<Node>>,
    /// For each slot an index of `nodes`. One slot only, when all limiters live on one server.
    owners: Vec<u16>,
    /// Of the view it is from; none: nothing is known yet.
    pub epoch: Option<u64>,
    /// Slots that have moved since that view, as nodes said. The engine hears of them with the next.
    mended: Vec<u16>,
    /// No node is opened any more.
    pub closed: bool,
}

/// What a new view has changed.
pub(super) struct Changes {
    /// For each slot, whether it has a new owner.
    moved: Vec<bool>,
    /// They own nothing any more.
    pub gone: Vec<Arc<Node>>,
}

impl Changes {
    pub(super) fn any(&self) -> bool {
        self.moved.contains(&true)
    }

    pub(super) fn concern(&self, limiter: &str) -> bool {
        self.moved[index_of(limiter, self.moved.len())]
    }
}

fn index_of(limiter: &str, slots: usize) -> usize {
    if slots == 1 { 0 } else { usize::from(slot_of(limiter)) }
}

impl Map {
    pub(super) fn new(layout: &Layout) -> Self {
        match layout {
            Layout::Single => {
                let nodes = vec![Arc::new(Node::new(Address::AsGiven))];
                Map { nodes, owners: vec![0], epoch: Some(0), mended: Vec::new(), closed: false }
            }
            Layout::Sentinel { .. } => Map::unknown(1),
            Layout::Cluster { .. } => Map::unknown(SLOTS),
        }
    }

    fn unknown(slots: u16) -> Self {
        let owners = vec![NOBODY; usize::from(slots)];
        Map { nodes: Vec::new(), owners, epoch: None, mended: Vec::new(), closed: false }
    }

    pub(super) fn owner(&self, limiter: &str) -> Option<&Arc<Node>> {
        self.nodes.get(usize::from(self.owners[index_of(limiter, self.owners.len())]))
    }

    pub(super) fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// Those that own something.
    pub(super) fn masters(&self) -> Vec<Address> {
        let owns = |index: usize| self.owners.iter().any(|owner| usize::from(*owner) == index);
        let masters = self.nodes.iter().enumerate().filter(|(index, _)| owns(*index));
        masters.map(|(_, node)| node.address.clone()).collect()
    }

    /// The node at an address, known or new.
    pub(super) fn node_at(&mut self, address: &Address) -> Arc<Node> {
        if let Some(node) = self.nodes.iter().find(|node| node.address == *address) {
            return node.clone();
        }
        let node = Arc::new(Node::new(address.clone()));
        if self.closed {
            node.retire();
        }
        self.nodes.push(node.clone());
        node
    }

    /// A node says that a slot has moved to another one, which is among ours.
    pub(super) fn move_slot(&mut self, slot: u16, to: &Arc<Node>) {
        let Some(index) = self.index_of(to) else { return };
        if let Some(owner) = self.owners.get_mut(usize::from(slot))
            && std::mem::replace(owner, index) != index
            && !self.mended.contains(&slot)
        {
            self.mended.push(slot);
        }
    }

    fn index_of(&self, node: &Arc<Node>) -> Option<u16> {
        let index = self.nodes.iter().position(|other| Arc::ptr_eq(other, node))?;
        u16::try_from(index).ok()
    }

    /// Takes over a view.
    pub(super) fn learn(&mut self, view: &View) -> Changes {
        let old_owners: Vec<Option<Arc<Node>>> =
            self.owners.iter().map(|owner| self.nodes.get(usize::from(*owner)).cloned()).collect();
        let mut kept = Vec::with_capacity(view.parts.len());
        self.owners.fill(NOBODY);
        for (index, (address, ranges)) in (0..NOBODY).zip(&view.parts) {
            kept.push(self.node_at(address));
            for slot in ranges.iter().flat_map(|(first, last)| *first..=*last) {
                if let Some(owner) = self.owners.get_mut(usize::from(slot)) {
                    *owner = index;
                }
            }
        }
        let known = |nodes: &[Arc<Node>], node: &Arc<Node>| nodes.iter().any(|other| Arc::ptr_eq(other, node));
        let mut gone = std::mem::replace(&mut self.nodes, kept);
        gone.retain(|node| !known(&self.nodes, node));
        self.epoch = Some(view.epoch);
        let now = self.owners.iter().map(|owner| self.nodes.get(usize::from(*owner)));
        let moved = old_owners.iter().zip(now).map(|(was, is)| match (was, is) {
            (Some(was), Some(is)) => !Arc::ptr_eq(was, is),
            (None, None) => false,
            _ => true,
        });
        let mut moved: Vec<bool> = moved.collect();
        for slot in std::mem::take(&mut self.mended) {
            moved[usize::from(slot)] = true;
        }
        Changes { moved, gone }
    }

    /// A limiter's name of which the keys live on this node; none when it owns nothing.
    pub(super) fn name_on(&self, node: &Arc<Node>, prefix: &str) -> Option<String> {
        let index = self.index_of(node)?;
        if !self.owners.contains(&index) {
            return None;
        }
        // A node with a single slot needs SLOTS attempts on average; twenty times as many fail once in e^20.
        let mut names = (0..20 * u32::from(SLOTS)).map(|number| format!("{prefix}{number}"));
        names.find(|name| self.owners[index_of(name, self.owners.len())] == index)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn map() -> Map {
        Map::new(&Layout::Cluster { seeds: Vec::new() })
    }

    fn view(parts: &[(u16, &[(u16, u16)])]) -> View {
        let parts = parts.iter().map(|(port, ranges)| (Address::at("h", *port), ranges.to_vec())).collect();
        View { epoch: 1, settled: true, parts }
    }

    #[test]
    fn a_view_tells_what_has_moved_and_who_is_gone() {
        let mut map = map();
        assert!(map.owner("foo").is_none() && map.masters().is_empty());
        assert!(map.learn(&view(&[(1, &[(0, 9_999)]), (2, &[(10_000, 16_383)])])).concern("foo"));
        let (one, two) = (map.node_at(&Address::at("h", 1)), map.node_at(&Address::at("h", 2)));
        assert!(Arc::ptr_eq(map.owner("foo").expect("an owner"), &two), "its slot is 12182");
        let changes = map.learn(&view(&[(3, &[(12_182, 12_182)]), (1, &[(0, 12_181), (12_183, 16_383)])]));
        assert!(changes.any() && changes.concern("foo"));
        assert!(changes.gone.len() == 1 && Arc::ptr_eq(&changes.gone[0], &two));
        assert!(Arc::ptr_eq(&map.node_at(&Address::at("h", 1)), &one), "it is still the same");
        let again = map.learn(&view(&[(3, &[(12_182, 12_182)]), (1, &[(0, 12_181), (12_183, 16_383)])]));
        assert!(!again.any() && again.gone.is_empty());
    }

    #[test]
    fn a_slot_that_has_moved_belongs_to_another() {
        let mut map = map();
        map.learn(&view(&[(1, &[(0, 16_383)])]));
        let stranger = map.node_at(&Address::at("h", 9));
        assert!(map.name_on(&stranger, "x").is_none(), "it owns nothing yet");
        map.move_slot(12_182, &stranger);
        assert!(Arc::ptr_eq(map.owner("foo").expect("an owner"), &stranger));
        let name = map.name_on(&stranger, "x").expect("a name in its one slot");
        assert_eq!(slot_of(&name), 12_182);
        let agrees = view(&[(9, &[(12_182, 12_182)]), (1, &[(0, 12_181), (12_183, 16_383)])]);
        assert!(map.learn(&agrees).concern("foo"), "the engine has not heard of it yet");
        assert!(!map.learn(&agrees).any());
    }
}
