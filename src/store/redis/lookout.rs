//! Finding out who has what: from the nodes of a cluster, or from sentinels. Blocks; each that is asked has a bounded
//! time, however many hang.

use std::time::Duration;

use super::connect::RedisOptions;
use super::slots::View;
use super::url::{Address, Layout};
use super::{cluster, sentinel};
use crate::store::StoreError;

/// What one of them may take, to connect and to answer. One that hangs costs so much once, then another is asked first.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);

/// Somebody who goes and asks.
pub(super) struct Lookout {
    options: RedisOptions,
    /// Who had the last good answer is asked first.
    good: Option<Address>,
    lines: sentinel::Lines,
    turn: usize,
}

impl Lookout {
    pub(super) fn new(options: RedisOptions) -> Self {
        Lookout { options, good: None, lines: sentinel::Lines::new(), turn: 0 }
    }

    /// `known`: the nodes there were; `epoch`: of the view that they are from.
    pub(super) fn look(&mut self, known: &[Address], epoch: Option<u64>) -> Result<View, StoreError> {
        let (view, told_by) = match self.options.layout().clone() {
            Layout::Single => {
                return Ok(View { epoch: 0, settled: true, parts: vec![(Address::AsGiven, vec![(0, 0)])] });
            }
            Layout::Cluster { seeds } => {
                let nodes = self.in_turn(known, &seeds);
                cluster::look(&self.options, &nodes, epoch.unwrap_or(0))
            }
            Layout::Sentinel { sentinels, .. } => {
                let nodes = self.in_turn(&[], &sentinels);
                sentinel::look(&self.options, &mut self.lines, &nodes, epoch)
            }
        }?;
        self.good = Some(told_by);
        Ok(view)
    }

    /// Asks everybody, and takes the newest view.
    pub(super) fn look_closely(&mut self) -> Result<View, StoreError> {
        self.look(&[], Some(u64::MAX)) // nobody has news of that
    }

    /// All that may be asked, each once: the good one, then the others, beginning with another one each time.
    fn in_turn(&mut self, known: &[Address], given: &[Address]) -> Vec<Address> {
        self.turn = self.turn.wrapping_add(1);
        let mut all: Vec<Address> = Vec::new();
        for node in known.iter().chain(given) {
            if !all.contains(node) {
                all.push(node.clone());
            }
        }
        if let Some(middle) = self.turn.checked_rem(all.len()) {
            all.rotate_left(middle);
        }
        if let Some(good) = all.iter().position(|node| Some(node) == self.good.as_ref()) {
            let good = all.remove(good);
            all.insert(0, good);
        }
        all
    }
}

type Told = (View, Address);

/// The newer of two views, or the one of who believes that all is well.
pub(super) fn better(best: Option<Told>, other: Told) -> Option<Told> {
    let rank = |told: &Told| (told.0.epoch, told.0.settled);
    match best {
        Some(best) if rank(&best) >= rank(&other) => Some(best),
        _ => Some(other),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::store::redis::Access;

    fn told(epoch: u64, settled: bool, by: u16) -> Told {
        (View { epoch, settled, parts: Vec::new() }, Address::at("h", by))
    }

    #[test]
    fn the_newest_view_is_believed() {
        let best = better(better(None, told(3, false, 1)), told(2, true, 2));
        let best = better(better(best, told(3, true, 3)), told(3, true, 4)).expect("one of them");
        assert_eq!(best.1, Address::at("h", 3));
    }

    #[test]
    fn each_is_asked_once_and_the_good_one_first() {
        let second = Duration::from_secs(1);
        let options = RedisOptions::parse("redis-cluster://h:1,h:2,h:3", Access::default(), (second, second), false)
            .expect("a URL");
        let mut lookout = Lookout::new(options);
        let nodes = |ports: &[u16]| ports.iter().map(|port| Address::at("h", *port)).collect::<Vec<_>>();
        assert_eq!(lookout.in_turn(&nodes(&[4, 1]), &nodes(&[1, 2])), nodes(&[1, 2, 4]));
        lookout.good = Some(Address::at("h", 2));
        assert_eq!(lookout.in_turn(&nodes(&[4, 1]), &nodes(&[1, 2])), nodes(&[2, 4, 1]));
        assert_eq!(lookout.in_turn(&[], &[]), []);
    }
}
