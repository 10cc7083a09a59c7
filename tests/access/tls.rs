//! A request from its place in line to its permit and back, by TLS.

use std::time::Duration;

use fairq::{Client, ClientBuilder, Clock, Completions, Limiter};

use crate::scene::{Line, limiter};
use crate::stores::{granted, guarded, patient, queue_up, take, wait_for_use};
use crate::support::{Authority, Cluster, Flavor, Pair, SOON, Server, Tls, Watched, eventually};

/// A client of whoever this authority has signed, at `url`.
pub fn trusting(authority: &Authority, url: &str) -> ClientBuilder {
    Client::builder(url).tls_ca_file(authority.file())
}

/// One that shows a certificate of its own.
pub fn showing(builder: ClientBuilder, pair: &Pair) -> ClientBuilder {
    builder.tls_cert_file(&pair.cert).tls_key_file(&pair.key)
}

/// `None`: no server here speaks TLS, and this run does not have to have one.
pub fn flavor() -> Option<Flavor> {
    let flavor = Flavor::with_tls();
    if flavor.is_none() {
        eprintln!("skipped: no server that this run is limited to speaks TLS");
    }
    flavor
}

pub fn start(tls: Tls) -> Option<Server> {
    Some(Server::builder(flavor()?).tls(tls).start())
}

/// As many connections as the server has from here by TLS.
fn connections(server: &Server) -> usize {
    let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut server.conn()).expect("CLIENT LIST");
    list.lines().filter(|line| line.contains(&format!("laddr=127.0.0.1:{} ", server.tls_port()))).count()
}

/// Nothing but a message tells the second of its grant: their time stands still, so that they never poll.
fn goes_all_the_way(builder: impl Fn() -> ClientBuilder, name: &str) -> [Limiter; 2] {
    let open = || builder().clock(Clock::manual()).open().expect("open").limiter(name).limit(1).lease(3 * SOON);
    let [ours, theirs] = [(); 2].map(|()| open().open().expect("open"));
    let (held, completions) = (take(&theirs), Completions::new());
    queue_up(&ours, &completions, 1, &patient(), 0);
    held.release().expect("release");
    granted(&completions, 1).release().expect("release");
    wait_for_use(&ours, 0);
    [ours, theirs]
}

#[test]
fn a_permit_goes_round_by_tls() {
    let authority = Authority::new("authority");
    let Some(server) = start(Tls::by(&authority, false)) else { return };
    for host in ["127.0.0.1", "localhost"] {
        let url = server.tls_url().replace("127.0.0.1", host);
        let limiters = goes_all_the_way(|| trusting(&authority, &url), "tls");
        eventually("one for commands and one for messages each", SOON, || connections(&server) == 4);
        drop(limiters);
        eventually("they are gone", SOON, || connections(&server) == 0);
    }
    trusting(&authority, &server.tls_url()).open().expect("open").check().expect("fit for use");
}

#[test]
fn a_permit_goes_round_by_mutual_tls() {
    let authority = Authority::new("authority");
    let Some(server) = start(Tls::by(&authority, true)) else { return };
    let own = authority.sign_for("client", &[], crate::support::Valid::Now);
    // Both in one file, too.
    let both = authority.folder().join("both.pem");
    let text = [&own.cert, &own.key].map(|path| std::fs::read_to_string(path).expect("read")).concat();
    std::fs::write(&both, text).expect("write");
    for pair in [own, Pair { cert: both.clone(), key: both }] {
        goes_all_the_way(|| showing(trusting(&authority, &server.tls_url()), &pair), "mutual");
    }
}

/// By key and value, as every language sets them.
#[test]
fn the_options_have_keys() {
    let authority = Authority::new("authority");
    let Some(server) = start(Tls::by(&authority, true)) else { return };
    let own = authority.sign("client");
    let options = [("tls_ca_file", authority.file()), ("tls_cert_file", own.cert), ("tls_key_file", own.key)];
    let set = |builder: ClientBuilder, (key, path): &(&str, std::path::PathBuf)| {
        builder.option(key, path.to_str().expect("UTF-8")).expect("an option")
    };
    let client = options.iter().fold(Client::builder(&server.tls_url()), set).open().expect("open");
    client.check().expect("fit for use");
    take(&limiter(&client, "keys", 1)).release().expect("release");
}

/// Of a cluster every node is reached by TLS, by the address that the others tell.
#[test]
fn a_cluster_is_used_by_mutual_tls() {
    let authority = Authority::new("authority");
    let Some(flavor) = flavor() else { return };
    let tls = Tls::by(&authority, true);
    let cluster = Cluster::start_with(2, false, || Server::builder(flavor).tls(tls.clone()));
    let own = authority.sign("client");
    let builder = || showing(trusting(&authority, &cluster.tls_url()), &own);
    let client = builder().open().expect("open");
    client.check().expect("fit for use");
    for master in 0..2 {
        goes_all_the_way(builder, &cluster.name_on("tls", master));
        let plain = cluster.node(master);
        let list: String = redis::cmd("CLIENT").arg("LIST").query(&mut plain.conn()).expect("CLIENT LIST");
        let is_ours = |line: &&str| line.contains("lib-name=fairq") || line.contains("cmd=evalsha");
        let by_plain = format!("laddr=127.0.0.1:{} ", plain.port());
        assert!(!list.lines().filter(is_ours).any(|line| line.contains(&by_plain)), "{list}");
    }
    assert_eq!(client.limiters().expect("list").len(), 2);
}

/// The sentinels are asked by TLS, and the next master is reached by it.
#[test]
fn a_master_behind_sentinels_is_followed_by_mutual_tls() {
    let authority = Authority::new("authority");
    let Some(flavor) = flavor() else { return };
    guarded(move || {
        let tls = Tls::by(&authority, true);
        let watched = Watched::start_with(&[], || Server::builder(flavor).tls(tls.clone()));
        let own = authority.sign("client");
        let brisk = || {
            let builder = showing(trusting(&authority, &watched.tls_url()), &own);
            builder.io_timeout(Duration::from_secs(1)).open().expect("open")
        };
        let clients = [brisk(), brisk()];
        clients[0].check().expect("fit for use");
        let line = Line::form(&clients, "line", 4);
        watched.servers[0].kill();
        watched.wait_for_another(0, &[0, 1, 2]);
        line.serve();
    });
}
