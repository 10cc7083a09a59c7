//! What the property test does: random operations, and what each side makes of them.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::label::Label;
use crate::settings::{ConfigView, Settings};

/// What the property test does, on both sides.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Verb {
        instance: usize,
        knows: Knows,
        bare: bool,
        declares: Option<u64>,
        verb: Plan,
    },
    /// Several requests of one instance, which may travel together.
    Parcel(usize, Vec<Plan>),
    /// The instance's lease ends.
    Expire(usize),
    EndGrace,
    /// FLUSHALL.
    Lose,
    /// One key is deleted by hand; 0 is the hash.
    DeleteKey(usize),
    /// The server restarts with its data.
    Restart,
    /// The instance connects anew; `false`: an older connection's command arrives after that.
    Reconnect(usize, bool),
    /// Time passes, in hundredths of a lease; the wall clock may be set back, too. Only where both sides share a clock.
    Advance(i64),
    /// It is just the moment at which the grace (or, second, the calm after a silence) ends. As above.
    Until(usize),
}

/// Which epoch the caller knows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Knows {
    Latest,
    Nothing,
    First,
    /// One that the store has forgotten again.
    Later,
}

/// A verb with what both sides agree on; orders and fences are each side's own.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    Acquire {
        no: u64,
        cost: u64,
        may_wait: bool,
        old_order: bool,
    },
    Release(Vec<(u64, bool)>),
    Cancel(Vec<u64>),
    PutBack(u64, bool),
    Sync(Vec<u64>),
    Restore(Vec<(u64, RestoreKind)>),
    Limit(u64),
    MaxQueue(u64),
    /// Milliseconds.
    Lease(u64),
    Pause(bool),
    Reset,
    Revoke(usize, u64),
    Leave,
    Status,
    /// Held or queued, from where, and how many.
    List(bool, u64, u64),
    Position(Vec<u64>),
}

pub(super) fn plans() -> impl Strategy<Value = Plan> {
    let no = 1..7u64;
    let kind = prop_oneof![
        Just(RestoreKind::Held),
        Just(RestoreKind::Waiting),
        Just(RestoreKind::Local),
        Just(RestoreKind::Check)
    ];
    prop_oneof![
        8 => (no.clone(), 1..4u64, prop::bool::weighted(0.8), prop::bool::weighted(0.1))
            .prop_map(|(no, cost, may_wait, old_order)| Plan::Acquire { no, cost, may_wait, old_order }),
        5 => prop::collection::vec((no.clone(), prop::bool::weighted(0.9)), 1..3).prop_map(Plan::Release),
        2 => prop::collection::vec(no.clone(), 1..3).prop_map(Plan::Cancel),
        1 => (no.clone(), prop::bool::weighted(0.8)).prop_map(|(no, right)| Plan::PutBack(no, right)),
        3 => prop::collection::vec(no.clone(), 0..4).prop_map(Plan::Sync),
        3 => prop::collection::vec((no.clone(), kind), 0..5).prop_map(Plan::Restore),
        1 => (0..6u64).prop_map(Plan::Limit),
        1 => (0..4u64).prop_map(Plan::MaxQueue),
        1 => any::<bool>().prop_map(Plan::Pause),
        1 => Just(Plan::Reset),
        1 => (0..3usize, no.clone()).prop_map(|(instance, no)| Plan::Revoke(instance, no)),
        1 => Just(Plan::Leave),
        1 => Just(Plan::Status),
        1 => (any::<bool>(), 0..2u64, 1..9u64).prop_map(|(held, offset, count)| Plan::List(held, offset, count)),
        1 => prop::collection::vec(no, 1..3).prop_map(Plan::Position),
    ]
}

