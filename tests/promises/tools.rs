//! What the tests of P7 to P12 do again and again.

use std::ops::Range;
use std::time::Duration;

use crate::support::*;
use fairq::*;
use redis::FromRedisValue;

pub fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The server that one server is enough for.
pub fn server() -> Server {
    Server::start(Server::default_flavor())
}

/// Runs a command, given in words, on a connection of the test's own.
#[track_caller]
pub fn raw<T: FromRedisValue>(server: &Server, words: &str) -> T {
    run(server, &words.split_whitespace().collect::<Vec<_>>())
}

#[track_caller]
pub fn run<T: FromRedisValue>(server: &Server, words: &[&str]) -> T {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query(&mut server.conn()).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// The five keys of a limiter with a plain name: hash, queue, held, tickets, instances.
pub fn keys(name: &str) -> [String; 5] {
    ["", ":queue", ":held", ":tickets", ":instances"].map(|part| format!("fq:{{{name}}}{part}"))
}

/// One field of the limiter's hash.
pub fn field(server: &Server, name: &str, field: &str) -> u64 {
    run::<Option<u64>>(server, &["HGET", &keys(name)[0], field]).unwrap_or(0)
}

/// Waits until the limiter's own clock has gone on by `time`. It is kept going by the heartbeats of whoever holds or
/// waits, so that everybody has had the opportunity to do what is to be done in that time.
#[track_caller]
pub fn let_pass(server: &Server, name: &str, time: Duration) {
    let end = field(server, name, "now") + time.as_micros() as u64;
    eventually("heartbeats moved the limiter's clock on", SOON, || field(server, name, "now") >= end);
}

/// Opens a client with a limiter that asks often.
pub fn open(url: &str, name: &str, limit: u64, lease: Duration) -> (Client, Limiter) {
    let client = Client::open(url).expect("open the client");
    let limiter = limiter(&client, name, limit, lease);
    (client, limiter)
}

pub fn limiter(client: &Client, name: &str, limit: u64, lease: Duration) -> Limiter {
    client.limiter(name).limit(limit).lease(lease).poll(ms(100)).open().expect("open the limiter")
}

/// A limiter whose polls are so far apart that a test does not live to see one.
pub fn patient_limiter(client: &Client, name: &str, limit: u64) -> Limiter {
    let hour = Duration::from_secs(3600);
    let builder = client.limiter(name).limit(limit).lease(hour).idle(hour * 2);
    builder.poll(Duration::from_secs(60)).open().expect("open the limiter")
}

/// Starts a request for each token; they come to stand in line in this order, behind whoever stands there already.
pub fn line_up(limiter: &Limiter, to: &Completions, tokens: Range<u64>) -> Vec<Ticket> {
    let request = |token: u64| Request::new().wait_forever().label(token.to_string());
    let start = |token| limiter.acquire_start(&request(token), to, token).expect("start a request");
    let tickets: Vec<Ticket> = tokens.map(start).collect();
    eventually("all stand in line", SOON, || tickets.iter().all(|t| is_in_line(t)));
    tickets
}

fn is_in_line(ticket: &Ticket) -> bool {
    ticket.last_position().is_some() || ticket.state() != TicketState::Pending
}

/// Takes one completion that has to be a permit.
#[track_caller]
pub fn take(from: &Completions) -> (u64, Permit) {
    let done = from.poll(1, SOON).pop().expect("a completion in time");
    let permit = done.result.unwrap_or_else(|error| panic!("request {}: {error:?}", done.token));
    (done.token, permit)
}

/// Takes the completions of these tokens, in this order, and gives each permit back before the next.
#[track_caller]
pub fn drain_in_order(from: &Completions, tokens: impl IntoIterator<Item = u64>) {
    for expected in tokens {
        let (token, permit) = take(from);
        assert_eq!(token, expected, "overtaken");
        permit.release().expect("release");
    }
}

#[track_caller]
pub fn wait_status(limiter: &Limiter, what: &str, condition: impl Fn(&Status) -> bool) {
    eventually(what, SOON, || limiter.status().is_ok_and(|status| condition(&status)));
}

/// Nothing is held or waits, and nothing is left of those that did (P3).
#[track_caller]
pub fn assert_empty(server: &Server, limiter: &Limiter) {
    wait_status(limiter, "nothing is held or waits", |s| s.used == 0 && s.holders == 0 && s.waiting == 0);
    let [_, queue, held, tickets, _] = keys(limiter.name());
    assert_eq!(run::<u64>(server, &["ZCARD", &queue]), 1);
    assert_eq!(run::<u64>(server, &["ZCARD", &held]), 1);
    assert_eq!(run::<u64>(server, &["HLEN", &tickets]), 1);
}
