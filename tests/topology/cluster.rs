//! A cluster in which nothing is broken: limiters all over it, and slots that move.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::time::Duration;

use fairq::{Completions, Error, Request};

use crate::scene::*;
use crate::stores::{granted, guarded, patient, queue_up, take, wait_for_line, wait_for_use};
use crate::support::{Cluster, Flavor, SOON, Server, eventually};

/// One for all tests here that leave it in order.
fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(Server::default_flavor(), 3, false))
}

/// S42: names that could lead astray, and many of them, so that each master has some.
#[test]
fn limiters_live_all_over_the_cluster_whatever_their_names() {
    let cluster = shared();
    let client = brisk(&cluster.url());
    let mut names: Vec<String> = (0..200).map(|number| format!("limiter {number}")).collect();
    let odd = ["{a}b", "a{b}c", "{}", "}{", "{{a}}", "%7B", "ünï·cödé 队列", " ", "new\nline", "fq:{a}:queue"];
    names.extend(odd.map(str::to_owned));
    names.push("x".repeat(256));
    let limiters: Vec<_> = names.iter().map(|name| limiter(&client, name, 1)).collect();
    let permits: Vec<_> = limiters.iter().map(take).collect();
    assert!(limiters.iter().all(|limiter| limiter.try_acquire(&Request::new()).expect("ask").is_none()));
    let masters: HashSet<_> = names[..200].iter().map(|name| cluster.owner(name, 0)).collect();
    assert_eq!(masters.len(), 3, "each master has some");
    let listed = client.limiters().expect("list");
    assert!(names.iter().all(|name| listed.contains(name)), "all masters are looked through");
    permits.into_iter().for_each(|permit| permit.release().expect("release"));
    client.close(Duration::ZERO).expect("close");
}

/// A client listens on one node; the limiters are on all three.
#[test]
fn a_wakeup_crosses_the_bus() {
    let cluster = shared();
    for master in 0..3 {
        let name = cluster.name_on("bus", master);
        let [ours, theirs] = [(); 2].map(|()| unhurried(&cluster.url(), &name));
        let (held, completions) = (take(&theirs), Completions::new());
        queue_up(&ours, &completions, 1, &patient(), 0);
        held.release().expect("release");
        granted(&completions, 1).release().expect("release");
    }
}

#[test]
fn a_check_looks_at_every_master() {
    let cluster = shared();
    let info = brisk(&cluster.url()).check().expect("it is fit");
    assert!(!info.version.is_empty() && info.warnings.iter().all(|text| !text.contains("version")), "{info:?}");
    let cluster = Cluster::start(Server::default_flavor(), 2, false);
    let set = ["SET", "maxmemory-policy", "allkeys-lru"];
    redis::cmd("CONFIG").arg(&set).exec(&mut cluster.node(1).conn()).expect("CONFIG SET");
    let client = brisk(&cluster.url());
    let warned = client.check().expect("it is fit").warnings;
    let address = format!("127.0.0.1:{}", cluster.node(1).port());
    assert!(warned.iter().any(|text| text.contains(&address) && text.contains("allkeys-lru")), "{warned:?}");
    cluster.node(1).kill();
    let error = client.check().expect_err("one is down");
    assert!(error.to_string().contains(&address), "{error}");
}

