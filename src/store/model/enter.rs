//! What every mutating verb begins with: is the limiter what it was, and who is calling? (`lua/lib/enter.lua`,
//! `lua/lib/config.lua`)

use std::collections::HashSet;

use super::*;
use crate::settings::OVERRIDABLE;

/// Of so many held tickets, the oldest, a caller is reminded.
const REMINDED: usize = 1024;

/// Of so many tickets and instances it is looked at a fail-over whom to wait for.
const LOOKED_AT: usize = 1024;
/// After a fail-over a shorter lease counts as this, in microseconds: clients have to find the server first.
const SHORTEST_SPAN: u64 = 6_000_000;

/// A command that was under way for no longer than this, in microseconds, is none that its sender has given up.
const PROMPT: u64 = 100_000;

/// For so long, in microseconds, whoever comes with another lease in mind is believed in at least: until its first sync it
/// does not know how short the lease is.
const FIRST_LEASE: u64 = 2_000_000;

/// For how long an instance is believed in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    /// A lease, at least.
    Full,
    /// A lease, also if it was more before.
    Anew,
}

/// What a verb needs of its caller.
pub(super) struct Needs {
    /// The verb means nothing before the caller's tickets are known.
    pub strict: bool,
    /// A caller that is not known is counted in.
    pub joins: bool,
}

impl Model {
    /// `Err` is the answer of a verb that must not go on.
    pub(super) fn enter(
        &mut self,
        caller: &Caller,
        header: &Header,
        needs: &Needs,
        wall: u64,
    ) -> Result<(), Box<Verdict>> {
        self.more = false;
        let mut standing = self.standing_of(&caller.instance);
        if standing.is_some_and(|i| i.generation > caller.generation) {
            return Err(Box::new(Verdict::Refused));
        }
        let unknown = standing.is_none_or(|i| i.awaited);
        if needs.joins && unknown && self.may_be_forgotten(caller, wall) {
            return Err(Box::new(Verdict::Refused));
        }
        if !self.exists && header.declaration.declared.is_empty() {
            return Err(Box::new(Verdict::NoSuchLimiter));
        }
        let before = self.read_clock(wall); // a call that was turned away has not broken a silence
        // A caller that knows a later epoch tells that an older state has come back.
        if !self.exists || self.damaged || !same(&self.run, &caller.run) || header.epoch > self.epoch {
            self.begin_epoch(caller, header, before);
            standing = self.standing_of(&caller.instance);
        } else {
            if header.declaration.declares {
                self.adopt(&header.declaration, false);
            }
            self.note_what_callers_remember(header, before);
        }
        let (known, awaited) = (standing.is_some_and(|i| !i.awaited), standing.is_some_and(|i| i.awaited));
        if needs.strict && !header.bare && (header.epoch != self.epoch || !known) {
            return Err(Box::new(Verdict::Resync));
        }
        if awaited && (needs.joins || header.bare) {
            self.has_reported(&caller.instance);
        }
        match standing.filter(|_| known) {
            Some(standing) => self.count_again(caller, standing),
            None if needs.joins => self.count_in(caller, &header.declaration),
            None => {}
        }
        Ok(())
    }

    fn standing_of(&self, instance: &Arc<str>) -> Option<InstanceStanding> {
        self.instances.get(instance).map(|record| record.standing)
    }

    /// Nobody here knows its generation (any more), and since the command was sent an instance was forgotten: the command
    /// may be one that was stuck in the network, of which nobody knows any more.
    fn may_be_forgotten(&self, caller: &Caller, wall: u64) -> bool {
        let age = wall.saturating_sub(caller.sent);
        let now = self.now.max(wall + self.skew);
        age > PROMPT && age > if self.exists { now - self.forgot } else { 0 }
    }

    /// Grace for an epoch that was opened by one who remembered nothing; calm after a quiet gap.
    fn note_what_callers_remember(&mut self, header: &Header, before: u64) {
        if header.epoch != 0 && header.epoch != self.epoch && self.grace == 0 {
            self.grace = self.grace_end();
        }
        if !self.tickets.is_empty() && self.now - before > self.lease_us() / 2 {
            if before < self.calm && self.gaps < 2 {
                self.gaps += 1; // it cut the time to report after another one short, and counts with that
            } else {
                (self.gaps, self.excused) = (0, before);
            }
            self.calm = self.now + self.lease_us() * 5 / 12;
        }
    }

    fn grace_end(&self) -> u64 {
        self.now + self.lease_us() * 2 / 3
    }

    fn begin_epoch(&mut self, caller: &Caller, header: &Header, before: u64) {
        // All of the old state is there: it is another server's, or an older one.
        let moved = self.exists && !self.damaged;
        let expected = if moved { self.expected(before) } else { Vec::new() };
        let remembered = self.exists || header.epoch != 0;
        self.adopt(&header.declaration, true);
        self.exists = true;
        self.damaged = false;
        // The time, so that it is later than any that somebody knows, also if the caller had missed one. Where the clock was
        // set back it is one that nobody remembers, most likely; it never runs ahead of the clock otherwise.
        self.epoch = (self.epoch + 1).max(self.now);
        if header.epoch >= self.epoch {
            self.epoch = header.epoch + 1 + self.now % 1_000_000;
        }
        self.run = caller.run.clone();
        self.used = 0;
        self.sweep = Sweep::Off;
        self.again = false;
        self.calm = 0;
        self.excused = 0;
        self.gaps = 0;
        self.awaited = 0;
        self.forgot = self.now;
        self.queue.clear();
        self.held.clear();
        self.tickets.clear();
        self.instances.clear();
        self.expiries.clear();
        let span = if moved { self.lease_us().max(SHORTEST_SPAN) } else { self.lease_us() };
        self.grace = if remembered { self.now + span * 2 / 3 } else { 0 };
        if !expected.is_empty() {
            self.wait_for(expected, self.now + span);
        }
    }

