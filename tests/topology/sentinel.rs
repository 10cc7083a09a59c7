//! A service watched by sentinels: how the master is found, and found again.

use std::net::TcpListener;

use fairq::{Completions, Error, Request};

use crate::scene::*;
use crate::stores::{granted, guarded, patient, queue_up, take};
use crate::support::{Flavor, SERVICE, SOON, Server, Watched, eventually};

#[test]
fn another_master_is_chosen() {
    guarded(|| another_master_is_chosen_on(Server::default_flavor()));
}

/// First the sentinels are asked to change it, then it dies; the line is the same on the other side.
fn another_master_is_chosen_on(flavor: Flavor) {
    let watched = Watched::start(flavor, &[]);
    let clients = [brisk(&watched.url()), brisk(&watched.url())];
    clients[0].check().expect("it is fit");
    let line = Line::form(&clients, "line", 6);
    assert_eq!(clients[0].limiters().expect("list"), ["line"]);
    let old = watched.master(0);
    redis::cmd("SENTINEL").arg("FAILOVER").arg(SERVICE).exec(&mut watched.sentinels[0].conn()).expect("FAILOVER");
    let master = watched.wait_for_another(old, &[0, 1, 2]);
    let mut fences = line.serve();
    eventually("the old one has become a replica", 2 * SOON, || watched.role(old).contains("slave"));
    a_message_comes_through(&watched);
    let line = Line::form(&clients, "line", 6);
    watched.servers[master].kill();
    watched.wait_for_another(master, &[0, 1, 2]);
    fences.extend(line.serve());
    assert!(fences.is_sorted_by(|a, b| a < b), "fences grow: {fences:?}");
}

/// Nobody stays subscribed to a server on which nobody publishes: there is no poll to help out.
fn a_message_comes_through(watched: &Watched) {
    let [ours, theirs] = [(); 2].map(|()| unhurried(&watched.url(), "message"));
    let (held, completions) = (take(&theirs), Completions::new());
    queue_up(&ours, &completions, 1, &patient(), 0);
    held.release().expect("release");
    granted(&completions, 1).release().expect("release");
}

#[test]
#[ignore = "takes all kinds of servers"]
fn another_master_is_chosen_on_all_servers() {
    for flavor in Flavor::available() {
        eprintln!("-- on {flavor}");
        another_master_is_chosen_on(flavor);
    }
}

/// S46: of the sentinels one hangs, and another address leads nowhere.
#[test]
fn sentinels_that_hang_keep_nobody_from_the_master() {
    guarded(|| {
        let watched = Watched::start(Server::default_flavor(), &[]);
        let nowhere = TcpListener::bind("127.0.0.1:0").expect("bind"); // accepts, and says nothing
        let port = nowhere.local_addr().expect("an address").port();
        watched.sentinels[0].pause();
        let client = brisk(&watched.url_by(&format!("127.0.0.1:{port},{}", watched.sentinel_list())));
        let line = Line::form(std::slice::from_ref(&client), "line", 3);
        watched.servers[0].kill();
        watched.wait_for_another(0, &[1, 2]);
        line.serve();
        watched.sentinels[0].resume();
    });
}

#[test]
fn sentinels_that_do_not_know_the_service_say_so() {
    let server = Server::start(Server::default_flavor());
    let lines = format!("sentinel monitor {SERVICE} 127.0.0.1 {} 1\n", server.port());
    let sentinel = Server::builder(Server::default_flavor()).sentinel(&lines).start();
    let url = |service: &str| format!("redis-sentinel://127.0.0.1:{}/{service}", sentinel.port());
    take(&limiter(&brisk(&url(SERVICE)), "right", 1)).release().expect("release");
    let wrong = limiter(&brisk(&url("another")), "wrong", 1);
    let refused = wrong.acquire(&Request::new().max_wait(SOON));
    assert!(matches!(&refused, Err(Error::Config { detail }) if detail.contains("another")), "{refused:?}");
    let no_sentinel = brisk(&format!("redis-sentinel://127.0.0.1:{}/{SERVICE}", server.port()));
    let error = no_sentinel.check().expect_err("it is no sentinel");
    assert!(error.to_string().contains(&server.port().to_string()), "{error}");
}