/// The user may do no more than the README says, and that is enough, also while a slot moves.
#[test]
fn the_rights_in_the_readme_are_enough_and_one_connection_to_each_master_is() {
    let cluster = Cluster::start(Server::default_flavor(), 2, false);
    let rule = format!("on >secret {} +cluster|slots +cluster|info +asking", fairq::redis_acl());
    for node in [0, 1] {
        let mut set = redis::cmd("ACL");
        set.arg("SETUSER").arg("app").arg(rule.split(' ').collect::<Vec<_>>());
        set.exec(&mut cluster.node(node).conn()).expect("ACL SETUSER");
    }
    let client = brisk(&cluster.url().replace("://", "://app:secret@"));
    let names: Vec<String> = (0..30).map(|number| format!("rights {number}")).collect();
    let limiters: Vec<_> = names.iter().map(|name| limiter(&client, name, 1)).collect();
    let permits: Vec<_> = limiters.iter().map(take).collect();
    let name = cluster.name_on("rights", 0);
    let moving = limiter(&client, &name, 1);
    take(&moving).release().expect("release");
    let slot = cluster.slot(&name, 0);
    let asks = || eventually("it is asked", SOON, || moving.status().is_ok_and(|status| status.limit == 1));
    cluster.move_slot_watched(slot, 0, 1, || {}, asks);
    soon(&moving).release().expect("release");
    let connections = |node: usize| {
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut cluster.node(node).conn()).expect("CLIENT LIST");
        list.lines().filter(|line| line.contains("user=app") && !line.contains("cmd=cluster")).count()
    };
    assert_eq!(connections(0) + connections(1), 3, "one to each for commands, one for messages");
    assert!(client.url().contains("app:***@") && !format!("{client:?}").contains("secret"));
    drop(permits);
}

/// Without them nobody finds out who has what; and nothing is written anywhere.
#[test]
fn a_right_to_look_around_that_is_missing_is_named() {
    let cluster = Cluster::start(Server::default_flavor(), 1, false);
    for right in ["cluster|slots", "cluster|info"] {
        let rule = format!("SETUSER app reset on >secret {} +cluster|slots +cluster|info +asking", fairq::redis_acl());
        let rule: Vec<&str> = rule.split(' ').filter(|word| word.strip_prefix('+') != Some(right)).collect();
        redis::cmd("ACL").arg(rule).exec(&mut cluster.node(0).conn()).expect("ACL SETUSER");
        let client = brisk(&cluster.url().replace("://", "://app:secret@"));
        let asked = limiter(&client, "rights", 1).acquire(&Request::new().max_wait(SOON)).map(drop);
        for told in [asked, client.check().map(drop)] {
            let named = |detail: &str| detail.contains("'cluster") && detail.contains("Rights");
            assert!(matches!(&told, Err(Error::Config { detail }) if named(detail)), "{right}: {told:?}");
        }
    }
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut cluster.node(0).conn()).expect("KEYS");
    assert!(keys.is_empty(), "{keys:?}");
}

/// The command has other connections of its own.
#[test]
fn the_doctor_examines_every_master() {
    let cluster = shared();
    let run =
        std::process::Command::new(env!("CARGO_BIN_EXE_fairq")).args(["doctor", "--url", &cluster.url()]).output();
    let told = String::from_utf8(run.expect("run fairq").stdout).expect("text");
    for node in 0..3 {
        assert!(told.contains(&format!("master 127.0.0.1:{}", cluster.node(node).port())), "{told}");
    }
    assert_eq!(told.matches("Pub/Sub round trip").count(), 3, "{told}");
    assert!(told.contains("nothing has to change"), "{told}");
}

#[test]
fn the_address_of_one_of_several_masters_is_refused_with_a_hint() {
    let url = shared().node(0).url();
    let client = brisk(&url);
    let refused = |result: Result<(), Error>| match result {
        Err(Error::Config { detail }) => assert!(detail.contains("redis-cluster://"), "{detail}"),
        other => panic!("{other:?}"),
    };
    refused(client.check().map(drop));
    refused(limiter(&client, "alone", 1).acquire(&Request::new().max_wait(SOON)).map(drop));
}

#[test]
fn a_cluster_of_one_master_is_as_good_as_a_single_server() {
    let cluster = Cluster::start(Server::default_flavor(), 1, false);
    for url in [cluster.node(0).url(), cluster.url()] {
        let client = brisk(&url);
        client.check().expect("it is fit");
        take(&limiter(&client, "one", 1)).release().expect("release");
    }
}

/// A node that has never heard of the client's other connections has moved: the map is mended by what the old one says.
#[test]
fn a_slot_moves_while_many_wait() {
    guarded(|| a_slot_moves_while_many_wait_on(shared(), "moves"));
}

