//! What must hold, whatever happens. Looked at after each script and after each step of a run.
//!
//! That holders never believe in more than the limit (P1) is checked as four facts that imply it: a script that grants
//! leaves no more than the limit in use; what is in use is the sum of what is held; only a restore in a grace, or a lowered
//! limit, leaves more held than the limit; and whoever may believe in a permit ([`Permit::is_valid`](crate::Permit::is_valid))
//! finds it held, with its fence. The exceptions of the last:
//!
//! - the store lost state, and the holder has not reported to the new epoch;
//! - its subscription was gone for as long as it was silent, and it was taken for dead (see `lua/lib/look.lua`);
//! - an operator has revoked it, and the holder has not heard of it: it will by its next sync;
//! - the server's wall clock was set forwards within the last lease: a lease cannot be longer than the clock says;
//! - it was admitted locally, and the store has never counted it.

use std::collections::{BTreeMap, BTreeSet};

use super::view::{Entry, View};
use crate::store::{RestoreKind, Verb};

/// One script's run.
pub(super) struct Ran<'a> {
    pub limiter: usize,
    pub caller: &'a str,
    pub verb: &'a Verb,
    /// The first word of the answer, or of the error.
    pub verdict: &'a str,
    pub wall: u64,
}

/// For so long somebody has to be silent, in microseconds, before he is taken for dead within his lease.
const SUSPICION: u64 = 700_000;

/// So many gaps in a row may excuse an instance.
const MOST_GAPS: u32 = 3;

#[derive(Debug)]
struct Overdue {
    expiry: u64,
    calm: u64,
    gaps: u32,
}

#[derive(Default)]
struct Limiter {
    view: View,
    /// The highest fence that was granted.
    fence: u64,
    /// Instances that are past their time, and excused by a gap.
    overdue: BTreeMap<String, Overdue>,
    revoked: BTreeSet<String>,
    /// When each instance last called, by the limiter's clock.
    heard: BTreeMap<String, u64>,
    /// Taken for dead within their lease.
    presumed_dead: BTreeSet<String>,
    /// The wall clock was set back, and whoever remembers an epoch may know a later one than is opened.
    set_back: bool,
    /// State was lost, and no script has met that yet; so nobody else was granted anything.
    tampered: bool,
}

#[derive(Default)]
pub(super) struct Oracle {
    limiters: Vec<Limiter>,
    pub broken: Option<String>,
    pub granted: u64,
}

impl Oracle {
    pub(super) fn new(limiters: usize) -> Self {
        Oracle { limiters: (0..limiters).map(|_| Limiter::default()).collect(), ..Oracle::default() }
    }

    pub(super) fn view(&self, limiter: usize) -> &View {
        &self.limiters[limiter].view
    }

    pub(super) fn is_revoked(&self, limiter: usize, ticket: &str) -> bool {
        self.limiters[limiter].revoked.contains(ticket)
    }

    pub(super) fn is_presumed_dead(&self, limiter: usize, instance: &str) -> bool {
        self.limiters[limiter].presumed_dead.contains(instance)
    }

    /// The wall clock was set back.
    pub(super) fn set_back(&mut self) {
        self.limiters.iter_mut().for_each(|limiter| limiter.set_back = true);
    }

    pub(super) fn is_tampered(&self, limiter: usize) -> bool {
        self.limiters[limiter].tampered
    }

