//! P12: idle limiters cost nothing, and their keys go.

use std::time::Duration;

use crate::support::*;
use crate::tools::*;
use fairq::*;

const LEASE: Duration = Duration::from_millis(300);

/// Opens a limiter whose keys go soon.
fn fleeting(client: &Client, name: &str, lease: Duration) -> Limiter {
    client.limiter(name).limit(2).lease(lease).idle(2 * lease).open().expect("open the limiter")
}

fn pair(limiter: &Limiter) {
    limiter.acquire(&Request::new()).expect("a permit").release().expect("release");
}

/// `PTTL` of each key of limiter `a`.
fn ttls(server: &Server) -> Vec<i64> {
    keys("a").iter().map(|key| run(server, &["PTTL", key])).collect()
}

#[test]
fn a_client_with_idle_limiters_calls_no_script() {
    let (quiet, busy) = (server(), server());
    let client = Client::open(&quiet.url()).unwrap();
    let limiters: Vec<Limiter> = (0..30).map(|i| limiter(&client, &format!("l{i}"), 2, LEASE)).collect();
    limiters.iter().for_each(pair);
    let done = Completions::new();
    let permit = limiters[0].acquire(&Request::new().cost(2)).expect("a permit");
    let waited = line_up(&limiters[0], &done, 0..3);
    waited.iter().for_each(|ticket| assert!(ticket.cancel()));
    permit.release().expect("release");
    assert_empty(&quiet, &limiters[0]);
    eventually("the last word was said", SOON, || {
        let before = quiet.script_calls();
        std::thread::sleep(LEASE / 2); // what is looked for is that nothing happens
        quiet.script_calls() == before
    });
    quiet.reset_stats();
    let (_other, other) = open(&busy.url(), "a", 1, LEASE);
    let _held = other.acquire(&Request::new()).expect("a permit");
    let_pass(&busy, "a", 5 * LEASE);
    assert!(busy.script_calls() >= 10, "the other one's heartbeat was the measure");
    assert_eq!(quiet.script_calls(), 0);
    limiters.iter().for_each(pair);
}

#[test]
fn every_key_expires_after_the_idle_time_at_the_latest() {
    let server = server();
    let client = Client::open(&server.url()).unwrap();
    let limiter = client.limiter("a").limit(1).lease(LEASE).idle(Duration::from_secs(77)).open().unwrap();
    let expire = |what: &str| {
        let ttls = ttls(&server);
        assert!(ttls.iter().all(|ttl| (1..=77_000).contains(ttl)), "{what}: {ttls:?}");
    };
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    expire("held");
    let done = Completions::new();
    let ticket = line_up(&limiter, &done, 0..1).remove(0);
    expire("held and waiting");
    assert!(ticket.cancel());
    permit.release().expect("release");
    expire("idle");
    raw::<()>(&server, "FLUSHALL");
    pair(&limiter);
    expire("after a loss of state");
    assert_eq!(raw::<u64>(&server, "DBSIZE"), 4, "all the keys there are");
}

#[test]
fn what_is_held_for_longer_than_the_idle_time_is_kept() {
    let server = server();
    let client = Client::open(&server.url()).unwrap();
    let limiter = fleeting(&client, "a", 2 * LEASE);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    let epoch = limiter.status().expect("status").epoch;
    let_pass(&server, "a", 10 * LEASE);
    assert_kept(&permit);
    assert_eq!(limiter.status().expect("status").epoch, epoch);
    permit.release().expect("release");
    eventually("idle, its keys go", SOON, || raw::<u64>(&server, "DBSIZE") == 0);
}

/// S39
#[test]
fn after_its_keys_expired_an_idle_limiter_admits_at_once() {
    let server = server();
    let client = Client::open(&server.url()).unwrap();
    let limiter = fleeting(&client, "a", 2 * LEASE);
    for _ in 0..3 {
        pair(&limiter);
        eventually("its keys are gone", SOON, || raw::<u64>(&server, "DBSIZE") == 0);
        // In a grace nobody would be admitted at once.
        let permit = limiter.try_acquire(&Request::new()).expect("try").expect("no grace");
        assert_eq!(limiter.status().expect("status").limit, 2, "its settings are back");
        permit.release().expect("release");
    }
}

/// S39
#[test]
fn after_its_keys_were_deleted_an_idle_limiter_works() {
    let server = server();
    let (_client, limiter) = open(&server.url(), "a", 1, LEASE);
    for _ in 0..3 {
        pair(&limiter);
        raw::<()>(&server, "FLUSHALL");
        pair(&limiter);
        assert_empty(&server, &limiter);
    }
}

#[test]
fn an_expired_limiter_has_lost_an_operators_settings_only_with_the_last_client_that_knew_them() {
    let server = server();
    let client = Client::open(&server.url()).unwrap();
    let limiter = fleeting(&client, "a", LEASE);
    pair(&limiter);
    limiter.configure(&Change::new().limit(1)).expect("configure");
    pair(&limiter); // learns it
    eventually("its keys are gone", SOON, || raw::<u64>(&server, "DBSIZE") == 0);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    assert_eq!(limiter.status().expect("status").limit, 1);
    permit.release().expect("release");
}

/// S20
#[test]
fn ten_thousand_names_used_once_leave_no_key() {
    const NAMES: u64 = 10_000;
    let server = server();
    let client = Client::open(&server.url()).unwrap();
    let done = Completions::new();
    for i in 0..NAMES {
        let limiter = fleeting(&client, &format!("once {i}"), 5 * LEASE);
        limiter.acquire_start(&Request::new().wait_forever(), &done, i).expect("start");
    }
    for _ in 0..NAMES {
        drop(take(&done)); // gives it back
    }
    let eternal = redis::Script::new(
        "local count = 0
        for _, key in ipairs(redis.call('KEYS', '*')) do
          if redis.call('PTTL', key) == -1 then count = count + 1 end
        end
        return count",
    );
    assert_eq!(eternal.invoke::<u64>(&mut server.conn()).expect("look"), 0, "keys that never expire");
    eventually("all keys are gone", SOON, || raw::<u64>(&server, "DBSIZE") == 0);
}
