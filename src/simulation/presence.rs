//! Who is taken for dead because its subscription is gone (`lua/lib/look.lua`), step by step, since neither the model nor
//! the simulation's network knows who listens.

use std::sync::Arc;

use super::redis::{Redis, Rewrite, words};
use crate::settings::{Declaration, Settings};
use crate::store::model::Caller;
use crate::store::redis::test_access;
use crate::store::{Answer, Call, Header, Notice, Verb, Verdict};

/// Microseconds, as in the script.
const LOOK: u64 = 200_000;
const SUSPICION: u64 = 700_000;
pub(super) const LEASE: u64 = 10_000_000;
pub(super) const IDLE: u64 = 3 * LEASE;

/// A server, and a clock in microseconds.
pub(super) struct Scene {
    pub redis: Redis,
    pub now: u64,
    /// Of the configuration that all know; 0: none.
    pub version: u64,
    limit: u64,
    epoch: u64,
}

impl Scene {
    pub(super) fn new(rewrite: Option<&Rewrite>, limit: u64) -> Self {
        Scene { redis: Redis::new(rewrite.cloned()), now: 1_700_000_000_000_000, version: 0, limit, epoch: 0 }
    }

    /// Of one who is subscribed, and says so.
    pub(super) fn call(&mut self, instance: &str, verb: Verb) -> Answer {
        self.ask(instance, verb, test_access::command_of_listener)
    }

    fn deaf_call(&mut self, instance: &str, verb: Verb) -> Answer {
        self.ask(instance, verb, test_access::command)
    }

    fn ask(&mut self, instance: &str, verb: Verb, command: fn(&Call, &Caller) -> ::redis::Cmd) -> Answer {
        let settings = Settings { limit: self.limit, lease: LEASE / 1000, idle: IDLE / 1000, ..Settings::default() };
        let declaration = Arc::new(Declaration { declared: settings.words(), ..Declaration::default() });
        let header = Header { epoch: self.epoch, bare: true, version: self.version, declaration };
        let call = Call { limiter: "l".into(), header, verb };
        let caller = Caller { instance: instance.into(), generation: 1, run: "run".into(), sent: self.now };
        self.redis.set_wall(self.now);
        let answer = test_access::read(&call, self.redis.execute(&words(&command(&call, &caller))));
        self.epoch = answer.epoch;
        answer
    }

    fn subscribe(&mut self, instance: &str, is_heard: bool) {
        self.redis.set_heard(&format!("fq:{instance}"), is_heard);
    }

    /// One who is subscribed, and holds or waits.
    fn joins(&mut self, instance: &str) {
        self.subscribe(instance, true);
        self.call(instance, acquire());
    }

    fn used(&mut self) -> u64 {
        match self.deaf_call("onlooker", Verb::Status).verdict {
            Verdict::Status(status) => status.used,
            other => panic!("{other:?}"),
        }
    }

    /// Of the one who waits: whether it is granted by now.
    fn is_granted(&mut self, instance: &str, after: u64) -> bool {
        self.now += after;
        let notices = self.call(instance, sync()).notices;
        notices.iter().any(|notice| matches!(notice, Notice::Granted { .. }))
    }
}

pub(super) fn acquire() -> Verb {
    Verb::Acquire { no: 1, cost: 1, may_wait: true, order: 0, label: "".into() }
}

pub(super) fn sync() -> Verb {
    Verb::Sync { version: 0, heads: vec![1] }
}

/// All of these on scripts that may be others than ours.
pub(super) fn all(rewrite: &Rewrite) {
    let rewrite = Some(rewrite);
    dead_one(rewrite);
    one_that_reports(rewrite);
    one_that_is_heard_again(rewrite);
    unjudged(rewrite);
    nothing_wanted(rewrite);
    silence(rewrite);
    crowd(rewrite);
    hint(rewrite);
    lone_waiter(rewrite);
    probe(rewrite);
}

