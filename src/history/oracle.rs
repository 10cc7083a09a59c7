//! What the writes alone tell: who held what, who waited, and whether that was right. Knows nothing of the model.

use std::collections::{BTreeMap, VecDeque};

use super::entry::{Entry, HELD, QUEUE, Write, number};
use crate::store::{Notice, Verb, Verdict};

#[derive(Clone, Copy, Debug)]
struct Hold {
    fence: u64,
    cost: u64,
}

/// A permit that was given.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub label: String,
    pub order: u64,
}

/// The limiter as its sorted sets tell.
pub(super) struct Oracle {
    limit: u64,
    held: BTreeMap<String, Hold>,
    queue: BTreeMap<String, u64>,
    /// They have just left the queue, in this order: those that are held next are admitted.
    leaving: VecDeque<String>,
    /// What was ever said of a ticket.
    costs: BTreeMap<String, u64>,
    labels: BTreeMap<String, String>,
    orders: BTreeMap<String, u64>,
    last_order: u64,
    last_fence: u64,
    /// By fence.
    pub grants: BTreeMap<u64, Grant>,
}

impl Oracle {
    pub(super) fn new(limit: u64) -> Self {
        Oracle {
            limit,
            held: BTreeMap::new(),
            queue: BTreeMap::new(),
            leaving: VecDeque::new(),
            costs: BTreeMap::new(),
            labels: BTreeMap::new(),
            orders: BTreeMap::new(),
            last_order: 0,
            last_fence: 0,
            grants: BTreeMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.queue.is_empty()
    }

    /// What an instance is told when it asks for it.
    pub(super) fn held_by(&self, instance: &str) -> Vec<Notice> {
        let prefix = format!("{instance}:");
        let of_it = self.held.range(prefix.clone()..).take_while(|(ticket, _)| ticket.starts_with(&prefix));
        of_it
            .map(|(ticket, hold)| Notice::Granted {
                no: number(&ticket[prefix.len()..]),
                fence: hold.fence,
                order: self.orders[ticket],
            })
            .collect()
    }

    /// Follows a row. `Err` says which promise was broken.
    pub(super) fn step(&mut self, entry: &Entry) -> Result<(), String> {
        self.learn(entry);
        match entry.script.as_str() {
            "-flush" => self.forget_all(),
            "-delete" => {} // the next script finds out, and unlinks the others
            _ => entry.writes.iter().try_for_each(|write| self.follow(entry, write))?,
        }
        self.leaving.clear(); // some were dead, or were taken out
        Ok(())
    }

    /// What the arguments say of tickets, and of the limit.
    fn learn(&mut self, entry: &Entry) {
        match entry.script.as_str() {
            "acquire" | "parcel" => {
                let calls = entry.calls();
                for (call, answer) in calls.iter().zip(entry.answers(&calls)) {
                    let Verb::Acquire { no, cost, label, .. } = &call.verb else { continue };
                    let ticket = format!("{}:{no}", entry.instance());
                    self.costs.insert(ticket.clone(), *cost);
                    self.labels.insert(ticket.clone(), label.to_string());
                    if let Verdict::Granted { order, .. } = answer.verdict {
                        self.orders.insert(ticket, order);
                    }
                }
            }
            "restore" => {
                for words in entry.own().chunks(6) {
                    self.costs.insert(words[1].clone(), number(&words[4]));
                    self.labels.insert(words[1].clone(), words[5].clone());
                    self.orders.entry(words[1].clone()).or_insert(number(&words[2]));
                }
            }
            "configure" => {
                self.limit = entry.own()[1].parse().unwrap_or(self.limit);
            }
            _ => {}
        }
    }

    fn follow(&mut self, entry: &Entry, write: &Write) -> Result<(), String> {
        match write {
            Write::Add { member, .. } if member == "." => {}
            Write::Add { place: QUEUE, member, score } => self.enqueue(entry, member, *score as u64)?,
            Write::Add { place: HELD, member, score } => self.hold(entry, member, *score as u64)?,
            Write::Remove { place: QUEUE, member } => {
                self.queue.remove(member).ok_or(format!("{member} left the queue, and was not in it"))?;
                self.leaving.push_back(member.clone());
            }
            Write::Remove { place: HELD, member } => {
                self.held.remove(member).ok_or(format!("{member} was given back, and not held"))?;
            }
            Write::Unlink => self.forget_all(),
            Write::Add { .. } | Write::Remove { .. } | Write::Publish { .. } => {}
        }
        Ok(())
    }

    fn forget_all(&mut self) {
        self.held.clear();
        self.queue.clear();
    }

    fn enqueue(&mut self, entry: &Entry, ticket: &str, order: u64) -> Result<(), String> {
        if self.held.contains_key(ticket) {
            return Err(format!("P2: {ticket} is held, and waits"));
        }
        if asks_for(entry, ticket) == Some(0) && order <= self.last_order {
            return Err(format!("P6: a newcomer has order {order}, after {}", self.last_order));
        }
        self.last_order = self.last_order.max(order);
        self.orders.insert(ticket.to_owned(), order);
        self.queue.insert(ticket.to_owned(), order);
        Ok(())
    }

    fn hold(&mut self, entry: &Entry, ticket: &str, fence: u64) -> Result<(), String> {
        if self.held.contains_key(ticket) {
            return Err(format!("P2: {ticket} is held, and granted again"));
        }
        let cost = self.costs[ticket];
        self.held.insert(ticket.to_owned(), Hold { fence, cost });
        let admitted = std::iter::from_fn(|| self.leaving.pop_front()).any(|leaving| leaving == ticket);
        match entry.script.as_str() {
            _ if admitted => {}
            _ if asks_for(entry, ticket).is_some() => {} // at once
            "restore" => return Ok(()),                  // it was granted before
            other => return Err(format!("{other} gave a permit to {ticket}, which did not wait")),
        }
        let used: u64 = self.held.values().map(|hold| hold.cost).sum();
        if used > self.limit {
            return Err(format!("P1: {ticket} was granted, and {used} of {} are held", self.limit));
        }
        if fence <= self.last_fence {
            return Err(format!("P5: fence {fence} after {}", self.last_fence));
        }
        self.last_fence = fence;
        let order = self.orders[ticket];
        if let Some((first, _)) = self.queue.iter().find(|(_, first)| **first < order) {
            return Err(format!("P6: {ticket} was granted before {first}"));
        }
        self.last_order = self.last_order.max(order);
        let label = self.labels[ticket].clone();
        self.grants.insert(fence, Grant { label, order });
        Ok(())
    }
}

/// The order from before that an acquire names; 0: it is new.
fn asks_for(entry: &Entry, ticket: &str) -> Option<u64> {
    entry.calls().iter().find_map(|call| match &call.verb {
        Verb::Acquire { no, order, .. } if format!("{}:{no}", entry.instance()) == ticket => Some(*order),
        _ => None,
    })
}
