//! The verbs, one function each; every one is also a script of the same name in `lua/`.

use super::enter::{Needs, Renewal};
use super::*;
use crate::settings::Change;
use crate::store::{Few, RestoreKind, Restored, Row, Standing, StatusView, Synced, Was};

impl Model {
    pub(super) fn verb(&mut self, caller: &Caller, header: &Header, verb: &Verb, wall: u64) -> Verdict {
        if let Verb::Position(tickets) = verb {
            return self.position(caller, tickets);
        }
        let needs = Needs {
            strict: matches!(verb, Verb::Acquire { .. } | Verb::PutBack { .. } | Verb::Sync { .. }),
            joins: match verb {
                Verb::Acquire { .. } | Verb::Sync { .. } | Verb::Restore(_) => true,
                Verb::Cancel(_) => header.bare,
                _ => false,
            },
        };
        if let Err(verdict) = self.enter(caller, header, &needs, wall) {
            return *verdict;
        }
        let id = |no: TicketNo| TicketId { instance: caller.instance.clone(), no };
        match verb {
            Verb::Acquire { no, cost, may_wait, order, label } => {
                self.acquire(id(*no), *cost, *may_wait, *order, label)
            }
            Verb::Release(pairs) => self.release(pairs.iter().map(|(no, fence)| (id(*no), *fence))),
            Verb::Cancel(tickets) => self.cancel(tickets.iter().map(|no| id(*no))),
            Verb::PutBack { no, fence } => self.put_back(&id(*no), *fence),
            Verb::Sync { version, heads, .. } => self.sync(caller, *version, heads.iter().map(|no| id(*no))),
            Verb::Restore(tickets) => self.restore(caller, header, tickets),
            Verb::Configure(change) => self.configure(change),
            Verb::Revoke(ticket) => self.revoke(ticket),
            Verb::Leave => self.leave(caller),
            Verb::Status => self.status(),
            Verb::List { held, offset, count } => self.list(*held, *offset as usize, *count as usize),
            Verb::Position(tickets) => self.position(caller, tickets),
        }
    }

    fn acquire(&mut self, id: TicketId, cost: u64, may_wait: bool, old_order: u64, label: &Label) -> Verdict {
        if self.tickets.contains_key(&id) {
            self.dispatch();
            return self.ticket_verdict(&id);
        }
        if self.impossible(cost) {
            self.dispatch();
            return Verdict::Impossible { limit: self.settings().limit };
        }
        if !self.has_room(cost) {
            self.dispatch(); // the dead may be taking the room
            if !self.has_room(cost) {
                let max_queue = self.settings().max_queue;
                return Verdict::Full { waiting: self.waiting(), max_queue, retry_after: self.estimate(1) };
            }
        }
        let order = if old_order != 0 { old_order } else { (self.order + 1).max(self.now) };
        self.order = self.order.max(order);
        if self.admits_at_once(cost) {
            // What an enqueue and the dispatch behind it would come to.
            let fence = self.next_fence();
            self.insert_held(id, cost, order, label, fence);
            self.granted += 1;
            self.dispatch();
            return Verdict::Granted { fence, order };
        }
        self.insert_queued(&id, cost, order, label);
        self.dispatch();
        if !may_wait && self.standing(&id) == Standing::Queued {
            self.forget(&id);
            return Verdict::Busy;
        }
        self.ticket_verdict(&id)
    }

    fn has_room(&self, cost: u64) -> bool {
        self.admits_at_once(cost) || self.waiting() < self.settings().max_queue
    }

    /// Nobody waits, and it fits.
    fn admits_at_once(&self, cost: u64) -> bool {
        self.queue.is_empty() && !self.config.paused() && self.now >= self.grace && cost <= self.free()
    }

