//! What the simulation has found, told without it: the fewest calls that went wrong.

use std::sync::Arc;
use std::time::Duration;

use super::link::{Mail, SharedMailbox};
use super::redis::{Redis, words};
use crate::clock::Clock;
use crate::settings::{Declaration, Settings};
use crate::store::model::Caller;
use crate::store::redis::test_access;
use crate::store::{Answer, Call, Header, Notice, RestoreKind, Restored, Standing, Verb, Verdict, Was};
use crate::{Client, Completions, Request};

const LEASE: u64 = 10_000_000;

/// A server, and a clock in microseconds.
struct Server {
    redis: Redis,
    now: u64,
    limit: u64,
    /// In milliseconds.
    lease: u64,
    run: &'static str,
    /// For how long commands are under way, in microseconds.
    late: u64,
}

impl Server {
    fn new(limit: u64) -> Self {
        Server { redis: Redis::new(None), now: 1_700_000_000_000_000, limit, lease: LEASE / 1000, run: "run", late: 0 }
    }

    fn call(&mut self, (instance, generation): (&str, u64), epoch: u64, bare: bool, verb: Verb) -> Answer {
        let declared = Settings { limit: self.limit, lease: self.lease, ..Settings::default() }.words();
        let declaration = Arc::new(Declaration { declared, declares: epoch == 0, ..Declaration::default() });
        let call = Call { limiter: "l".into(), header: Header { epoch, bare, version: 0, declaration }, verb };
        let caller = Caller { instance: instance.into(), generation, run: self.run.into(), sent: self.now - self.late };
        self.redis.set_wall(self.now);
        test_access::read(&call, self.redis.execute(&words(&test_access::command(&call, &caller))))
    }
}

fn acquire(no: u64) -> Verb {
    Verb::Acquire { no, cost: 1, may_wait: true, order: 0, label: "".into() }
}

fn sync(heads: &[u64]) -> Verb {
    Verb::Sync { version: 0, heads: heads.to_vec() }
}

/// A command of an older connection comes through when its instance has been forgotten, and its generation with it.
#[test]
fn a_late_command_of_a_forgotten_instance_is_refused() {
    let mut server = Server::new(1);
    let epoch = server.call(("ann", 1), 0, true, acquire(1)).epoch;
    server.call(("ann", 2), epoch, true, Verb::Cancel([1, 2].into_iter().collect()));
    server.now += 3 * LEASE;
    server.call(("bob", 1), epoch, true, sync(&[])); // and ann is forgotten
    server.now += LEASE;
    server.late = 4 * LEASE;
    assert_eq!(server.call(("ann", 1), epoch, true, acquire(2)).verdict, Verdict::Refused);
    server.late = LEASE - 1;
    let alive = server.call(("ann", 2), epoch, true, acquire(3)).verdict;
    assert!(matches!(alive, Verdict::Granted { .. }), "slow, but sent after that: {alive:?}");
}

/// The same after a loss of state, which forgets everybody.
#[test]
fn a_late_command_from_before_a_loss_of_state_is_refused() {
    let mut server = Server::new(1);
    let epoch = server.call(("ann", 1), 0, true, acquire(1)).epoch;
    server.redis.execute(&[b"FLUSHALL".to_vec()]);
    server.late = 200_000;
    assert_eq!(server.call(("ann", 1), epoch, true, acquire(2)).verdict, Verdict::Refused);
    server.late = 0;
    server.call(("bob", 1), epoch, false, Verb::Restore(Vec::new()));
    server.late = 200_000;
    assert_eq!(server.call(("ann", 1), epoch, true, acquire(2)).verdict, Verdict::Refused);
}

