//! Passwords stay where they are: not in errors, not in `Debug`, and in no event of the library's or of those below it, at
//! whatever level. A test binary of its own, since it listens to all that the process says.

#[path = "support/mod.rs"]
mod support;

use std::fmt::{Debug, Display, Write as _};
use std::sync::Mutex;
use std::time::Duration;

use fairq::{Client, ClientBuilder, Completions, Error, Limiter, Outage, Request};
use support::{Authority, Flavor, SOON, Server, Tls, eventually};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const SECRET: &str = "hunter2-and-more";

/// All that was said.
static SAID: Mutex<String> = Mutex::new(String::new());

struct Everything;

struct Writer<'a>(&'a mut String);

impl Visit for Writer<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        writeln!(self.0, "{field}={value:?}").expect("a string takes everything");
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Writer(&mut SAID.lock().expect("no panic in it")));
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Writer(&mut SAID.lock().expect("no panic in it")));
    }
    fn event(&self, event: &Event<'_>) {
        let mut said = SAID.lock().expect("no panic in it");
        writeln!(said, "{}", event.metadata().target()).expect("a string takes everything");
        event.record(&mut Writer(&mut said));
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Notes what a caller could show to somebody.
fn note<T: Debug, E: Debug + Display>(result: &Result<T, E>) {
    let told = match result {
        Ok(good) => format!("{good:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    SAID.lock().expect("no panic in it").push_str(&told);
}

#[test]
fn passwords_are_told_to_nobody_whatever_happens() {
    tracing::subscriber::set_global_default(Everything).expect("the only one");
    let server = Server::builder(Server::default_flavor()).password(SECRET).start();
    let at = |login: &str| format!("redis://{login}@127.0.0.1:{}", server.port());
    work(Client::builder(&at(&format!(":{SECRET}"))));
    work(Client::builder(&at("default").replace("default@", "")).password(SECRET));
    with_a_password_file(&server);
    let keys = with_certificates();
    survive_an_outage(&server, &at(&format!(":{SECRET}")));
    for login in [format!(":x{SECRET}"), format!("nobody:{SECRET}"), SECRET.to_owned(), format!(":{SECRET}/x")] {
        fail(&at(&login));
    }
    fail(&format!("rediss://:{SECRET}@127.0.0.1:{}", server.port())); // which speaks no TLS
    fail(&format!("redis://:{SECRET}@127.0.0.1:1"));
    fail(&format!("unix:///nobody.sock?user=u&pass={SECRET}"));
    fail(&format!("unix:///nobody.sock?db=x&pass={SECRET}"));
    fail(&format!("redis://:{SECRET}@h:99999"));
    fail(&format!("http://:{SECRET}@h"));
    fail(&format!("me:{SECRET}@h"));
    lack_a_right(&server, &at(&format!("app:{SECRET}")));

    let said = SAID.lock().expect("no panic in it");
    assert!(said.contains("fairq::"), "nothing was heard:\n{said}");
    // Of the password file, when the server did not take any more what was in it; and when it did again.
    assert!(said.contains("not let in any more") && said.contains("let in again"), "operators are not told:\n{said}");
    let secrets = || keys.iter().map(String::as_str).chain([SECRET]);
    let lines: Vec<&str> = said.lines().filter(|line| secrets().any(|secret| line.contains(secret))).collect();
    assert!(lines.is_empty(), "{lines:#?}");
}

fn open(client: &Client) -> Limiter {
    client.limiter("secrets").limit(1).outage(Outage::Fail).open().expect("open")
}

/// The file has the right password, then another, while somebody holds a permit.
fn with_a_password_file(server: &Server) {
    let file = server.folder().join("password");
    std::fs::write(&file, SECRET).expect("write");
    let builder = Client::builder(&format!("redis://127.0.0.1:{}", server.port())).password_file(&file);
    work(builder.clone());
    let client = builder.clone().open().expect("open");
    let limiter = open(&client);
    let held = limiter.acquire(&Request::new());
    std::fs::write(&file, format!("x{SECRET}")).expect("write");
    fail_with(builder);
    redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec(&mut server.conn()).expect("CLIENT KILL");
    eventually("it is noticed", SOON, || {
        let asked = limiter.acquire(&Request::new().max_wait(Duration::from_millis(100)));
        note(&asked);
        asked.is_err_and(|error| error.to_string().contains("password_file"))
    });
    std::fs::write(&file, SECRET).expect("write");
    eventually("it is back", SOON, || limiter.status().is_ok());
    note(&held.expect("a permit").release());
}

/// The right certificate, and keys that are no good. Returns what must not be told of these.
fn with_certificates() -> Vec<String> {
    let Some(flavor) = Flavor::with_tls() else { return Vec::new() };
    let authority = Authority::new("authority");
    let server = Server::builder(flavor).tls(Tls::by(&authority, true)).start();
    let (own, another) = (authority.sign("own"), authority.sign("another"));
    let showing = |key: &std::path::Path| {
        let builder = Client::builder(&server.tls_url()).tls_ca_file(authority.file());
        builder.tls_cert_file(&own.cert).tls_key_file(key)
    };
    work(showing(&own.key));
    fail_with(showing(&another.key));
    let text = std::fs::read_to_string(&own.key).expect("read");
    let garbled = authority.folder().join("garbled");
    std::fs::write(&garbled, text.replace('M', "-")).expect("write");
    fail_with(showing(&garbled));
    let lines = |path| std::fs::read_to_string(path).expect("read").lines().map(str::to_owned).collect::<Vec<_>>();
    let keys = [&own.key, &another.key, &garbled].into_iter().flat_map(lines);
    keys.filter(|line| line.len() > 20 && !line.contains("PRIVATE")).collect()
}

/// Everything goes well.
fn work(builder: ClientBuilder) {
    let (one, two) = (builder.clone().open(), builder.open());
    note(&one);
    let (one, two) = (one.expect("open"), two.expect("open"));
    note(&one.check());
    let (first, second) = (open(&one), open(&two));
    let held = first.acquire(&Request::new());
    note(&held);
    let done = Completions::new();
    note(&second.acquire_start(&Request::new().wait_forever(), &done, 1));
    note(&first.waiters());
    note(&held.expect("a permit").release());
    note(&done.poll(1, SOON).pop().expect("a grant").result);
    note(&first.status());
    note(&one.limiters());
    note(&one.close(Duration::ZERO));
}

/// The server goes away while somebody holds and waits, and comes back.
fn survive_an_outage(server: &Server, url: &str) {
    let client = Client::open(url).expect("open");
    let limiter = open(&client);
    let held = limiter.acquire(&Request::new()).expect("a permit");
    server.kill();
    note(&limiter.acquire(&Request::new().max_wait(Duration::from_millis(100))));
    note(&limiter.status());
    note(&client.check());
    server.restart();
    eventually("it is back", SOON, || limiter.status().is_ok());
    note(&held.release());
}

fn fail(url: &str) {
    fail_with(Client::builder(url));
}

fn fail_with(builder: ClientBuilder) {
    let client = builder.connect_timeout(Duration::from_secs(1)).open();
    note(&client);
    let Ok(client) = client else { return };
    note(&Ok::<_, Error>(client.url().to_owned()));
    let checked = client.check();
    note(&checked);
    assert!(checked.is_err(), "this was to fail: {}", client.url());
    let asked = open(&client).acquire(&Request::new().max_wait(Duration::from_millis(100)));
    note(&asked);
    assert!(asked.is_err(), "this was to fail: {}", client.url());
}

fn lack_a_right(server: &Server, url: &str) {
    let user = ["SETUSER", "app", "reset", "on", &format!(">{SECRET}"), "~*", "&*", "+@all", "-zadd"];
    redis::cmd("ACL").arg(&user).exec(&mut server.conn()).expect("ACL SETUSER");
    fail(url);
}