    fn release(&mut self, permits: impl Iterator<Item = (TicketId, u64)>) -> Verdict {
        let mut verdicts = Few::new();
        for (id, fence) in permits {
            let place = (fence, id);
            let held = self.held.remove(&place);
            if held && let Some(record) = self.tickets.remove(&place.1) {
                self.used -= record.cost;
                let slot_time = self.now.saturating_sub(fence).saturating_mul(record.cost);
                self.learn_hold_time(slot_time.min(1 << 52));
            }
            verdicts.push(held);
        }
        self.dispatch();
        Verdict::Released(verdicts)
    }

    /// An average that forgets: an eighth of each new value.
    fn learn_hold_time(&mut self, slot_time: u64) {
        self.hold = match self.hold {
            0 => slot_time,
            mean => (mean as i64 + (slot_time as i64 - mean as i64).div_euclid(8)) as u64,
        };
    }

    fn cancel(&mut self, tickets: impl Iterator<Item = TicketId>) -> Verdict {
        let verdicts = tickets
            .map(|id| match self.forget(&id) {
                Some(TicketRecord { fence: Some(_), .. }) => Was::Held,
                Some(_) => Was::Queued,
                None => Was::Unknown,
            })
            .collect();
        self.dispatch();
        Verdict::Cancelled(verdicts)
    }

    fn put_back(&mut self, id: &TicketId, fence: u64) -> Verdict {
        if self.held.contains(&(fence, id.clone()))
            && let Some(record) = self.forget(id)
        {
            self.insert_queued(id, record.cost, record.order, &record.label);
        }
        self.dispatch();
        self.ticket_verdict(id)
    }

    fn sync(&mut self, caller: &Caller, version: u64, tickets: impl Iterator<Item = TicketId>) -> Verdict {
        // Who does not know yet that the lease is shorter now goes on believing in the old one, should the answer get lost.
        self.renew(&caller.instance, if version == self.version { Renewal::Anew } else { Renewal::Full });
        self.dispatch();
        let mut heads = Vec::new();
        for id in tickets {
            heads.push(self.standing(&id));
            if heads.last() == Some(&Standing::Queued) {
                break;
            }
        }
        Verdict::Synced(Synced {
            config: (version != self.version).then(|| Box::new(self.config.clone())),
            revokes: self.revokes,
            next: self.next_event().map(|at| Duration::from_millis((at - self.now) / 1000 + 1)),
            more: self.more,
            heads,
        })
    }

    fn next_event(&self) -> Option<u64> {
        if self.now < self.grace {
            return Some(self.grace);
        }
        self.expiries.first().map(|(expiry, _)| (*expiry).max(self.calm).max(self.now))
    }

    fn restore(&mut self, caller: &Caller, header: &Header, tickets: &[Restored]) -> Verdict {
        self.adopt(&header.declaration, false);
        self.renew(&caller.instance, Renewal::Full);
        let mut standings = Vec::new();
        for ticket in tickets {
            let id = TicketId { instance: caller.instance.clone(), no: ticket.no };
            if ticket.kind == RestoreKind::Local && self.standing(&id) == Standing::Queued {
                self.forget(&id);
            }
            if self.standing(&id) == Standing::Gone {
                self.bring_back(&id, ticket);
            }
            standings.push(self.standing(&id));
        }
        self.dispatch();
        Verdict::Restored(standings)
    }

    fn bring_back(&mut self, id: &TicketId, ticket: &Restored) {
        // Admitted locally before it was ever in line?
        let order = if ticket.order != 0 { ticket.order } else { (self.order + 1).max(self.now) };
        self.order = self.order.max(order);
        let Restored { kind, fence, cost, label, .. } = ticket;
        let fits = self.now < self.grace || self.used + cost <= self.settings().limit;
        match kind {
            RestoreKind::Waiting => self.insert_queued(id, *cost, order, label),
            RestoreKind::Local => self.insert_held(id.clone(), *cost, order, label, self.next_fence()),
            RestoreKind::Held if fits => self.insert_held(id.clone(), *cost, order, label, *fence),
            RestoreKind::Held | RestoreKind::Check => {}
        }
    }

