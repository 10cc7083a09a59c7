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

/// The four keys of a limiter with a plain name: hash, queue, held, instances.
pub fn keys(name: &str) -> [String; 4] {
    ["", ":queue", ":held", ":instances"].map(|part| format!("fq:{{{name}}}{part}"))
}

/// The numbers of a limiter as the scripts keep them: doubles, packed into one field.
pub struct Record(Vec<f64>);

/// Places in a [`Record`].
pub const NOW: usize = 0;
pub const SKEW: usize = 12;
pub const USED: usize = 3;
pub const DUE: usize = 6;
pub const WAITING: usize = 4;

impl Record {
    /// `None`: there is no such limiter.
    pub fn read(server: &Server, name: &str) -> Option<Record> {
        let bytes: Option<Vec<u8>> = run(server, &["HGET", &keys(name)[0], "state"]);
        let double = |chunk: &[u8]| f64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        bytes.map(|bytes| Record(bytes.chunks_exact(8).map(double).collect()))
    }

    pub fn number(&self, place: usize) -> f64 {
        self.0[place]
    }

    pub fn time(&self, place: usize) -> Duration {
        Duration::from_micros(self.0[place] as u64)
    }

    /// Changes one number behind everybody's back; atomically, so that no script comes in between.
    pub fn patch(server: &Server, name: &str, place: usize, change: f64) {
        let script = redis::Script::new(
            "local bytes = redis.call('HGET', KEYS[1], 'state')
            local at = 8 * ARGV[1]
            local number = struct.unpack('<d', string.sub(bytes, at + 1, at + 8)) + ARGV[2]
            bytes = string.sub(bytes, 1, at) .. struct.pack('<d', number) .. string.sub(bytes, at + 9)
            return redis.call('HSET', KEYS[1], 'state', bytes)",
        );
        let mut call = script.prepare_invoke();
        call.key(&keys(name)[0]).arg(place).arg(change);
        call.invoke::<()>(&mut server.conn()).expect("patch the record");
    }
}

/// Waits until the limiter's own clock has gone on by `time`. It is kept going by the heartbeats of whoever holds or
/// waits, so that everybody has had the opportunity to do what is to be done in that time.
#[track_caller]
pub fn let_pass(server: &Server, name: &str, time: Duration) {
    let now = || Record::read(server, name).map(|record| record.time(NOW));
    let end = now().expect("a limiter") + time;
    eventually("heartbeats moved the limiter's clock on", SOON, || now().is_some_and(|now| now >= end));
}

/// Of how many instances the limiter knows that they listen.
pub fn listeners(server: &Server, name: &str) -> usize {
    let script = "local count, all = 0, redis.call('HGETALL', KEYS[1])
        for i = 1, #all, 2 do
            local record = string.sub(all[i], 1, 2) == 'i:' and all[i + 1]
            if record and string.find(record, '^%d+ %S* %d+ 1', 25) then count = count + 1 end
        end
        return count";
    run(server, &["EVAL", script, "1", &keys(name)[0]])
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
    eventually("all stand in line", SOON, || tickets.iter().all(is_in_line));
    tickets
}

pub fn is_in_line(ticket: &Ticket) -> bool {
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
    let look = || limiter.status().is_ok_and(|status| condition(&status));
    eventually(what, SOON, look);
}

/// The permit is held. That its heartbeat was late once is no harm: what is lost stays lost.
#[track_caller]
pub fn assert_kept(permit: &Permit) {
    eventually("the permit is valid", SOON, || permit.is_valid());
}

/// Nothing is held or waits, and nothing is left of those that did (P3).
#[track_caller]
pub fn assert_empty(server: &Server, limiter: &Limiter) {
    wait_status(limiter, "nothing is held or waits", |s| s.used == 0 && s.holders == 0 && s.waiting == 0);
    assert_eq!(tickets_in(server, limiter.name()), Vec::<String>::new());
}