/// `timed`: both sides share a clock.
pub(super) fn ops(timed: bool) -> impl Strategy<Value = Vec<Op>> {
    let instance = 0..INSTANCES.len();
    let knows = prop_oneof![
        16 => Just(Knows::Latest),
        2 => Just(Knows::Nothing),
        2 => Just(Knows::First),
        1 => Just(Knows::Later)
    ];
    let declares = prop::option::weighted(0.1, 1..5u64);
    let verb = (instance.clone(), knows, prop::bool::weighted(0.4), declares, plans())
        .prop_map(|(instance, knows, bare, declares, verb)| Op::Verb { instance, knows, bare, declares, verb });
    let no = 1..7u64;
    let request = prop_oneof![
        3 => (no.clone(), prop_oneof![3 => Just(1u64), 1 => 2..4u64], prop::bool::weighted(0.8), prop::bool::weighted(0.1))
            .prop_map(|(no, cost, may_wait, old_order)| Plan::Acquire { no, cost, may_wait, old_order }),
        3 => no.clone().prop_map(|no| Plan::Release(vec![(no, true)])),
        1 => no.prop_map(|no| Plan::Cancel(vec![no])),
    ];
    let parcel = (instance.clone(), prop::collection::vec(request, 2..5)).prop_map(|(i, plans)| Op::Parcel(i, plans));
    let op = prop_oneof![
        40 => verb,
        10 => parcel,
        2 => instance.clone().prop_map(Op::Expire),
        3 => Just(Op::EndGrace),
        1 => Just(Op::Lose),
        1 => (0..4usize).prop_map(Op::DeleteKey),
        1 => Just(Op::Restart),
        2 => (instance, prop::bool::weighted(0.7)).prop_map(|(i, newer)| Op::Reconnect(i, newer)),
    ];
    let step = prop_oneof![
        Just(0i64),
        Just(1),
        Just(8),
        Just(25),
        Just(33),
        Just(45),
        Just(50),
        Just(51),
        Just(70),
        Just(101),
        -60..200i64
    ];
    let op = prop_oneof![
        (if timed { 2 } else { 100_000_000 }) => op,
        1 => prop_oneof![8 => step.prop_map(Op::Advance), 1 => (0..2usize).prop_map(Op::Until)],
    ];
    prop::collection::vec(op, 1..if timed { 100 } else { 60 })
}

/// What one side has told of epochs and tickets.
#[derive(Default)]
pub(super) struct Memory {
    epochs: HashMap<usize, (u64, u64)>,
    versions: HashMap<usize, u64>,
    orders: HashMap<(usize, u64), u64>,
    fences: HashMap<(usize, u64), u64>,
    /// The configuration that an instance was told last, and brings back.
    configs: HashMap<usize, ConfigView>,
}

impl Memory {
    pub(super) fn header(&self, instance: usize, knows: Knows, bare: bool, declares: Option<u64>) -> Header {
        let (first, latest) = self.epochs.get(&instance).copied().unwrap_or_default();
        let epoch = match knows {
            Knows::Latest => latest,
            Knows::Nothing => 0,
            Knows::First => first,
            Knows::Later => latest + 1_000_000_000,
        };
        let settings = Settings {
            limit: declares.unwrap_or(2),
            max_queue: [5, 5, 5, 0, 1][declares.unwrap_or(2) as usize],
            lease: LEASE_MS,
            idle: 1000 * LEASE_MS,
            ..Settings::default()
        };
        let mut declaration = Declaration {
            declared: settings.words(),
            declares: declares.is_some(),
            description: format!("instance {instance}"),
            ..Declaration::default()
        };
        if let Some(known) = self.configs.get(&instance) {
            declaration.override_at = known.override_at;
            declaration.overrides = known.overrides.clone();
            if declares.is_none() {
                (declaration.declared, declaration.declared_at) = (known.declared.clone(), known.declared_at);
            }
        }
        let version = self.versions.get(&instance).copied().unwrap_or_default();
        Header { epoch, bare, version, declaration: Arc::new(declaration) }
    }

    /// Made up for a ticket that was never heard of: old, and different for each.
    pub(super) fn order(&self, instance: usize, no: u64) -> u64 {
        self.orders.get(&(instance, no)).copied().unwrap_or(1000 + 10 * no + instance as u64)
    }

    pub(super) fn fence(&self, instance: usize, no: u64) -> u64 {
        self.fences.get(&(instance, no)).copied().unwrap_or(2000 + 10 * no + instance as u64)
    }

