//! Everything that can be wrong with certificates is told at the first use, with what to do about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fairq::{Client, ClientBuilder, Error, Outage, Request};

use crate::support::{Authority, Server, Tls, Valid};
use crate::tls::{showing, start, trusting};

/// What a client that is set up like this is told, whether it asks for a permit or for a check.
#[track_caller]
fn told(builder: ClientBuilder) -> String {
    let client = builder.open().expect("its files are not looked at before it connects");
    let checked = client.check().map(drop);
    for outage in [Outage::Wait, Outage::Fail, Outage::Local { limit: 1 }] {
        let limiter = client.limiter("faults").limit(1).outage(outage).open().expect("open");
        let asked = limiter.acquire(&Request::new().max_wait(Duration::from_secs(10))).map(drop);
        assert_eq!(asked, checked, "one and the same thing is wrong");
    }
    match checked {
        Err(Error::Config { detail }) => detail,
        other => panic!("not an error of configuration: {other:?}"),
    }
}

#[track_caller]
fn assert_told(builder: ClientBuilder, words: &[&str]) {
    let detail = told(builder);
    assert!(words.iter().all(|word| detail.contains(word)), "{words:?}: {detail}");
}

fn file(authority: &Authority, name: &str, content: &str) -> PathBuf {
    let path = authority.folder().join(name);
    std::fs::write(&path, content).expect("write");
    path
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("read")
}

#[test]
fn files_that_are_no_good_are_named() {
    let authority = Authority::new("authority");
    let Some(server) = start(Tls::by(&authority, true)) else { return };
    let url = server.tls_url();
    let (own, another) = (authority.sign("own"), authority.sign("another"));
    let builder = || trusting(&authority, &url);
    let garbage = file(&authority, "garbage", "no PEM at all");
    let half = file(&authority, "half", "-----BEGIN CERTIFICATE-----\nMIIB");
    let locked = file(
        &authority,
        "locked",
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    let mut mixed = own.clone();
    for (path, why) in [
        (Path::new("/nowhere/ca.pem"), "no such file"),
        (authority.folder(), "plain file"),
        (&garbage, "BEGIN CERTIFICATE"),
        (&half, "PEM"),
        (&own.key, "no certificate"),
    ] {
        assert_told(Client::builder(&url).tls_ca_file(path), &["tls_ca_file", path.to_str().expect("UTF-8"), why]);
        mixed.cert = path.to_owned();
        assert_told(showing(builder(), &mixed), &["tls_cert_file", path.to_str().expect("UTF-8"), why]);
    }
    mixed = own.clone();
    for (path, why) in [
        (Path::new("/nowhere/key.pem"), "no such file"),
        (&garbage, "no private key"),
        (&own.cert, "no private key"),
        (&locked, "not encrypted"),
        (&another.key, "another certificate"),
    ] {
        mixed.key = path.to_owned();
        assert_told(showing(builder(), &mixed), &["tls_key_file", path.to_str().expect("UTF-8"), why]);
    }
    let key = read(&another.key);
    let secret = key.lines().nth(1).expect("a line of the key");
    mixed.key = another.key;
    assert!(!told(showing(builder(), &mixed)).contains(secret));
}

#[test]
fn a_server_that_cannot_be_trusted_is_refused_and_told_why() {
    let authority = Authority::new("authority");
    let stranger = Authority::new("stranger");
    let namesake = Authority::new("authority");
    let Some(server) = start(Tls::by(&authority, false)) else { return };
    let url = server.tls_url();
    assert_told(trusting(&stranger, &url), &["no authority in tls_ca_file", stranger.file().to_str().expect("UTF-8")]);
    assert_told(trusting(&namesake, &url), &["no authority in tls_ca_file"]);
    assert_told(Client::builder(&url), &["this system does not trust", "tls_ca_file"]);
    for (pair, words) in [
        (authority.sign_for("expired", &["127.0.0.1"], Valid::Before), ["out of date, by", "days: renew"]),
        (authority.sign_for("early", &["127.0.0.1"], Valid::Later), ["not valid yet", "clock"]),
        (authority.sign_for("elsewhere", &["redis.example.org"], Valid::Now), ["redis.example.org", "127.0.0.1"]),
        (authority.own_authority("own"), ["its own authority", "signed"]),
    ] {
        let Some(server) = start(Tls { own: pair, trusted: authority.file(), mutual: false }) else { return };
        assert_told(trusting(&authority, &server.tls_url()), &words);
    }
}

#[test]
fn a_client_that_the_server_does_not_trust_is_told_so() {
    let authority = Authority::new("authority");
    let Some(server) = start(Tls::by(&authority, true)) else { return };
    let builder = || trusting(&authority, &server.tls_url());
    assert_told(builder(), &["wants a client certificate", "tls_cert_file", "tls_key_file"]);
    let stranger = Authority::new("stranger").sign("client");
    assert_told(showing(builder(), &stranger), &["tls_cert_file", "no such file"]); // the folder is gone
    let others = Authority::new("stranger");
    let stranger = others.sign("client");
    assert_told(showing(builder(), &stranger), &["does not take", stranger.cert.to_str().expect("UTF-8")]);
    let expired = authority.sign_for("expired", &[], Valid::Before);
    assert_told(showing(builder(), &expired), &["does not take", "renew"]);
}

/// An older server or client knows only TLS 1.2, in which the handshake goes otherwise.
#[test]
fn older_tls_will_do_and_fails_as_clearly() {
    let authority = Authority::new("authority");
    let Some(flavor) = crate::tls::flavor() else { return };
    let server = Server::builder(flavor).tls(Tls::by(&authority, true)).arg("--tls-protocols", "TLSv1.2").start();
    let builder = || trusting(&authority, &server.tls_url());
    showing(builder(), &authority.sign("client")).open().expect("open").check().expect("fit for use");
    assert_told(builder(), &["client certificate", "tls_cert_file"]);
}

#[test]
fn tls_and_none_do_not_meet_in_silence() {
    let authority = Authority::new("authority");
    let Some(server) = start(Tls::by(&authority, false)) else { return };
    let quick = |builder: ClientBuilder| builder.connect_timeout(Duration::from_millis(500));
    let check = |builder: ClientBuilder| quick(builder).open().expect("open").check().expect_err("it cannot work");
    let to_plain = check(trusting(&authority, &format!("rediss://127.0.0.1:{}", server.port())));
    assert!(to_plain.to_string().contains("TLS on this port"), "{to_plain}");
    let to_tls = check(Client::builder(&format!("redis://127.0.0.1:{}", server.tls_port())));
    assert!(to_tls.to_string().contains("rediss://"), "{to_tls}");
    println!("{to_plain:?}\n{to_tls:?}");
}