/// Suspected at the first look, dead at the first after the time of suspicion: neither sooner nor later.
fn dead_one(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.joins("ann");
    scene.joins("bob");
    let looks = scene.redis.looks();
    scene.subscribe("ann", false);
    assert!(!scene.is_granted("bob", LOOK) && scene.redis.looks() == looks, "it was looked just now");
    assert!(!scene.is_granted("bob", 1) && scene.redis.looks() == looks + 1);
    for _ in 0..3 {
        assert!(!scene.is_granted("bob", SUSPICION / 3));
    }
    scene.now += SUSPICION % 3;
    assert!(!scene.is_granted("bob", 0), "not before the time of suspicion is over");
    assert!(scene.is_granted("bob", LOOK + 1));
}

/// Any call of its own clears it, and the suspicion has to begin anew.
fn one_that_reports(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.joins("ann");
    scene.joins("bob");
    scene.subscribe("ann", false);
    assert!(!scene.is_granted("bob", LOOK + 1), "suspected");
    scene.now += SUSPICION / 2;
    scene.call("ann", Verb::Sync { version: 0, heads: Vec::new() });
    for _ in 0..4 {
        assert!(!scene.is_granted("bob", LOOK + 1), "the suspicion is a new one");
    }
    assert!(scene.is_granted("bob", SUSPICION));
    // One that says that it does not listen is not judged at all.
    scene.deaf_call("ann", acquire());
    assert_eq!(scene.used(), 1);
    let mut scene = Scene::new(rewrite, 1);
    scene.joins("ann");
    scene.joins("bob");
    scene.subscribe("ann", false);
    assert!(!scene.is_granted("bob", LOOK + 1), "suspected");
    scene.deaf_call("ann", Verb::Sync { version: 0, heads: Vec::new() });
    for _ in 0..8 {
        assert!(!scene.is_granted("bob", SUSPICION / 2), "it lives as long as its lease");
    }
}

/// Its subscription is there again: it is not suspected any more.
fn one_that_is_heard_again(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.joins("ann");
    scene.joins("bob");
    scene.subscribe("ann", false);
    assert!(!scene.is_granted("bob", LOOK + 1), "suspected");
    scene.subscribe("ann", true);
    assert!(!scene.is_granted("bob", SUSPICION / 2));
    scene.subscribe("ann", false);
    assert!(!scene.is_granted("bob", SUSPICION / 2), "suspected anew");
    assert!(!scene.is_granted("bob", SUSPICION));
    assert!(scene.is_granted("bob", LOOK + 1));
}

/// Who does not listen here does not judge, and is not judged; nobody judges itself.
fn unjudged(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.deaf_call("ann", acquire());
    scene.joins("bob");
    scene.subscribe("bob", false);
    for _ in 0..8 {
        assert!(!scene.is_granted("bob", SUSPICION / 2), "ann never listened");
    }
    scene.call("ann", Verb::Cancel([7].into())); // and now it does, subscribed or not
    let looks = scene.redis.looks();
    for _ in 0..4 {
        scene.now += SUSPICION / 2;
        scene.deaf_call("bob", sync());
    }
    assert_eq!(scene.redis.looks(), looks, "bob does not listen");
    assert!(!scene.is_granted("bob", 1), "suspected");
    assert!(scene.is_granted("bob", SUSPICION + 1), "and dead; but bob is not, though nobody hears it");
}

/// As long as there is a slot for everybody, nobody looks.
fn nothing_wanted(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 3);
    scene.joins("ann");
    scene.joins("bob");
    scene.subscribe("ann", false);
    let looks = scene.redis.looks();
    for _ in 0..4 {
        scene.now += SUSPICION / 2;
        scene.call("bob", sync());
    }
    assert_eq!(scene.redis.looks(), looks);
    scene.joins("cy"); // takes the last slot; who comes next should find one
    assert_eq!(scene.redis.looks(), looks + 1);
}