/// Should one get in all the same (the wall clock was set back), its instance finds the slot when it connects anew.
#[test]
fn a_slot_that_a_late_command_took_is_found_by_its_instance() {
    let mut server = Server::new(1);
    let epoch = server.call(("ann", 1), 0, true, acquire(1)).epoch;
    let fence = match server.call(("ann", 1), epoch, false, acquire(1)).verdict {
        Verdict::Granted { fence, .. } => fence,
        other => panic!("{other:?}"),
    };
    server.call(("ann", 2), epoch, false, Verb::Release([(1, fence)].into()));
    server.now += 3 * LEASE;
    server.call(("bob", 1), epoch, true, sync(&[])); // and ann is forgotten
    let late = server.call(("ann", 1), epoch, true, acquire(2));
    assert!(matches!(late.verdict, Verdict::Granted { .. }), "{late:?}");
    let told = server.call(("ann", 2), epoch, true, acquire(3)).notices;
    assert!(matches!(told[..], [Notice::Granted { no: 2, .. }]), "{told:?}");
    assert!(server.call(("ann", 2), epoch, false, sync(&[3])).notices.is_empty(), "once for each connection");
}

/// The clock was set back between; and the second loss is met first by one who has not seen the first.
#[test]
fn an_epoch_is_never_one_that_somebody_else_remembers() {
    let mut server = Server::new(1);
    let first = server.call(("ann", 1), 0, true, acquire(1)).epoch;
    server.now -= 3 * LEASE;
    server.redis.execute(&[b"FLUSHALL".to_vec()]);
    let second = server.call(("bob", 1), first, false, Verb::Restore(Vec::new())).epoch;
    server.now += 7;
    server.redis.execute(&[b"FLUSHALL".to_vec()]);
    let third = server.call(("ann", 1), first, false, Verb::Restore(Vec::new())).epoch;
    assert_ne!(second, third);
}

/// Two losses within a second, the second of which is met first by one who has missed the first. The others do not take
/// what he opened for an older state that has come back, which would cost a second grace.
#[test]
fn a_loss_of_state_opens_one_epoch_whoever_meets_it_first() {
    let mut server = Server::new(1);
    let first = server.call(("ann", 1), 0, true, acquire(1)).epoch;
    server.now += 900_000;
    server.redis.execute(&[b"FLUSHALL".to_vec()]);
    let second = server.call(("bob", 1), first, false, Verb::Restore(Vec::new())).epoch;
    server.now += 100_000;
    server.redis.execute(&[b"FLUSHALL".to_vec()]);
    let third = server.call(("ann", 1), first, false, Verb::Restore(Vec::new())).epoch;
    assert!(third > second);
    assert_eq!(server.call(("bob", 1), second, false, Verb::Restore(Vec::new())).epoch, third);
}

/// More than the limit was in use, and an operator can see it, also after another fail-over.
#[test]
fn what_comes_back_over_the_limit_is_counted() {
    let mut server = Server::new(2);
    let old = server.call(("ann", 1), 0, true, acquire(1));
    server.redis.execute(&[b"FLUSHALL".to_vec()]);
    server.now += 1000;
    server.call(("bob", 1), 0, true, acquire(1));
    for no in [1, 2] {
        server.call(("ann", 1), old.epoch, false, brought_back(RestoreKind::Held, no, (no, no)));
    }
    for run in ["run", "another"] {
        server.run = run;
        let Verdict::Status(view) = server.call(("cy", 1), 0, true, Verb::Status).verdict else { panic!() };
        assert_eq!(view.overshoot, 1, "three of two");
    }
}

/// A permit that was admitted locally before it was ever in line has no order. Put back, it stood before everybody, and where no sweep
/// looked.
#[test]
fn a_local_permit_gets_a_place_when_it_is_counted() {
    let mut server = Server::new(1);
    let bobs = server.call(("bob", 1), 0, true, acquire(1));
    server.call(("cy", 1), bobs.epoch, true, acquire(1));
    server.now += 1000;
    let back = server.call(("ann", 1), bobs.epoch, false, brought_back(RestoreKind::Local, 1, (0, 0))).verdict;
    let Verdict::Restored(all) = back else { panic!("{back:?}") };
    let [Standing::Held { fence, order }] = all[..] else { panic!("{all:?}") };
    assert_eq!(order, server.now);
    let again = server.call(("ann", 1), bobs.epoch, false, Verb::PutBack { no: 1, fence }).verdict;
    assert!(matches!(again, Verdict::Queued { order, position: 2, .. } if order == server.now), "{again:?}");
}

