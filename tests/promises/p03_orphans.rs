//! P3, conservation: calls that are sent again may come behind those that undo them. That happens when a script is not
//! loaded, and when a limiter moves to another server; either way nothing of a ticket that has ended stays behind.

use std::thread;
use std::time::Duration;

use fairq::{Client, Completions};

use crate::stores::*;
use crate::support::{Proxy, SOON, Server, eventually, tickets_in};

#[test]
fn an_enqueue_that_comes_behind_its_own_cancel_leaves_nothing() {
    let server = Server::start(Server::default_flavor());
    let client = Client::builder(&server.url()).io_timeout(SOON).open().expect("open");
    let (limiter, completions) = (limiter(&client, 1), Completions::new());
    let held = take(&limiter);
    let known = queue_up(&limiter, &completions, 0, &patient(), 0);
    // The server knows the script of a cancel, and has forgotten that of an enqueue.
    redis::cmd("SCRIPT").arg("FLUSH").exec(&mut server.conn()).expect("SCRIPT FLUSH");
    known.cancel();
    wait_for_line(&limiter, 0);
    // Nobody's scripts run, so that the link waits for an answer, and what comes now travels together.
    redis::cmd("CLIENT").arg(&["PAUSE", "60000", "WRITE"]).exec(&mut server.conn()).expect("CLIENT PAUSE");
    let asks = {
        let limiter = limiter.clone();
        thread::spawn(move || limiter.status())
    };
    eventually("the link waits", SOON, || scripts_held_up(&server) > 0);
    let start = |token| limiter.acquire_start(&patient(), &completions, token).expect("start");
    let tickets: Vec<_> = (1..=20).map(start).collect();
    assert!(tickets.iter().all(|ticket| ticket.cancel()));
    redis::cmd("CLIENT").arg("UNPAUSE").exec(&mut server.conn()).expect("CLIENT UNPAUSE");
    asks.join().expect("no panic").expect("a status");
    wait_for_line(&limiter, 0);
    held.release().expect("release");
    eventually("nothing is held", SOON, || {
        limiter.status().is_ok_and(|status| (status.used, status.waiting) == (0, 0))
    });
    assert_eq!(tickets_in(&server, NAME), Vec::<String>::new());
    assert_eq!(completions.poll(100, Duration::ZERO).len(), 21);
}

/// A command is stuck in the network until its instance was forgotten, and its generation with it. That hears no messages,
/// so that nobody would learn of the slot for as long as it goes on.
#[test]
fn a_command_that_comes_when_its_instance_was_forgotten_takes_nothing() {
    let server = Server::start(Server::default_flavor());
    let proxy = Proxy::to(server.port());
    let lease = Duration::from_millis(500);
    let client = Client::builder(&proxy.url()).subscribe(false).open().expect("open");
    let slow = open(client.limiter(NAME).limit(1).lease(lease));
    take(&slow).release().expect("release");
    let stuck = proxy.hold_next_request(b"stuck one");
    let completions = Completions::new();
    slow.acquire_start(&patient().label("stuck one"), &completions, 1).expect("start");
    granted(&completions, 1).release().expect("release"); // by the next connection
    assert!(stuck.is_caught());
    let other = limiter(&Client::open(&server.url()).expect("open"), 1);
    eventually("it is forgotten", SOON, || other.status().is_ok_and(|status| status.instances == 0));
    stuck.deliver();
    eventually("the command came through", SOON, || stuck.is_delivered());
    assert_eq!(tickets_in(&server, NAME), Vec::<String>::new());
    take(&slow).release().expect("release"); // and who is alive is let in
}

/// How many connections have a command that the server has read and not begun.
fn scripts_held_up(server: &Server) -> usize {
    let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.conn()).expect("CLIENT LIST");
    list.lines().filter(|line| !line.contains("cmd=client") && !line.contains(" argv-mem=0 ")).count()
}