/// S3.
pub fn a_slot_moves_while_many_wait_on(cluster: &Cluster, prefix: &str) {
    let clients = [brisk(&cluster.url()), brisk(&cluster.url())];
    let (from, to) = (0, 1);
    let name = cluster.name_on(prefix, from);
    let slot = cluster.slot(&name, from);
    let line = Line::form(&clients, &name, 20);
    // The younger connection is the one to the new owner, or not: both have been used.
    take(&limiter(&clients[0], &cluster.name_on("other", to), 1)).release().expect("release");
    let newcomer = limiter(&clients[1], &name, 1);
    let half_way = || {
        // Half of the keys are here and half there: who comes now has to wait, and is not turned away.
        let brief = newcomer.acquire(&Request::new().max_wait(Duration::from_millis(200)));
        assert!(matches!(brief, Err(Error::TimedOut { .. } | Error::Unavailable { .. })), "{brief:?}");
    };
    let with_keys = || {
        // The new owner answers only who was sent by the old one.
        let sees_all = || newcomer.status().is_ok_and(|status| (status.used, status.waiting) == (1, 20));
        eventually("all are there", SOON, sees_all);
        assert_eq!(cluster.owner(&name, from), Some(from));
    };
    cluster.move_slot_watched(slot, from, to, half_way, with_keys);
    assert_eq!(cluster.owner(&name, to), Some(to));
    line.serve();
}

#[test]
fn an_idle_limiter_moves_and_is_found_again() {
    let cluster = shared();
    let client = brisk(&cluster.url());
    let name = cluster.name_on("idle", 2);
    let limiter = limiter(&client, &name, 3);
    take(&limiter).release().expect("release");
    cluster.move_slot(cluster.slot(&name, 2), 2, 0);
    soon(&limiter).release().expect("release");
    assert_eq!(limiter.status().expect("status").limit, 3);
}

/// Locals of one client: whatever is answered late or sent on, nothing of a ticket stays behind.
#[test]
fn cancels_during_a_move_leave_nothing_behind() {
    let cluster = shared();
    let client = brisk(&cluster.url());
    let name = cluster.name_on("cancels", 1);
    let limiter = limiter(&client, &name, 1);
    let (held, completions) = (take(&limiter), Completions::new());
    let slot = cluster.slot(&name, 1);
    let cancel = |ticket: &fairq::Ticket| {
        ticket.cancel();
    };
    for (turn, (from, to)) in [(1, 2), (2, 1), (1, 2)].into_iter().enumerate() {
        let start = |token| limiter.acquire_start(&patient(), &completions, token).expect("start");
        let before: Vec<_> = (0..20).map(start).collect();
        cluster.move_slot_watched(slot, from, to, || before[..10].iter().for_each(cancel), || {});
        before.iter().for_each(cancel);
        eventually(&format!("all have ended, turn {turn}"), SOON, || {
            completions.poll(100, Duration::ZERO);
            limiter.status().is_ok_and(|status| (status.used, status.waiting) == (1, 0))
        });
    }
    held.release().expect("release");
    wait_for_use(&limiter, 0);
    wait_for_line(&limiter, 0);
}

#[test]
#[ignore = "takes all kinds of servers"]
fn slots_move_on_all_servers() {
    for flavor in Flavor::available() {
        eprintln!("-- on {flavor}");
        let cluster = Cluster::start(flavor, 2, false);
        a_slot_moves_while_many_wait_on(&cluster, "moves");
        let client = brisk(&cluster.url());
        let (name, limits) = (cluster.name_on("load", 0), 3);
        let limiters = vec![limiter(&client, &name, limits), limiter(&brisk(&cluster.url()), &name, limits)];
        let load = Load::start(limiters, 8);
        let slot = cluster.slot(&name, 0);
        for (from, to) in [(0, 1), (1, 0), (0, 1), (1, 0)] {
            load.wait_for_more(50);
            cluster.move_slot(slot, from, to);
            load.wait_for_more(50);
        }
        assert!(load.stop() <= limits, "the limit holds over every move");
    }
}
