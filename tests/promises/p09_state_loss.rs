//! P9, state loss: whatever Redis forgets, the living bring back what they hold and wait for, in the original order, and
//! the limiter goes on.

mod crowd;

use std::time::Duration;

use crate::support::*;
use crate::tools::*;
use crate::workers::*;
use crowd::Crowd;
use fairq::*;

const LEASE: Duration = Duration::from_secs(1);

fn flush(server: &Server) {
    raw::<()>(server, "FLUSHALL");
}

#[test]
fn after_flushall_everybody_is_back_in_the_original_order() {
    for flavor in Flavor::available() {
        let server = Server::start(flavor);
        let crowd = Crowd::gather(&server, LEASE);
        flush(&server);
        crowd.wait_until_back();
        crowd.finish();
    }
}

#[test]
fn a_second_flushall_in_the_middle_of_the_restore_changes_nothing() {
    let server = server();
    let crowd = Crowd::gather(&server, LEASE);
    for _ in 0..5 {
        flush(&server);
        let [hash, ..] = keys("a");
        eventually("somebody has begun to restore", SOON, || run(&server, &["EXISTS", &hash]));
    }
    crowd.wait_until_back();
    crowd.finish();
}

/// S13
#[test]
fn whichever_key_is_deleted_the_limiter_heals_and_the_limit_holds() {
    let server = server();
    let mut crowd = Crowd::gather(&server, LEASE);
    for key in keys("a") {
        crowd.note();
        assert_eq!(run::<u64>(&server, &["DEL", &key]), 1);
        crowd.wait_until_back();
    }
    crowd.finish();
}

/// Two keys at once, as an eviction policy may take them.
#[test]
fn whichever_two_keys_are_deleted_the_limiter_heals() {
    let server = server();
    let mut crowd = Crowd::gather(&server, LEASE / 2);
    let keys = keys("a");
    for (i, one) in keys.iter().enumerate() {
        for other in &keys[i + 1..] {
            crowd.note();
            assert_eq!(run::<u64>(&server, &["UNLINK", one, other]), 2);
            crowd.wait_until_back();
        }
    }
    crowd.finish();
}

#[test]
fn a_key_of_another_type_is_an_error_that_changes_nothing_and_heals_when_it_is_gone() {
    let server = server();
    for key in keys("a") {
        flush(&server);
        let crowd = Crowd::gather(&server, LEASE / 2);
        let everything = |skipped: &str| -> Vec<Option<Vec<u8>>> {
            let others = keys("a").into_iter().filter(|key| key != skipped);
            others.map(|key| run(&server, &["DUMP", &key])).collect()
        };
        run::<()>(&server, &["SET", &key, "something else"]);
        let before = everything(&key);
        let (_client, newcomer) = open(&server.url(), "a", 3, LEASE / 2);
        let refused = newcomer.acquire(&Request::new()).unwrap_err();
        assert!(matches!(refused, Error::Config { .. }), "{key}: {refused:?}");
        assert_eq!(everything(&key), before, "{key}");
        run::<()>(&server, &["DEL", &key]);
        crowd.wait_until_back();
        crowd.finish();
    }
}

#[test]
fn a_restart_without_persistence_loses_nobody() {
    let server = server();
    let crowd = Crowd::gather(&server, 2 * LEASE);
    server.restart();
    crowd.wait_until_back();
    crowd.finish();
}

/// S18, with a dump that is older than the last permits.
#[test]
fn a_restart_from_an_old_dump_loses_nobody_and_fifty_holders_finish() {
    let server = server();
    let (_one, first) = open(&server.url(), "a", 50, 2 * LEASE);
    let (_two, second) = open(&server.url(), "a", 50, 2 * LEASE);
    let hold = |count: usize| (0..count).map(|i| [&first, &second][i % 2].acquire(&Request::new()).expect("a permit"));
    let mut permits: Vec<Permit> = hold(25).collect();
    let returned: Vec<Permit> = hold(10).collect();
    raw::<()>(&server, "SAVE");
    returned.into_iter().for_each(|permit| permit.release().expect("release"));
    permits.extend(hold(25));
    let before = first.status().expect("status");
    server.restart();
    wait_status(&first, "all are back", |s| s.epoch > before.epoch && s.used == 50 && s.grace == Duration::ZERO);
    assert!(first.try_acquire(&Request::new()).expect("try").is_none(), "above the limit");
    permits.iter().for_each(assert_kept);
    let last = permits.iter().map(Permit::fence).max();
    permits.into_iter().for_each(|permit| permit.release().expect("release"));
    let next = first.acquire(&Request::new()).expect("a permit");
    assert!(Some(next.fence()) > last, "the fences go on");
    next.release().expect("release");
    assert_empty(&server, &first);
}

/// S43
#[test]
fn flushall_under_load_breaks_neither_the_limit_nor_the_order_and_needs_no_restart() {
    let server = server();
    let mut workers = start_all(3, &Setup::new(&server.url(), "a", 3, LEASE));
    workers.iter_mut().for_each(|worker| worker.tell("churn 4 20"));
    for _ in 0..4 {
        wait_grants(&workers, 40);
        flush(&server);
    }
    wait_grants(&workers, 40);
    end_all(&mut workers);
    let holds: Vec<Hold> = workers.iter().flat_map(Worker::holds).collect();
    check_limit(&holds, 3);
    check_order(&holds);
    for worker in &workers {
        let fine = |r: &Report| r.what != "released" || r.words[0] == "ok";
        let bad = |r: &Report| r.what == "failed" || r.what == "event" || !fine(r);
        assert!(!worker.reports().iter().any(bad), "{:?}", worker.reports().iter().find(|r| bad(r)));
    }
    assert_empty(&server, &open(&server.url(), "a", 3, LEASE).1);
}