/// A permit that was admitted locally has no fence, and its ticket may still be queued here.
#[test]
fn a_local_permit_that_is_put_back_takes_nothing_with_it() {
    let mut server = Server::new(1);
    let epoch = server.call(("ann", 1), 0, true, acquire(1)).epoch;
    server.call(("bob", 1), epoch, true, acquire(1));
    let put_back = |no| Verb::PutBack { no, fence: 0 };
    assert_eq!(server.call(("bob", 1), epoch, false, put_back(7)).verdict, Verdict::Gone);
    let again = server.call(("bob", 1), epoch, false, put_back(1)).verdict;
    assert!(matches!(again, Verdict::Queued { .. }), "ann holds it: {again:?}");
}

/// Two outages, and between them the time was too short for everybody to report.
#[test]
fn two_outages_in_a_row_cost_nobody_a_permit() {
    let mut server = Server::new(2);
    let epoch = server.call(("ann", 1), 0, true, acquire(1)).epoch;
    server.call(("bob", 1), epoch, true, acquire(1));
    for _ in 0..2 {
        server.now += 3 * LEASE;
        server.call(("bob", 1), epoch, false, sync(&[]));
    }
    let held = Restored { kind: RestoreKind::Check, no: 1, order: 0, fence: 0, cost: 1, label: "".into() };
    let answer = server.call(("ann", 1), epoch, false, Verb::Restore(vec![held])).verdict;
    assert!(matches!(&answer, Verdict::Restored(all) if matches!(all[..], [Standing::Held { .. }])), "{answer:?}");
    // But rare visitors do not keep the dead in place for ever.
    for _ in 0..4 {
        server.now += 3 * LEASE;
        server.call(("cy", 1), epoch, true, sync(&[]));
    }
    let Verdict::Status(status) = server.call(("cy", 1), epoch, true, Verb::Status).verdict else { panic!() };
    assert_eq!((status.used, status.instances), (0, 1));
}

fn brought_back(kind: RestoreKind, no: u64, (order, fence): (u64, u64)) -> Verb {
    Verb::Restore(vec![Restored { kind, no, order, fence, cost: 1, label: "".into() }])
}

/// Another server takes over while ann holds the only slot and bob is next. Returns what ann knows of her permit, with
/// the old epoch, and the new one, in which bob has reported.
fn fail_over(server: &mut Server) -> (u64, (u64, u64), u64) {
    let old = server.call(("ann", 1), 0, true, acquire(1));
    let Verdict::Granted { fence, order } = old.verdict else { panic!("{old:?}") };
    let bobs = server.call(("bob", 1), old.epoch, true, acquire(1)).verdict;
    let Verdict::Queued { order: bobs, .. } = bobs else { panic!("{bobs:?}") };
    server.run = "another";
    let again = server.call(("bob", 2), old.epoch, false, brought_back(RestoreKind::Waiting, 1, (bobs, 0)));
    assert_eq!(again.verdict, Verdict::Restored(vec![Standing::Queued]));
    (old.epoch, (order, fence), again.epoch)
}

fn is_granted(answer: &Answer) -> bool {
    matches!(&answer.verdict, Verdict::Synced(synced) if matches!(synced.heads[..], [Standing::Held { .. }]))
}

