//! Masters of a cluster go away, and others take their place.

use std::time::{Duration, Instant};

use fairq::{Error, Outage, Request};

use crate::scene::*;
use crate::stores::{guarded, open, take};
use crate::support::{Cluster, Flavor, SOON, Server, eventually};

#[test]
fn another_master_takes_over() {
    guarded(|| another_master_takes_over_on(Server::default_flavor()));
}

/// First in agreement, then after the death of one.
fn another_master_takes_over_on(flavor: Flavor) {
    let cluster = Cluster::start(flavor, 3, true);
    let clients = [brisk(&cluster.url()), brisk(&cluster.url())];
    planned(&cluster, &clients);
    killed(&cluster, &clients);
}

fn planned(cluster: &Cluster, clients: &[fairq::Client]) {
    let line = Line::form(clients, &cluster.name_on("planned", 0), 6);
    cluster.fail_over(0);
    let start = Instant::now();
    line.serve();
    eprintln!("planned: served after {:?}", start.elapsed());
    cluster.wait_until_settled();
}

/// What lives elsewhere has no part in it, whatever its outage policy.
fn killed(cluster: &Cluster, clients: &[fairq::Client]) {
    let line = Line::form(clients, &cluster.name_on("killed", 1), 6);
    let name = cluster.name_on("elsewhere", 2);
    let elsewhere = open(builder(&clients[0], &name, 1).outage(Outage::Fail));
    let local = open(builder(&clients[0], &cluster.name_on("local", 2), 1).outage(Outage::Local { limit: 5 }));
    let there = open(builder(&clients[0], &cluster.name_on("there", 1), 1).outage(Outage::Fail));
    take(&there).release().expect("release");
    let (held, start) = (take(&local), Instant::now());
    cluster.node(1).kill();
    eventually("the outage policy of its limiters acts", SOON, || {
        // The others are served all the while (the cluster may close down for a moment, when it counts its votes).
        let patient = Request::new().max_wait(SOON);
        elsewhere.acquire(&patient).expect("its master is alive").release().expect("release");
        let brief = Request::new().max_wait(Duration::from_millis(100));
        matches!(there.acquire(&brief), Err(Error::Unavailable { .. }))
    });
    assert!(local.try_acquire(&Request::new()).expect("its master is alive").is_none(), "nothing is admitted locally");
    line.assert_still();
    held.release().expect("release");
    eventually("its replica takes over", 2 * SOON, || cluster.is_master(cluster.replica_of(1)));
    eprintln!("killed: the cluster took {:?}", start.elapsed());
    let start = Instant::now();
    line.serve();
    eprintln!("killed: served {:?} after that", start.elapsed());
    soon(&there).release().expect("release");
}

#[test]
#[ignore = "takes all kinds of servers"]
fn another_master_takes_over_on_all_servers() {
    for flavor in Flavor::available() {
        eprintln!("-- on {flavor}");
        another_master_takes_over_on(flavor);
    }
}

/// Many take and give back while their master is killed. Whoever was admitted by it in its last moments, and is unknown to
/// the new one, brings that back: so the limit holds as long as everybody can report within the grace.
#[test]
#[ignore = "long"]
fn the_limit_holds_while_a_master_dies_under_load() {
    for flavor in Flavor::available() {
        eprintln!("-- on {flavor}");
        let cluster = Cluster::start(flavor, 3, true);
        let (name, limit) = (cluster.name_on("load", 0), 3);
        let limiters = (0..3).map(|_| limiter(&brisk(&cluster.url()), &name, limit)).collect();
        let load = Load::start(limiters, 8);
        load.wait_for_more(200);
        let start = Instant::now();
        cluster.node(0).kill();
        load.wait_for_more(200);
        eprintln!("{flavor}: grants again after {:?}", start.elapsed());
        assert!(load.stop() <= limit);
    }
}