#[test]
fn a_server_that_keeps_forgetting_the_scripts_is_taught_them_again() {
    let server = server();
    let mut workers = start_all(2, &Setup::new(&server.url(), "a", 2, LEASE));
    workers.iter_mut().for_each(|worker| worker.tell("churn 3 0"));
    let goal = grants(&workers) + 300;
    eventually("work goes on under SCRIPT FLUSH", SOON, || {
        raw::<()>(&server, "SCRIPT FLUSH");
        grants(&workers) >= goal
    });
    end_all(&mut workers);
    let holds: Vec<Hold> = workers.iter().flat_map(Worker::holds).collect();
    check_limit(&holds, 2);
    check_order(&holds);
    for worker in &workers {
        let failed = worker.reports().iter().find(|report| report.what == "failed").cloned();
        assert!(failed.is_none(), "{failed:?}");
    }
}

#[test]
fn on_a_full_server_everything_works_but_new_requests_and_these_heal() {
    for flavor in Flavor::available() {
        let server = Server::start(flavor);
        let (_one, first) = open(&server.url(), "a", 2, LEASE / 2);
        let (_two, second) = open(&server.url(), "a", 2, LEASE / 2);
        let [given, kept] = [(); 2].map(|()| first.acquire(&Request::new()).expect("a permit"));
        let done = Completions::new();
        let tickets = line_up(&second, &done, 0..3);
        raw::<()>(&server, "CONFIG SET maxmemory 1");
        let refused = first.acquire(&Request::new().max_wait(ms(200))).unwrap_err();
        assert!(matches!(refused, Error::Overloaded { .. }), "{flavor}: {refused:?}");
        assert!(tickets[1].cancel());
        assert_eq!(done.poll(1, SOON)[0].result.as_ref().unwrap_err(), &Error::Cancelled);
        wait_status(&first, "the cancel came through", |s| s.waiting == 2);
        given.release().expect("release");
        let (token, granted) = take(&done);
        assert_eq!(token, 0);
        let_pass(&server, "a", 2 * LEASE);
        assert_kept(&kept);
        assert_kept(&granted);
        let patient = first.acquire_start(&Request::new().wait_forever(), &done, 3).expect("start");
        raw::<()>(&server, "CONFIG SET maxmemory 0");
        eventually("the patient one is in line", SOON, || patient.last_position().is_some());
        drop((kept, granted));
        let mut last = [take(&done), take(&done)];
        last.sort_by_key(|(_, permit)| permit.fence());
        assert_eq!(last.each_ref().map(|(token, _)| *token), [2, 3], "overtaken");
        drop(last);
        assert_empty(&server, &first);
    }
}

/// As when two servers take over from one another twice, before either has copied the other's data: the run id is the one
/// that wrote the state. There are no messages, by which the owners would hear of the dead.
#[test]
fn an_older_state_that_comes_back_brings_no_ended_ticket_along() {
    let server = server();
    let client = Client::builder(&server.url()).subscribe(false).open().expect("open the client");
    let limiter = limiter(&client, "a", 1, LEASE);
    let (given, done) = (limiter.acquire(&Request::new()).expect("a permit"), Completions::new());
    line_up(&limiter, &done, 0..3);
    let old = keys("a").map(|key| (run::<Vec<u8>>(&server, &["DUMP", &key]), key));
    flush(&server);
    wait_status(&limiter, "all are back", |s| (s.used, s.waiting, s.grace) == (1, 3, Duration::ZERO));
    given.release().expect("release");
    let (_, first) = take(&done);
    first.release().expect("release");
    let (token, second) = take(&done);
    assert_eq!(token, 1);
    let mut put_back = redis::pipe();
    for (state, key) in &old {
        put_back.cmd("RESTORE").arg(key).arg(0).arg(state).arg("REPLACE");
    }
    put_back.atomic().exec(&mut server.conn()).expect("RESTORE");
    wait_status(&limiter, "the living are back", |s| (s.used, s.waiting) == (1, 1));
    assert_kept(&second);
    second.release().expect("release");
    let (token, last) = take(&done);
    assert_eq!(token, 2);
    drop(last);
    assert_empty(&server, &limiter);
}

/// Nobody can know of a permit before its owner has reported, and then it is taken, over the limit: that is counted.
#[test]
fn what_comes_back_over_the_limit_is_counted() {
    let server = server();
    let newcomer = || {
        let client = Client::open(&server.url()).expect("open");
        client.limiter("a").limit(1).lease(LEASE).open().expect("open")
    };
    let older = newcomer();
    let held = older.acquire(&Request::new()).expect("a permit");
    let too_many = eventually_some("somebody is admitted before the older one reports", SOON, || {
        flush(&server);
        newcomer().try_acquire(&Request::new()).expect("ask")
    });
    let stands = || older.status().is_ok_and(|status| (status.used, status.overshoot_total) == (2, 1));
    eventually("the older one is back", SOON, stands);
    assert_ne!(held.state(), PermitState::Lost);
    held.release().expect("release");
    too_many.release().expect("release");
    let status = older.status().expect("status");
    assert_eq!((status.used, status.overshoot_total), (0, 1));
}