    fn insert_held(&mut self, id: TicketId, cost: u64, order: u64, label: &Label, fence: u64) {
        self.tickets.insert(id.clone(), TicketRecord { cost, order, label: label.clone(), fence: Some(fence) });
        self.held.insert((fence, id));
        self.overshoot += (self.used + cost).saturating_sub(self.settings().limit.max(self.used));
        self.used += cost;
        self.fence = self.fence.max(fence);
    }

    fn configure(&mut self, change: &Change) -> Verdict {
        let mut words: Vec<String> = match change.reset {
            true => Vec::new(),
            false => self.config.overrides.split_whitespace().map(str::to_owned).collect(),
        };
        words.resize(change.values.len(), "-".into());
        for (word, value) in words.iter_mut().zip(change.values) {
            if let Some(value) = value {
                *word = value.to_string();
            }
        }
        self.config.overrides = words.join(" ");
        self.config.override_at = self.now.max(self.config.override_at + 1);
        self.put_settings();
        self.dispatch();
        Verdict::Done
    }

    fn revoke(&mut self, ticket: &str) -> Verdict {
        let id = ticket.parse::<TicketId>().ok();
        let was = match id.as_ref().and_then(|id| self.forget(id).map(|record| (id, record))) {
            Some((id, TicketRecord { fence: Some(_), .. })) => {
                self.revokes += 1;
                self.tell(id, Notice::PermitRevoked { no: id.no });
                Was::Held
            }
            Some((id, _)) => {
                self.tell(id, Notice::PlaceRevoked { no: id.no });
                Was::Queued
            }
            None => Was::Unknown,
        };
        self.dispatch();
        Verdict::Revoked(was)
    }

    fn leave(&mut self, caller: &Caller) -> Verdict {
        if self.remove_instance(&caller.instance) {
            self.start_sweep();
        }
        self.dispatch();
        Verdict::Left { more: self.more }
    }

    /// The one verb that writes nothing.
    fn position(&self, caller: &Caller, tickets: &[TicketNo]) -> Verdict {
        if !self.exists {
            return Verdict::NoSuchLimiter;
        }
        let position = |no: &TicketNo| {
            let position = self.position_of(&TicketId { instance: caller.instance.clone(), no: *no });
            (position, if position == 0 { None } else { self.estimate(position) })
        };
        Verdict::Positions(tickets.iter().map(position).collect())
    }

    fn list(&mut self, held: bool, offset: usize, count: usize) -> Verdict {
        self.dispatch();
        let rows = match held {
            true => self.held.iter().skip(offset).take(count).map(|(_, id)| self.row(id)).collect(),
            false => self.queue.iter().skip(offset).take(count).map(|(_, id)| self.row(id)).collect(),
        };
        Verdict::List { rows, now: self.now }
    }

    fn row(&self, id: &TicketId) -> Row {
        let record = &self.tickets[id];
        Row {
            ticket: id.to_string(),
            description: self.instances.get(&id.instance).map(|i| i.description.clone()).unwrap_or_default(),
            label: record.label.to_string(),
            cost: record.cost,
            order: record.order,
            fence: record.fence.unwrap_or(0),
        }
    }

    fn status(&mut self) -> Verdict {
        self.dispatch();
        let serves_at_once = self.free() > 0 && self.queue.is_empty();
        Verdict::Status(Box::new(StatusView {
            config: self.config.clone(),
            used: self.used,
            holders: self.held.len() as u64,
            waiting: self.waiting(),
            instances: self.instances.len() as u64,
            granted: self.granted,
            grace: Duration::from_millis(self.grace.saturating_sub(self.now) / 1000),
            typical_hold: (self.hold > 0).then(|| Duration::from_micros(self.hold)),
            estimate: if serves_at_once { Some(Duration::ZERO) } else { self.estimate(self.waiting() + 1) },
            overshoot: self.overshoot,
        }))
    }
}