/// After a silence nobody is taken for dead before everybody could report.
fn silence(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.joins("ann");
    scene.joins("bob");
    let looks = scene.redis.looks();
    scene.subscribe("ann", false);
    assert!(!scene.is_granted("bob", LEASE * 51 / 100));
    let calm = LEASE * 5 / 12;
    assert!(!scene.is_granted("bob", calm - 1) && scene.redis.looks() == looks, "it is calm");
    assert!(!scene.is_granted("bob", 1) && scene.redis.looks() == looks + 1, "suspected");
    assert!(scene.is_granted("bob", SUSPICION + 1));
}

/// One look is at 64, those who were silent longest.
fn crowd(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 100);
    for no in 0..99 {
        scene.joins(&format!("i{no:02}"));
        scene.now += 100;
    }
    scene.joins("bob");
    (0..99).for_each(|no| scene.subscribe(&format!("i{no:02}"), false));
    scene.now += LOOK + 1;
    scene.call("bob", sync());
    scene.now += SUSPICION + 1;
    scene.call("bob", sync());
    scene.now += 1;
    scene.call("bob", sync());
    assert_eq!(scene.used(), 100 - 64);
}

/// Who stands in front looks again soon; the others when something is due.
fn hint(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    for instance in ["ann", "bob", "cy", "di", "ed"] {
        scene.joins(instance);
        scene.now += 10;
    }
    let mut next = |instance: &str| match scene.call(instance, sync()).verdict {
        Verdict::Synced(synced) => synced.next.expect("a lease ends some time").as_micros() as u64,
        other => panic!("{other:?}"),
    };
    assert_eq!(["bob", "cy", "di"].map(&mut next), [LOOK; 3]);
    assert!(next("ed") > LEASE / 2);
    assert!(next("ann") > LEASE / 2, "it does not wait");
}

/// Who is alone has nobody to look after; and a lease that ends sooner than the next look is not missed for it.
fn lone_waiter(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 0);
    scene.joins("ann");
    let next = |scene: &mut Scene| match scene.call("ann", sync()).verdict {
        Verdict::Synced(synced) => synced.next.expect("a lease ends some time").as_micros() as u64,
        other => panic!("{other:?}"),
    };
    assert!(next(&mut scene) > LEASE / 2);
    scene.joins("bob");
    scene.now += LEASE * 45 / 100;
    assert_eq!(next(&mut scene), LOOK);
    scene.now += LEASE * 45 / 100;
    next(&mut scene);
    scene.now += LEASE / 10 - LOOK / 2;
    assert!(next(&mut scene) <= LOOK / 2 + 1000, "bob's lease is over then");
}

/// Who asks for it is sent a message, and told what it holds; nobody else is.
fn probe(rewrite: Option<&Rewrite>) {
    let mut scene = Scene::new(rewrite, 1);
    scene.joins("ann");
    scene.redis.take_published();
    assert_eq!(scene.call("ann", sync()).notices, []);
    assert_eq!(scene.redis.take_published(), []);
    let told = scene.ask("ann", sync(), test_access::probing_command).notices;
    assert!(matches!(told[..], [Notice::Granted { no: 1, .. }]), "{told:?}");
    assert_eq!(scene.redis.take_published(), [("fq:ann".to_owned(), "0 p".to_owned())]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_listen_any_more_is_dead_after_a_while() {
        dead_one(None);
    }

    #[test]
    fn who_reports_is_not_suspected_any_more() {
        one_that_reports(None);
    }

    #[test]
    fn who_is_heard_again_is_not_suspected_any_more() {
        one_that_is_heard_again(None);
    }

    #[test]
    fn only_who_listens_judges_and_is_judged() {
        unjudged(None);
    }

    #[test]
    fn nobody_looks_while_nothing_is_wanted() {
        nothing_wanted(None);
    }

    #[test]
    fn a_silence_is_no_death() {
        silence(None);
    }

    #[test]
    fn one_look_is_at_some() {
        crowd(None);
    }

    #[test]
    fn who_stands_in_front_looks_more_often() {
        hint(None);
    }

    #[test]
    fn who_is_alone_looks_after_nobody() {
        lone_waiter(None);
    }

    #[test]
    fn a_probe_is_published_and_reminds() {
        probe(None);
    }
}