/// Found after a fail-over on a busy machine: a client came after two thirds of the lease, and was passed by others.
#[test]
fn after_a_fail_over_who_is_known_to_hold_is_waited_for() {
    let mut server = Server::new(1);
    let (old, anns, epoch) = fail_over(&mut server);
    server.now += LEASE * 9 / 10;
    assert!(!is_granted(&server.call(("bob", 2), epoch, false, sync(&[1]))), "ann may be on her way");
    let back = server.call(("ann", 2), old, false, brought_back(RestoreKind::Held, 1, anns)).verdict;
    assert!(matches!(back, Verdict::Restored(all) if matches!(all[..], [Standing::Held { .. }])));
    server.call(("ann", 2), epoch, false, Verb::Release([(1, anns.1)].into()));
    assert!(is_granted(&server.call(("bob", 2), epoch, false, sync(&[1]))), "all have reported, and the grace is over");
}

#[test]
fn after_a_fail_over_nobody_is_waited_for_longer_than_a_lease() {
    let mut server = Server::new(1);
    let (_, _, epoch) = fail_over(&mut server);
    for _ in 0..2 {
        server.now += LEASE / 2 - 1;
        assert!(!is_granted(&server.call(("bob", 2), epoch, false, sync(&[1]))));
    }
    server.now += 2;
    assert!(is_granted(&server.call(("bob", 2), epoch, false, sync(&[1]))));
}

/// Finding the new master takes its time, however short the lease is.
#[test]
fn after_a_fail_over_a_short_lease_leaves_time_to_report() {
    let mut server = Server::new(1);
    server.lease = 300;
    let (old, anns, epoch) = fail_over(&mut server);
    for _ in 0..39 {
        server.now += 100_000;
        assert!(!is_granted(&server.call(("bob", 2), epoch, false, sync(&[1]))));
    }
    let back = server.call(("ann", 2), old, false, brought_back(RestoreKind::Held, 1, anns)).verdict;
    assert!(matches!(back, Verdict::Restored(all) if matches!(all[..], [Standing::Held { .. }])));
    // Without her, the time would be the shortest that leaves everybody a chance whom this server does not know.
    let status = server.call(("ann", 2), epoch, false, Verb::Status).verdict;
    assert!(matches!(status, Verdict::Status(view) if view.grace.as_millis() == 100), "of four seconds");
}

/// What is sent again (a script was not known, a slot has moved) may come behind what was sent after it. So whoever starts a
/// ticket of which a forged message has spoken waits until the number was given back, or that would take the ticket along.
#[test]
fn a_request_is_not_sent_before_its_number_was_given_back() {
    let mailbox = SharedMailbox::default();
    let mut listener = None;
    let (client, engine) = Client::by_hand("ann", Clock::manual(), Duration::from_secs(1), |weak| {
        listener = Some(weak);
        Box::new(Mail(mailbox.clone()))
    });
    let listener = listener.and_then(|weak| weak.upgrade()).expect("a listener");
    let limiter = client.limiter("l").limit(1).open().expect("open");
    let (ticket, completions) = (limiter.ticket(), Completions::new());
    for _ in 0..2 {
        listener.notices("l", 1, vec![Notice::Granted { no: 1, fence: 1, order: 1 }]);
    }
    limiter.acquire_start_with(&ticket, &Request::new(), &completions, 1).expect("start");
    engine.look_until_idle();
    let mut calls: Vec<_> = mailbox.lock().calls.drain(..).collect();
    assert!(matches!(calls[..], [(Call { verb: Verb::Cancel(_), .. }, _)]), "once, and nothing else");
    let gone = Answer { epoch: 1, version: 0, notices: Vec::new(), verdict: Verdict::Cancelled([Was::Unknown].into()) };
    calls.pop().expect("a call").1(Ok(gone));
    let calls: Vec<_> = mailbox.lock().calls.drain(..).map(|(call, _)| call).collect();
    assert!(matches!(calls[..], [Call { verb: Verb::Acquire { no: 1, .. }, .. }]), "{calls:?}");
    engine.dismantle();
}
