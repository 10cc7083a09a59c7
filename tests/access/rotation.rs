//! Secrets and certificates that are renewed while limiters are at work. Nobody is restarted, and nobody loses a permit.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fairq::{Client, ClientBuilder, Completions, Error, Outage, Permit, PermitState, Request};

use crate::login::{password_file, server_with_user};
use crate::scene::{Load, limiter};
use crate::stores::{granted, guarded, open, patient, queue_up, take};
use crate::support::{Authority, SOON, Server, Tls, eventually, eventually_some};
use crate::tls::{showing, start, trusting};

/// Some who work all the time, one who holds, and one who waits behind it.
struct Service {
    client: Client,
    load: Load,
    held: Permit,
    waiting: Completions,
    _ticket: fairq::Ticket,
}

impl Service {
    fn start(builder: impl Fn() -> ClientBuilder) -> Service {
        let client = builder().open().expect("open");
        let other = builder().open().expect("open");
        let load = Load::start(vec![limiter(&client, "load", 2), limiter(&other, "load", 2)], 3);
        let line = limiter(&client, "line", 1);
        let (held, waiting) = (take(&line), Completions::new());
        let ticket = queue_up(&limiter(&other, "line", 1), &waiting, 1, &patient(), 0);
        load.wait_for_more(20);
        Service { client, load, held, waiting, _ticket: ticket }
    }

    /// A limiter whose requests fail as soon as it is known that they cannot be asked.
    fn hasty(&self) -> fairq::Limiter {
        open(self.client.limiter("hasty").limit(1).outage(Outage::Fail))
    }

    /// All goes on as if nothing had been.
    #[track_caller]
    fn goes_on(self) {
        self.load.wait_for_more(50);
        assert_ne!(self.held.state(), PermitState::Lost);
        eventually("it is confirmed", SOON, || self.held.is_valid());
        self.held.release().expect("release");
        granted(&self.waiting, 1).release().expect("release");
        assert!(self.load.stop() <= 2, "the limit holds over it");
    }
}

/// Closes every connection but the one that says so.
fn cut_all(server: &Server) {
    for kind in ["normal", "pubsub"] {
        let kill = ["KILL", "TYPE", kind, "SKIPME", "yes"];
        redis::cmd("CLIENT").arg(&kill).exec(&mut server.conn()).expect("CLIENT KILL");
    }
}

fn change_password(server: &Server, password: &str) {
    let rule = ["SETUSER", "app", "resetpass", &format!(">{password}")];
    redis::cmd("ACL").arg(&rule).exec(&mut server.conn()).expect("ACL SETUSER");
}

#[test]
fn a_password_is_renewed_under_load() {
    guarded(|| {
        let server = server_with_user("first");
        let file = password_file(&server, "first\n");
        let service = Service::start(|| Client::builder(&server.url()).username("app").password_file(&file));
        // The file first: nobody notices.
        std::fs::write(&file, "second\n").expect("write");
        change_password(&server, "second");
        cut_all(&server);
        service.load.wait_for_more(50);
        // The server first: an outage, until the file has it.
        change_password(&server, "third");
        cut_all(&server);
        let refused = why_unavailable(&service);
        assert!(refused.contains("password_file") && refused.contains(file.to_str().expect("UTF-8")), "{refused}");
        assert!(!refused.contains("second"), "{refused}");
        assert_ne!(service.held.state(), PermitState::Lost);
        std::fs::write(&file, "third\n").expect("write");
        service.goes_on();
    });
}

/// What a request is told that does not wait.
fn why_unavailable(service: &Service) -> String {
    let hasty = service.hasty();
    eventually_some("it is known why", SOON, || {
        match hasty.acquire(&Request::new().max_wait(Duration::from_millis(500))) {
            Ok(_) | Err(Error::TimedOut { .. }) => None,
            // The connection has gone, and the next attempt is to come.
            Err(Error::Unavailable { detail, .. }) if !detail.contains("_file") => None,
            Err(Error::Unavailable { detail, .. }) => Some(detail),
            Err(other) => panic!("an outage, not {other:?}"),
        }
    })
}

/// Requests that wait through it are served, by each policy in its way.
#[test]
fn who_waits_while_a_password_is_renewed_is_served() {
    guarded(|| {
        let server = server_with_user("first");
        let file = password_file(&server, "first");
        let client = Client::builder(&server.url()).username("app").password_file(&file).open().expect("open");
        let line = limiter(&client, "line", 1);
        take(&line).release().expect("release");
        change_password(&server, "second");
        cut_all(&server);
        let completions = Completions::new();
        line.acquire_start(&patient(), &completions, 1).expect("start");
        let local = open(client.limiter("local").limit(1).outage(Outage::Local { limit: 1 }));
        let admitted = eventually_some("it is admitted locally", SOON, || {
            local.acquire(&Request::new().max_wait(Duration::from_secs(1))).ok()
        });
        std::fs::write(&file, "second").expect("write");
        granted(&completions, 1).release().expect("release");
        eventually("it is counted", SOON, || local.status().is_ok_and(|status| status.used == 1));
        admitted.release().expect("release");
    });
}

/// Asks the server to read its files again, which are others by now.
fn reload(server: &Server, tls: &Tls) {
    let path = |path: &Path| path.display().to_string();
    let mut set = redis::cmd("CONFIG");
    set.arg("SET").arg("tls-ca-cert-file").arg(path(&tls.trusted));
    set.arg("tls-cert-file").arg(path(&tls.own.cert)).arg("tls-key-file").arg(path(&tls.own.key));
    set.exec(&mut server.conn()).expect("CONFIG SET");
}

/// Everything is renewed: the authority, the server's certificate, and the clients'.
#[test]
fn certificates_are_renewed_under_load() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let tls = Tls::by(&old, true);
    let Some(server) = start(tls.clone()) else { return };
    let server = Arc::new(server);
    guarded(move || {
        let own = old.sign("client");
        let service = Service::start(|| showing(trusting(&old, &server.tls_url()), &own));
        new.sign("server").put_into(&tls.own);
        // The authority is in one file for both sides: the clients' new one follows only later.
        let trusted = new.folder().join("trusted.pem");
        std::fs::copy(new.file(), &trusted).expect("copy");
        reload(&server, &Tls { trusted, ..tls });
        cut_all(&server);
        let refused = why_unavailable(&service);
        assert!(refused.contains("tls_ca_file"), "{refused}");
        std::fs::copy(new.file(), old.file()).expect("copy");
        let refused = eventually_some("that was one half of it", SOON, || {
            Some(why_unavailable(&service)).filter(|why| why.contains("tls_cert_file"))
        });
        assert!(refused.contains("does not take"), "{refused}");
        // A key that does not belong to its certificate yet, as between two copies.
        let renewed = new.sign("client");
        std::fs::copy(&renewed.key, &own.key).expect("copy");
        eventually_some("the key is of another", SOON, || {
            Some(why_unavailable(&service)).filter(|why| why.contains("another certificate"))
        });
        assert_ne!(service.held.state(), PermitState::Lost);
        renewed.put_into(&own);
        service.goes_on();
    });
}
