//! A limiter's keys, as they are read by whoever checks them.

use std::collections::BTreeMap;

use super::redis::db::{Bytes, Data, Db};
use crate::store::redis::test_access;

/// A ticket of a limiter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub ticket: String,
    /// Its order when it waits, its fence when it is held.
    pub score: u64,
    pub order: u64,
    pub cost: u64,
}

impl Entry {
    pub(super) fn owner(&self) -> &str {
        self.ticket.split_once(':').map_or("", |(owner, _)| owner)
    }
}

/// One limiter.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub exists: bool,
    pub epoch: u64,
    pub now: u64,
    pub skew: u64,
    /// The highest fence that it remembers.
    pub fence: u64,
    pub used: u64,
    pub limit: u64,
    pub paused: bool,
    pub grace: u64,
    pub calm: u64,
    pub sweeping: bool,
    pub queue: Vec<Entry>,
    pub held: Vec<Entry>,
    /// Without the permanent one.
    pub tickets: usize,
    /// Until when each counts as alive.
    pub instances: BTreeMap<String, u64>,
}

impl View {
    pub(super) fn of(db: &Db, limiter: &str) -> View {
        let [hash, queue, held, instances] = test_access::keys(limiter);
        let fields = hash_of(db, &hash);
        let Some(state) = fields.and_then(|fields| fields.get(b"state".as_slice())) else { return View::default() };
        let numbers: Vec<f64> =
            state.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("doubles"))).collect();
        let at = |index: usize| numbers[index] as u64;
        let entries = |key: &str| entries(db, key, fields);
        let is_ticket =
            |field: &&Bytes| field.contains(&b':') && !field.starts_with(b"i:") && !field.starts_with(b"d:");
        View {
            exists: true,
            epoch: at(11),
            now: at(0),
            skew: at(12),
            fence: at(2),
            used: at(3),
            limit: at(13),
            paused: at(17) != 0,
            grace: at(19),
            calm: at(20),
            sweeping: at(23) != 0,
            queue: entries(&queue),
            held: entries(&held),
            tickets: fields.map_or(0, |fields| fields.keys().filter(is_ticket).count()),
            instances: entries(&instances).into_iter().map(|entry| (entry.ticket, entry.score)).collect(),
        }
    }

    pub(super) fn holds(&self, ticket: &str, fence: u64) -> bool {
        self.held.iter().any(|entry| entry.ticket == ticket && entry.score == fence)
    }

    pub(super) fn cost_held(&self) -> u64 {
        self.held.iter().map(|entry| entry.cost).sum()
    }
}

fn hash_of<'a>(db: &'a Db, key: &str) -> Option<&'a BTreeMap<Bytes, Bytes>> {
    match db.get(key.as_bytes()) {
        Some(Data::Hash(fields)) => Some(fields),
        _ => None,
    }
}

fn entries(db: &Db, key: &str, records: Option<&BTreeMap<Bytes, Bytes>>) -> Vec<Entry> {
    let Some(Data::Sorted(sorted)) = db.get(key.as_bytes()) else { return Vec::new() };
    let members = sorted.order.iter().filter(|(_, member)| member != b".");
    let entry = |(score, member): &(super::redis::db::Score, Bytes)| {
        let record = records.and_then(|records| records.get(member)).map(|r| String::from_utf8_lossy(r).into_owned());
        let mut words = record.as_deref().unwrap_or("0").split(' ');
        Entry {
            ticket: String::from_utf8_lossy(member).into_owned(),
            score: score.0 as u64,
            order: order(words.next()),
            cost: words.next().map_or(1, |cost| cost.parse().unwrap_or(1)),
        }
    };
    members.map(entry).collect()
}

/// What stands before the fence.
fn order(word: Option<&str>) -> u64 {
    let hex = word.and_then(|word| word.split('=').next());
    hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0)
}
