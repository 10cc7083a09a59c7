//! Bad input at the server's side: URLs, passwords, rights, and keys that belong to somebody else.

use std::time::Duration;

use fairq::{Client, Completions, Error, Limiter, Outage, Request};

use crate::stores::*;
use crate::support::{Flavor, SOON, Server, eventually};

#[track_caller]
fn config_error<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Config { detail }) => detail,
        other => panic!("not an error of configuration: {other:?}"),
    }
}

fn start() -> Server {
    Server::start(Server::default_flavor())
}

fn open_at(url: &str) -> Limiter {
    limiter(&Client::open(url).expect("open"), 1)
}

fn keys(server: &Server) -> Vec<String> {
    redis::cmd("KEYS").arg("*").query(&mut server.conn()).expect("KEYS")
}

#[test]
fn urls_that_mean_nothing_are_refused() {
    for url in ["http://localhost", "localhost:6379", "redis", "://", "redis://", "redis://h:99999", "redis://h/x"] {
        let error = Client::open(url).expect_err(url);
        assert!(matches!(error, Error::Invalid { what: "url", .. }), "{url}: {error:?}");
    }
}

#[test]
fn a_wrong_password_is_named_and_not_shown() {
    let server = Server::builder(Server::default_flavor()).password("right").start();
    for login in ["", ":wr0ng@", "nobody:wr0ng@"] {
        let url = format!("redis://{login}127.0.0.1:{}", server.port());
        let client = Client::open(&url).expect("open");
        for detail in [config_error(limiter(&client, 1).acquire(&patient())), config_error(client.check())] {
            assert!(detail.contains("password"), "{detail}");
            assert!(!detail.contains("wr0ng"), "{detail}");
        }
    }
    take(&open_at(&server.url())).release().expect("release");
}

#[test]
fn a_wrong_password_is_an_error_of_configuration_under_every_outage_policy() {
    let server = Server::builder(Server::default_flavor()).password("right").start();
    for outage in [Outage::Wait, Outage::Fail, Outage::Local { limit: 5 }] {
        let client = Client::open(&format!("redis://:wr0ng@127.0.0.1:{}", server.port())).expect("open");
        let limiter = open(client.limiter(NAME).limit(1).outage(outage));
        for _ in 0..3 {
            config_error(limiter.acquire(&patient()));
        }
    }
}

/// A password where none is asked for is another mistake than a wrong one.
#[test]
fn a_password_for_a_server_that_wants_none_is_named() {
    let server = start();
    let url = format!("redis://:needless@127.0.0.1:{}", server.port());
    let client = Client::open(&url).expect("open");
    for detail in [config_error(limiter(&client, 1).acquire(&patient()).map(drop)), config_error(client.check())] {
        assert!(detail.contains("without any password configured") && !detail.contains("needless"), "{detail}");
    }
}

/// That passes: whoever is let in later need not be started again. With and without a login it says so itself.
#[test]
fn a_server_with_too_many_clients_is_away_and_says_why() {
    let server = Server::builder(Server::default_flavor()).password("right").start();
    let mut admin = server.conn();
    let clients = |number: u32, admin: &mut redis::Connection| {
        redis::cmd("CONFIG").arg("SET").arg("maxclients").arg(number).exec(admin).expect("CONFIG SET");
    };
    for url in [server.url(), server.url().replace(":right@", "")] {
        clients(1, &mut admin);
        let client = Client::open(&url).expect("open");
        let error = client.check().expect_err("there is no room");
        let Error::Unavailable { detail, .. } = &error else { panic!("{error:?}") };
        assert!(detail.contains("max number of clients"), "{detail}");
    }
    let limiter = open_at(&server.url());
    let line = Completions::new();
    limiter.acquire_start(&patient(), &line, 1).expect("start");
    clients(100, &mut admin);
    granted(&line, 1).release().expect("release");
}

/// A client of a user that has the documented rights, less one.
fn client_without(server: &Server, right: &str) -> Client {
    let rule = fairq::redis_acl();
    let mut user = vec!["SETUSER", "app", "reset", "on", ">pw"];
    user.extend(rule.split(' ').filter(|word| word.trim_start_matches('+') != right));
    redis::cmd("ACL").arg(&user).exec(&mut server.conn()).expect("ACL SETUSER");
    Client::open(&format!("redis://app:pw@127.0.0.1:{}", server.port())).expect("open")
}

#[test]
fn the_documented_rights_are_enough() {
    for flavor in Flavor::available() {
        let server = Server::start(flavor);
        let client = client_without(&server, "nothing");
        client.check().expect("fit for use");
        let limiter = limiter(&client, 1);
        let held = take(&limiter);
        let waiting = Completions::new();
        queue_up(&limiter, &waiting, 1, &patient(), 0);
        held.release().expect("release");
        drop(granted(&waiting, 1));
        client.close(Duration::ZERO).expect("close");
    }
}