    /// Who held or waited, of the oldest tickets, and was alive when the state was last written; and who is waited for
    /// already.
    fn expected(&self, before: u64) -> Vec<Arc<str>> {
        let owners: HashSet<&str> = self
            .held
            .iter()
            .take(LOOKED_AT)
            .chain(self.queue.iter().take(LOOKED_AT))
            .map(|(_, id)| &*id.instance)
            .collect();
        let bound = if before >= self.calm { before } else { self.excused };
        let alive = self.expiries.range((bound, "".into())..).take(LOOKED_AT).map(|(_, instance)| instance);
        alive.filter(|name| owners.contains(&***name) || self.instances[*name].standing.awaited).cloned().collect()
    }

    fn wait_for(&mut self, expected: Vec<Arc<str>>, until: u64) {
        self.awaited = expected.len() as u64;
        self.first_grace = std::mem::replace(&mut self.grace, until);
        for name in expected {
            self.expiries.insert((until, name.clone()));
            let standing = InstanceStanding { expiry: until, generation: 0, awaited: true };
            self.instances.insert(name, InstanceRecord { standing, description: String::new() });
        }
    }

    /// When all have reported that were waited for, there is no more reason to.
    fn has_reported(&mut self, instance: &Arc<str>) {
        self.remove_instance(instance);
        self.awaited = self.awaited.saturating_sub(1);
        if self.awaited == 0 {
            self.grace = self.grace.min(self.first_grace);
        }
    }

    /// Every verb leaves its caller at least three quarters of a lease.
    fn count_again(&mut self, caller: &Caller, standing: InstanceStanding) {
        if standing.expiry < self.now + self.lease_us() * 3 / 4 {
            self.renew(&caller.instance, Renewal::Full);
        }
        if standing.generation < caller.generation {
            if let Some(record) = self.instances.get_mut(&caller.instance) {
                record.standing.generation = caller.generation;
            }
            self.remind(&caller.instance);
        }
    }

    fn count_in(&mut self, caller: &Caller, declaration: &Declaration) {
        let believed = declaration.declared.split_whitespace().nth(3).and_then(|word| word.parse::<u64>().ok());
        let least = if believed == Some(self.settings().lease) { 0 } else { FIRST_LEASE };
        let expiry = self.now + self.lease_us().max(least);
        let standing = InstanceStanding { expiry, generation: caller.generation, awaited: false };
        let record = InstanceRecord { standing, description: declaration.description.clone() };
        self.instances.insert(caller.instance.clone(), record);
        self.expiries.insert((expiry, caller.instance.clone()));
    }

    /// It has connected anew: what it holds may have been granted to a command of an older connection that came through
    /// when the instance, and its generation with it, was forgotten here.
    fn remind(&mut self, instance: &Arc<str>) {
        let held = self.held.iter().take(REMINDED).filter(|(_, id)| id.instance == *instance);
        for (fence, id) in held.cloned().collect::<Vec<_>>() {
            let order = self.tickets.get(&id).map_or(0, |record| record.order);
            self.tell(&id, Notice::Granted { no: id.no, fence, order });
        }
    }

    pub(super) fn renew(&mut self, instance: &Arc<str>, how: Renewal) {
        let Some(InstanceStanding { expiry, .. }) = self.standing_of(instance) else { return };
        let full = self.now + self.lease_us();
        match how {
            Renewal::Anew => self.set_expiry(instance, full),
            Renewal::Full => self.set_expiry(instance, expiry.max(full)),
        }
    }

    /// Takes over a caller's configuration where it is newer; `anew`: it is a new version in any case.
    pub(super) fn adopt(&mut self, theirs: &Declaration, anew: bool) {
        let stamp = if theirs.declares { self.now.max(self.config.declared_at + 1) } else { theirs.declared_at };
        let mut changed = anew;
        let differs = !theirs.declared.is_empty() && theirs.declared != self.config.declared;
        if differs && (stamp > self.config.declared_at || self.config.declared.is_empty()) {
            self.config.declared = theirs.declared.clone();
            self.config.declared_at = stamp;
            changed = true;
        }
        if theirs.override_at > self.config.override_at {
            self.config.overrides = theirs.overrides.clone();
            self.config.override_at = theirs.override_at;
            changed = true;
        }
        if changed {
            self.put_settings();
        }
    }

    /// Computes the settings in force from what is declared and what stands above it.
    pub(super) fn put_settings(&mut self) {
        let old_limit = self.settings().limit;
        let low: Vec<&str> = self.config.declared.split_whitespace().collect();
        let high: Vec<&str> = self.config.overrides.split_whitespace().collect();
        let word = |list: &[&str], i: usize| list.get(i).and_then(|w| w.parse::<u64>().ok());
        for i in 0..OVERRIDABLE.len() {
            self.config.values[i] = word(&high, i).or_else(|| word(&low, i)).unwrap_or(0);
        }
        self.version = (self.version + 1).max(self.now);
        if self.settings().limit < old_limit {
            match self.sweep {
                Sweep::Off => self.sweep = Sweep::Queue(0),
                _ => self.again = true,
            }
        }
    }
}