    pub(super) fn violated(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violated(what());
        }
    }

    /// State was lost, or changed by hand.
    pub(super) fn tampered(&mut self, limiter: usize, view: View, wall: u64) {
        let state = &mut self.limiters[limiter];
        state.view = view;
        state.tampered = true;
        state.overdue.clear();
        if wall < state.fence && state.view.fence < state.fence {
            state.fence = 0; // P5 rests on the wall clock when the last fence is lost: not if that was set back, too
        }
    }

    pub(super) fn ran(&mut self, ran: &Ran<'_>, after: View) {
        let name = ran.limiter;
        let before = std::mem::replace(&mut self.limiters[name].view, after.clone());
        if matches!(ran.verdict, "refused" | "none" | "apart" | "OOM" | "NOSCRIPT" | "READONLY")
            || matches!(ran.verb, Verb::Position(_))
        {
            return;
        }
        let thorough = !matches!(ran.verb, Verb::Acquire { .. } | Verb::Release(_) | Verb::Cancel(_));
        if self.limiters[name].tampered && !thorough && after.epoch == before.epoch {
            return; // a key was lost, and the next heartbeat will see it
        }
        let tampered = std::mem::take(&mut self.limiters[name].tampered);
        let again = before.exists && before.epoch != after.epoch && !tampered && !self.limiters[name].set_back;
        self.require(!again, || format!("P9: an epoch was opened though nothing was lost: {:?}", ran.verb));
        self.check_presence(ran, &before, &after);
        if let (Verb::Revoke(ticket), "held" | "queued") = (ran.verb, ran.verdict) {
            self.limiters[name].revoked.insert(ticket.clone());
        }
        if !before.exists && ran.wall < self.limiters[name].fence {
            self.limiters[name].fence = 0; // its keys have expired
        }
        self.check_sums(ran, &after);
        let grants = self.grants(ran, &before, &after);
        self.check_grants(ran, &grants, &after);
        self.check_excess(ran, &before, &after);
        if ran.verdict != "resync" {
            self.check_owners(name, &after);
        }
    }

    /// P8: nobody is forgotten within his lease who was not silent for a while.
    fn check_presence(&mut self, ran: &Ran<'_>, before: &View, after: &View) {
        let state = &mut self.limiters[ran.limiter];
        // Who was taken for dead is told so first, and then counted in again.
        if ran.verdict != "resync" && after.instances.contains_key(ran.caller) {
            state.heard.insert(ran.caller.to_owned(), after.now);
            state.presumed_dead.remove(ran.caller);
        }
        if before.epoch != after.epoch {
            return;
        }
        let forgotten = before.instances.iter().filter(|(name, expiry)| {
            **expiry >= after.now && !after.instances.contains_key(*name) && *name != ran.caller
        });
        let mut wrong = None;
        for (name, _) in forgotten {
            state.presumed_dead.insert(name.clone());
            let silence = after.now - state.heard.get(name).copied().unwrap_or(0);
            if silence < SUSPICION {
                wrong = Some(format!("P8: {name} was taken for dead after {silence} us: {:?}", ran.verb));
            }
        }
        wrong.into_iter().for_each(|wrong| self.violated(wrong));
    }

    fn check_sums(&mut self, ran: &Ran<'_>, after: &View) {
        let (used, sum) = (after.used, after.cost_held());
        self.require(used == sum, || format!("P3: used {used}, but what is held costs {sum}: {:?}", ran.verb));
        let (tickets, places) = (after.tickets, after.queue.len() + after.held.len());
        self.require(tickets == places, || format!("P3: {tickets} tickets in {places} places: {:?}", ran.verb));
    }

    fn grants(&self, ran: &Ran<'_>, before: &View, after: &View) -> Vec<Entry> {
        let restored = |entry: &Entry| {
            let Verb::Restore(tickets) = ran.verb else { return false };
            let named = |no: u64| entry.ticket == format!("{}:{no}", ran.caller);
            let kinds = [RestoreKind::Held, RestoreKind::Local];
            tickets.iter().any(|ticket| kinds.contains(&ticket.kind) && named(ticket.no))
        };
        let new = after.held.iter().filter(|entry| !before.holds(&entry.ticket, entry.score));
        new.filter(|entry| !restored(entry)).cloned().collect()
    }

    fn check_grants(&mut self, ran: &Ran<'_>, grants: &[Entry], after: &View) {
        let Some(last) = grants.last() else { return };
        self.granted += grants.len() as u64;
        let (used, limit) = (after.used, after.limit);
        self.require(used <= limit, || {
            format!("P1: {used} in use after a grant, the limit is {limit}: {:?}", ran.verb)
        });
        self.require(!after.paused && after.now >= after.grace, || format!("granted in a pause: {grants:?}"));
        let fence = self.limiters[ran.limiter].fence;
        let grow = grants[0].score > fence && grants.windows(2).all(|pair| pair[0].score < pair[1].score);
        self.require(grow, || format!("P5: fences do not grow: {grants:?} after {fence}"));
        self.limiters[ran.limiter].fence = last.score;
        // By fence is the order of the grants.
        let place = |entry: &Entry| (entry.order, entry.ticket.clone());
        let in_order = grants.windows(2).all(|pair| place(&pair[0]) < place(&pair[1]));
        let passed = after.queue.first().filter(|head| place(head) < place(last));
        self.require(in_order && passed.is_none(), || format!("P6: {grants:?} passed {passed:?}"));
    }

    fn check_excess(&mut self, ran: &Ran<'_>, before: &View, after: &View) {
        let excused = matches!(ran.verb, Verb::Restore(_)) && after.now < after.grace || after.limit < before.limit;
        let grew = after.used > after.limit && after.used > before.used;
        let local = matches!(ran.verb, Verb::Restore(tickets) if tickets.iter().any(|t| t.kind == RestoreKind::Local));
        self.require(!grew || excused || local, || {
            format!("P1: use grew to {} of {}: {:?}", after.used, after.limit, ran.verb)
        });
    }

    /// What has no living owner is on its way out.
    fn check_owners(&mut self, limiter: usize, after: &View) {
        if !after.sweeping {
            let orphan = after.held.iter().chain(&after.queue).find(|e| !after.instances.contains_key(e.owner()));
            self.require(orphan.is_none(), || format!("P8: nobody owns {orphan:?}"));
        }
        let overdue = &mut self.limiters[limiter].overdue;
        overdue.retain(|instance, late| after.instances.get(instance) == Some(&late.expiry));
        let mut wrong = None;
        for (instance, expiry) in after.instances.iter().filter(|(_, expiry)| **expiry < after.now) {
            let late = overdue.entry(instance.clone()).or_insert(Overdue { expiry: *expiry, calm: 0, gaps: 0 });
            late.gaps += u32::from(late.calm != after.calm);
            late.calm = after.calm;
            if after.now >= after.calm || late.gaps > MOST_GAPS {
                wrong = Some(format!("P8: {instance} is past its time, and still counted: {late:?} at {}", after.now));
            }
        }
        wrong.into_iter().for_each(|wrong| self.violated(wrong));
    }
}