/// Every right is needed: removed, it is named.
#[test]
fn a_missing_right_is_named_and_nothing_is_half_written() {
    let server = start();
    let rule = fairq::redis_acl();
    for right in rule.split(' ').filter_map(|word| word.strip_prefix('+')) {
        let client = client_without(&server, right);
        let detail = client.check().err().unwrap_or_else(|| panic!("{right} is not missed")).to_string();
        assert!(detail.to_lowercase().contains(right), "{right}: {detail}");
        if right != "subscribe" {
            // without messages it works, by polling
            let detail = config_error(limiter(&client, 1).acquire(&patient()).map(drop));
            assert!(detail.to_lowercase().contains(right), "{right}: {detail}");
        }
    }
    eventually("nothing is left, not even of the self-test", SOON, || keys(&server).is_empty());
}

/// The keys and the channels are rights as well.
#[test]
fn a_user_of_other_keys_or_channels_is_told_so_and_nothing_is_half_written() {
    let server = start();
    for (right, what) in [("~fq:*", "key"), ("&fq:*", "channel")] {
        let client = client_without(&server, right);
        for detail in [
            client.check().err().unwrap_or_else(|| panic!("{right} is not missed")).to_string(),
            config_error(limiter(&client, 1).acquire(&patient()).map(drop)),
        ] {
            assert!(detail.contains(what) && detail.contains("Rights"), "{right}: {detail}");
        }
    }
    eventually("nothing is left, not even of the self-test", SOON, || keys(&server).is_empty());
}

/// What the README names for a part of the users only.
#[test]
fn a_right_that_only_some_need_is_named_to_them() {
    let server = start();
    let port = server.port();
    client_without(&server, "nothing").check().expect("fit for use");
    let database = Client::open(&format!("redis://app:pw@127.0.0.1:{port}/3")).expect("open");
    let detail = config_error(database.check());
    assert!(detail.to_lowercase().contains("select"), "{detail}");
    let detail = config_error(limiter(&database, 1).acquire(&patient()).map(drop));
    assert!(detail.to_lowercase().contains("select"), "{detail}");
    let detail = config_error(Client::open(&format!("redis://app:pw@127.0.0.1:{port}")).expect("open").limiters());
    assert!(detail.contains("scan"), "{detail}");
    redis::cmd("ACL").arg(&["SETUSER", "app", "+select", "+scan"]).exec(&mut server.conn()).expect("ACL SETUSER");
    let limiter = limiter(&database, 1);
    eventually("it is tried again", SOON, || limiter.status().is_ok());
    take(&limiter).release().expect("release");
    assert_eq!(database.limiters().expect("list"), [NAME]);
}

#[test]
fn a_key_of_another_type_under_our_name_is_left_alone() {
    let server = start();
    for part in ["", ":queue", ":held", ":instances"] {
        let key = format!("fq:{{{NAME}}}{part}");
        redis::cmd("SET").arg(&key).arg("precious").exec(&mut server.conn()).expect("SET");
        let limiter = open_at(&server.url());
        let detail = config_error(limiter.acquire(&patient()).map(drop));
        assert!(detail.contains("WRONGTYPE"), "{detail}");
        config_error(limiter.try_acquire(&Request::new()).map(drop));
        assert_eq!(keys(&server), std::slice::from_ref(&key), "nothing was written");
        let value: String = redis::cmd("GET").arg(&key).query(&mut server.conn()).expect("GET");
        assert_eq!(value, "precious");
        redis::cmd("FLUSHALL").exec(&mut server.conn()).expect("FLUSHALL");
    }
}

/// Two versions that keep their records in different ways must not share a limiter, and say so.
#[test]
fn a_record_of_another_version_is_named_and_left_alone() {
    let server = start();
    let limiter = open_at(&server.url());
    drop(take(&limiter));
    wait_for_use(&limiter, 0);
    let key = format!("fq:{{{NAME}}}");
    let mut conn = server.conn();
    let written: Vec<u8> = redis::cmd("HGET").arg(&key).arg("state").query(&mut conn).expect("HGET");
    redis::cmd("HSET").arg(&key).arg("state").arg(&written[8..]).exec(&mut conn).expect("HSET");
    for _ in 0..2 {
        let detail = config_error(limiter.try_acquire(&Request::new()).map(drop));
        assert!(detail.contains("another version"), "{detail}");
    }
    let now: Vec<u8> = redis::cmd("HGET").arg(&key).arg("state").query(&mut conn).expect("HGET");
    assert_eq!(now, &written[8..]);
    redis::cmd("HSET").arg(&key).arg("state").arg(&written).exec(&mut conn).expect("HSET");
    drop(take(&limiter));
}

#[test]
fn a_key_that_somebody_overwrites_while_it_is_in_use_is_named_too() {
    let server = start();
    let limiter = open_at(&server.url());
    let held = take(&limiter);
    let key = format!("fq:{{{NAME}}}:queue");
    redis::cmd("SET").arg(&key).arg("precious").exec(&mut server.conn()).expect("SET");
    assert!(config_error(limiter.try_acquire(&Request::new()).map(drop)).contains("WRONGTYPE"));
    let value: String = redis::cmd("GET").arg(&key).query(&mut server.conn()).expect("GET");
    assert_eq!(value, "precious");
    redis::cmd("DEL").arg(&key).exec(&mut server.conn()).expect("DEL");
    drop(held);
    wait_for_use(&limiter, 0);
}
