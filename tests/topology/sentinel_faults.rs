//! Fail-overs that lose what was acknowledged, and a master that does not know that it is none any more.

use std::time::{Duration, Instant};

use fairq::{Client, Completions, Permit, PermitState, Request};

use crate::scene::*;
use crate::stores::{guarded, next, patient, take, wait_for_line};
use crate::support::{Flavor, Proxy, SOON, Server, Watched, eventually};

#[test]
fn acknowledged_writes_are_lost_and_the_line_is_not() {
    guarded(|| acknowledged_writes_are_lost_on(Server::default_flavor()));
}

/// The replicas stand still while the line forms: the next master has never heard of it.
fn acknowledged_writes_are_lost_on(flavor: Flavor) {
    let watched = Watched::start(flavor, &[]);
    let clients = [brisk(&watched.url()), brisk(&watched.url()), brisk(&watched.url())];
    let before = take(&limiter(&clients[0], "line", 1));
    let first = before.fence();
    before.release().expect("release");
    let replicas = &watched.servers[1..];
    // Their connections end, and nothing of what is written from here on is on its way to them.
    replicas.iter().for_each(Server::pause);
    let kill = ["KILL", "TYPE", "replica"];
    redis::cmd("CLIENT").arg(&kill).exec(&mut watched.servers[0].conn()).expect("CLIENT KILL");
    let line = Line::form(&clients, "line", 6);
    watched.servers[0].kill();
    replicas.iter().for_each(Server::resume);
    let start = Instant::now();
    watched.wait_for_another(0, &[0, 1, 2]);
    eprintln!("{flavor}: the sentinels took {:?}", start.elapsed());
    let start = Instant::now();
    let fences = line.serve();
    eprintln!("{flavor}: served {:?} after that", start.elapsed());
    assert!(fences[0] > first);
}

#[test]
#[ignore = "takes all kinds of servers"]
fn acknowledged_writes_are_lost_on_all_servers() {
    for flavor in Flavor::available() {
        acknowledged_writes_are_lost_on(flavor);
    }
}

/// A master that stood still does not know that another was chosen, and for some seconds nobody tells it. Clients that kept
/// their connections to it follow the sentinels all the same.
#[test]
fn clients_leave_a_master_that_believes_in_itself() {
    guarded(|| clients_leave_a_master_that_believes_in_itself_on(Server::default_flavor()));
}

fn clients_leave_a_master_that_believes_in_itself_on(flavor: Flavor) {
    let watched = Watched::start(flavor, &[]);
    let patient = || {
        let timeout = Duration::from_secs(60); // it does not give up its connection
        Client::builder(&watched.url()).connect_timeout(TIMEOUT).io_timeout(timeout).open().expect("open")
    };
    let limiters = [limiter(&patient(), "split", 2), limiter(&brisk(&watched.url()), "split", 2)];
    let held: Vec<Permit> = limiters.iter().map(take).collect();
    watched.servers[0].pause();
    let master = watched.wait_for_another(0, &[0, 1, 2]);
    watched.servers[0].resume();
    let start = Instant::now();
    let sees = |limiter: &fairq::Limiter| limiter.status().is_ok_and(|status| status.used == 2);
    eventually("all hold it on the new master", SOON, || limiters.iter().all(sees) && has(&watched, master, "split"));
    eprintln!("{flavor}: all are at the new master {:?} after the old one was back", start.elapsed());
    assert!(held.iter().all(|permit| permit.state() != PermitState::Lost));
    assert!(limiters[1].try_acquire(&Request::new()).expect("ask").is_none(), "both slots are taken");
}

/// A request is on its way to a server that hangs, and the connection is given up after everybody has left it: the one
/// that it is waited on does not come up again.
#[test]
fn a_request_that_went_down_with_the_old_master_is_asked_again() {
    guarded(|| {
        let watched = Watched::start(Server::default_flavor(), &[]);
        let slow = Client::builder(&watched.url()).connect_timeout(TIMEOUT).io_timeout(Duration::from_secs(6));
        let slow = limiter(&slow.open().expect("open"), "stuck", 1);
        take(&slow).release().expect("release");
        watched.servers[0].pause();
        let completions = Completions::new();
        slow.acquire_start(&patient(), &completions, 1).expect("start");
        watched.wait_for_another(0, &[0, 1, 2]);
        let other = limiter(&brisk(&watched.url()), "stuck", 1);
        other.acquire_start(&patient(), &completions, 2).expect("start");
        let mut served = [0, 0].map(|_| {
            let completion = next(&completions); // whichever comes first to the new master
            completion.result.expect("a permit").release().expect("release");
            completion.token
        });
        served.sort_unstable();
        assert_eq!(served, [1, 2]);
        watched.servers[0].resume();
    });
}

fn has(watched: &Watched, server: usize, name: &str) -> bool {
    let exists =
        redis::cmd("HEXISTS").arg(format!("fq:{{{name}}}")).arg("state").query(&mut watched.servers[server].conn());
    exists.unwrap_or(false)
}

/// What is admitted twice while two masters believe in themselves: the clients of the old one leave it within some seconds
/// (a round of the scout), and it may have admitted up to the limit until then.
#[test]
#[ignore = "long"]
fn the_overshoot_of_a_split_is_bounded() {
    for flavor in Flavor::available() {
        for replicas_needed in ["0", "1"] {
            overshoot_of_a_split(flavor, replicas_needed, false);
        }
    }
}

/// Some clients are cut off from the sentinels together with the old master, and stay with it. Nobody can keep the limit
/// over both masters; each keeps it, and afterwards there is one again.
#[test]
#[ignore = "long"]
fn the_overshoot_of_a_split_that_has_clients_on_both_sides_is_bounded() {
    for replicas_needed in ["0", "1"] {
        overshoot_of_a_split(Server::default_flavor(), replicas_needed, true);
    }
}

fn overshoot_of_a_split(flavor: Flavor, replicas_needed: &str, both_sides: bool) {
    let watched =
        Watched::start(flavor, &[("--min-replicas-to-write", replicas_needed), ("--min-replicas-max-lag", "2")]);
    let limit = 3;
    let proxies: Vec<Proxy> = watched.sentinels.iter().map(|sentinel| Proxy::to(sentinel.port())).collect();
    let addresses: Vec<String> = proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
    let client = || limiter(&brisk(&watched.url()), "split", limit);
    let far = || limiter(&brisk(&watched.url_by(&addresses.join(","))), "split", limit);
    let load = Load::start(vec![client(), client(), far(), far()], 6);
    load.wait_for_more(100);
    if both_sides {
        proxies.iter().for_each(Proxy::hang);
    }
    watched.servers[0].pause();
    watched.wait_for_another(0, &[0, 1, 2]);
    watched.servers[0].resume();
    let start = Instant::now();
    load.wait_for_more(300);
    proxies.iter().for_each(Proxy::heal);
    load.wait_for_more(300);
    let most = load.stop();
    eprintln!(
        "{flavor}, {replicas_needed} replicas needed, clients on both sides: {both_sides}: at most {most} of {limit}, {:?}",
        start.elapsed()
    );
    assert!(most <= 2 * limit);
    let fresh = client();
    wait_for_line(&fresh, 0);
    soon(&fresh).release().expect("release");
}