    pub(super) fn verb(&self, instance: usize, plan: &Plan) -> Verb {
        let label =
            |no: u64| -> Label { if no.is_multiple_of(3) { "".into() } else { format!("label of {no}").into() } };
        match plan {
            Plan::Acquire { no, cost, may_wait, old_order } => Verb::Acquire {
                no: *no,
                cost: *cost,
                may_wait: *may_wait,
                order: if *old_order { self.order(instance, *no) } else { 0 },
                label: label(*no),
            },
            Plan::Release(permits) => {
                let pair = |(no, right): &(u64, bool)| (*no, self.fence(instance, *no) + u64::from(!right));
                Verb::Release(permits.iter().map(pair).collect())
            }
            Plan::Cancel(tickets) => Verb::Cancel(tickets.iter().copied().collect()),
            // 0: it was admitted locally.
            Plan::PutBack(no, right) => {
                Verb::PutBack { no: *no, fence: if *right { self.fence(instance, *no) } else { no % 2 } }
            }
            Plan::Sync(heads) => {
                let knows = heads.len() % 2 == 1;
                let version = self.versions.get(&instance).copied().filter(|_| knows).unwrap_or(0);
                Verb::Sync { version, heads: heads.clone() }
            }
            Plan::Restore(tickets) => {
                let one = |(no, kind): &(u64, RestoreKind)| Restored {
                    kind: *kind,
                    no: *no,
                    order: if *kind == RestoreKind::Local && no % 2 == 0 { 0 } else { self.order(instance, *no) },
                    fence: self.fence(instance, *no),
                    cost: 1 + no % 2,
                    label: label(*no),
                };
                Verb::Restore(tickets.iter().map(one).collect())
            }
            Plan::Limit(limit) => Verb::Configure(Change::new().limit(*limit)),
            Plan::MaxQueue(max_queue) => Verb::Configure(Change::new().max_queue(*max_queue)),
            Plan::Lease(ms) => Verb::Configure(Change::new().lease(Duration::from_millis(*ms))),
            Plan::Pause(true) => Verb::Configure(Change::new().pause()),
            Plan::Pause(false) => Verb::Configure(Change::new().resume()),
            Plan::Reset => Verb::Configure(Change::new().reset()),
            Plan::Revoke(instance, no) => Verb::Revoke(format!("{}:{no}", INSTANCES[*instance])),
            Plan::Leave => Verb::Leave,
            Plan::Status => Verb::Status,
            Plan::List(held, offset, count) => Verb::List { held: *held, offset: *offset, count: *count },
            Plan::Position(tickets) => Verb::Position(tickets.iter().copied().collect()),
        }
    }

    pub(super) fn learn(&mut self, instance: usize, plan: &Plan, answer: &Answer) {
        if matches!(answer.verdict, Verdict::NoSuchLimiter) {
            return;
        }
        let known = self.epochs.entry(instance).or_insert((answer.epoch, 0));
        known.1 = answer.epoch;
        self.versions.insert(instance, answer.version);
        match (plan, &answer.verdict) {
            (Plan::Acquire { no, .. } | Plan::PutBack(no, _), Verdict::Granted { fence, order }) => {
                self.learn_notice(instance, &Notice::Granted { no: *no, fence: *fence, order: *order });
            }
            (Plan::Acquire { no, .. } | Plan::PutBack(no, _), Verdict::Queued { order, .. }) => {
                self.orders.insert((instance, *no), *order);
            }
            (_, Verdict::Synced(Synced { config: Some(config), .. })) => {
                self.configs.insert(instance, ConfigView::clone(config));
            }
            _ => {}
        }
        for notice in &answer.notices {
            self.learn_notice(instance, notice);
        }
    }

    pub(super) fn learn_notice(&mut self, instance: usize, notice: &Notice) {
        if let Notice::Granted { no, fence, order } = notice {
            self.orders.insert((instance, *no), *order);
            self.fences.insert((instance, *no), *fence);
        }
    }
}
