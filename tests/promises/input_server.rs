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

/// A client of a user that has the documented rights, less one.
fn client_without(server: &Server, right: &str) -> Client {
    let rule = fairq::redis_acl();
    let mut user = vec!["SETUSER", "app", "reset", "on", ">pw"];
    user.extend(rule.split(' ').filter(|word| *word != format!("+{right}")));
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

#[test]
fn a_key_of_another_type_under_our_name_is_left_alone() {
    let server = start();
    for part in ["", ":queue", ":held", ":tickets", ":instances"] {
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
    let key = format!("fq:{{{NAME}}}:tickets");
    redis::cmd("SET").arg(&key).arg("precious").exec(&mut server.conn()).expect("SET");
    assert!(config_error(limiter.try_acquire(&Request::new()).map(drop)).contains("WRONGTYPE"));
    let value: String = redis::cmd("GET").arg(&key).query(&mut server.conn()).expect("GET");
    assert_eq!(value, "precious");
    redis::cmd("DEL").arg(&key).exec(&mut server.conn()).expect("DEL");
    drop(held);
    wait_for_use(&limiter, 0);
}
