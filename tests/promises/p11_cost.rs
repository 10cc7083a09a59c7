//! P11, cost: one script call for each acquire, release and poll tick, and nothing grows with the number of waiters.
//!
//! Ticks are made by hand: clients with a manual clock poll when the test moves it, and at no other time.

use std::collections::HashMap;
use std::time::Duration;

use crate::support::*;
use crate::tools::*;
use fairq::*;

const HOUR: Duration = Duration::from_secs(3600);
const POLL: Duration = Duration::from_secs(1);

/// A client whose time stands still.
fn still(server: &Server) -> (Clock, Client) {
    open_still(server, true)
}

/// One that does not listen, and so does not look for the dead, which happens by the server's clock.
fn deaf(server: &Server) -> (Clock, Client) {
    open_still(server, false)
}

fn open_still(server: &Server, subscribe: bool) -> (Clock, Client) {
    let clock = Clock::manual();
    let builder = Client::builder(&server.url()).clock(clock.clone()).subscribe(subscribe);
    (clock, builder.open().expect("open the client"))
}

fn still_limiter(client: &Client, limit: u64) -> Limiter {
    client.limiter("a").limit(limit).lease(HOUR).idle(2 * HOUR).poll(POLL).open().expect("open the limiter")
}

/// How often each command ran since the last reset, within scripts too.
fn commands(server: &Server) -> HashMap<String, u64> {
    let info = server.info("commandstats");
    let rows = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
    let number = |stats: &str| stats.split(',').next().and_then(|n| n.parse().ok()).expect("a number");
    rows.map(|(name, stats)| (name.to_owned(), number(stats))).collect()
}

/// The commands of the scripts alone; without messages, as a probe of the subscription may fall in any tick.
fn work(server: &Server) -> u64 {
    let ours = ["info", "config", "auth", "client", "hello", "eval", "evalsha", "select", "ping", "publish"];
    commands(server).iter().filter(|(name, _)| !ours.iter().any(|word| name.starts_with(word))).map(|(_, n)| n).sum()
}

/// Waits until the number of script calls stands still at what is expected.
#[track_caller]
fn wait_calls(server: &Server, calls: u64) {
    eventually("so many script calls", SOON, || server.script_calls() >= calls);
    assert_eq!(server.script_calls(), calls);
}

#[test]
fn an_acquire_is_one_script_call_and_so_is_a_release() {
    for flavor in Flavor::available() {
        let server = Server::start(flavor);
        let (_clock, client) = deaf(&server);
        let limiter = still_limiter(&client, 1);
        let pair = || limiter.acquire(&Request::new()).expect("a permit").release().expect("release");
        (0..3).for_each(|_| pair()); // the scripts get known, and the configuration
        server.reset_stats();
        (0..50).for_each(|_| pair());
        assert_eq!(server.script_calls(), 100);
    }
}

/// All that clients have ever sent.
fn bytes_received(server: &Server) -> u64 {
    let info = server.info("stats");
    let bytes = info.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:"));
    bytes.and_then(|bytes| bytes.trim().parse().ok()).expect("a number")
}

/// Script calls, and commands within them, for some ticks of a client with so many waiters.
fn cost_of_ticks(waiters: u64, ticks: u64) -> (u64, u64) {
    let server = server();
    let ((clock, client), (_, other)) = (deaf(&server), deaf(&server));
    let (limiter, blocker) = (still_limiter(&client, 1), still_limiter(&other, 1));
    let permit = blocker.acquire(&Request::new()).expect("a permit");
    let done = Completions::new();
    line_up(&limiter, &done, 0..waiters);
    clock.advance(POLL);
    settle(&server);
    server.reset_stats();
    let before = bytes_received(&server);
    for tick in 1..=ticks {
        clock.advance(POLL);
        wait_calls(&server, tick);
    }
    let bytes = bytes_received(&server) - before;
    assert!(bytes < ticks * 10_000, "{bytes} bytes for {ticks} ticks, with what the test itself asked");
    let cost = (server.script_calls(), work(&server));
    drop(permit);
    cost
}

/// Waits until no more calls come: twice the same number, with a round trip of everybody in between.
fn settle(server: &Server) {
    let mut last = u64::MAX;
    eventually("all is quiet", SOON, || {
        std::thread::sleep(ms(50)); // what is looked for is that nothing happens
        let quiet = server.script_calls() == last;
        last = server.script_calls();
        quiet
    });
}

#[test]
fn a_tick_is_one_script_call_of_the_same_size_for_10_and_for_10_000_waiters() {
    const TICKS: u64 = 20;
    let few = cost_of_ticks(10, TICKS);
    assert_eq!(few.0, TICKS);
    for waiters in [1000, 10_000] {
        assert_eq!(cost_of_ticks(waiters, TICKS), few, "{waiters} waiters");
    }
}

/// Who asks to be told its place costs one more call for each tick, and process, of a bounded size.
#[test]
fn places_are_told_by_one_more_call_a_tick_however_many_ask() {
    const TICKS: u64 = 10;
    let cost_of = |waiters: u64| {
        let server = server();
        let ((clock, client), (_, other)) = (deaf(&server), deaf(&server));
        let (limiter, blocker) = (still_limiter(&client, 1), still_limiter(&other, 1));
        let permit = blocker.acquire(&Request::new()).expect("a permit");
        let done = Completions::new();
        let request = Request::new().wait_forever().report_position(true);
        (0..waiters).for_each(|token| drop(limiter.acquire_start(&request, &done, token).expect("start")));
        wait_status(&limiter, "all stand in line", |status| status.waiting == waiters);
        clock.advance(POLL);
        settle(&server);
        server.reset_stats();
        for tick in 1..=TICKS {
            clock.advance(POLL);
            wait_calls(&server, 2 * tick);
            settle(&server); // a tick during which the last answer is under way does not ask
        }
        let cost = work(&server);
        drop(permit);
        cost
    };
    assert_eq!(cost_of(3000), cost_of(300));
}

#[test]
fn a_grant_of_a_saturated_limiter_costs_the_same_two_calls_for_10_and_for_10_000_waiters() {
    for waiters in [10, 1000, 10_000] {
        let grants = 400;
        let server = server();
        let clients: Vec<(Clock, Client)> = (0..4).map(|_| still(&server)).collect();
        let limiters: Vec<Limiter> = clients.iter().map(|(_, client)| still_limiter(client, 4)).collect();
        let done = Completions::new();
        let start = |token: u64| {
            let request = Request::new().wait_forever();
            limiters[token as usize % 4].acquire_start(&request, &done, token).expect("start");
        };
        (0..waiters + 4).for_each(start);
        wait_status(&limiters[0], "all are in line", |s| s.waiting == waiters && s.holders == 4);
        let turn = || {
            let (token, permit) = take(&done);
            permit.release().expect("release");
            start(token);
        };
        (0..8).for_each(|_| turn()); // the release script gets known
        settle(&server);
        server.reset_stats();
        (0..grants).for_each(|_| turn());
        let calls = server.script_calls();
        assert!(calls * 10 <= grants * 21, "{calls} script calls for {grants} grants with {waiters} waiters");
        let work = work(&server);
        assert!(work <= grants * 60, "{work} commands for {grants} grants with {waiters} waiters");
    }
}

/// Instances and tickets that look like those of crashed processes whose leases have just ended.
fn bury(server: &Server, instances: u64, tickets_each: u64) {
    let script = redis::Script::new(
        "local queue, instances, hash = KEYS[1], KEYS[2], KEYS[3]
        for i = ARGV[1], ARGV[2] do
          redis.call('ZADD', instances, 1, 'dead' .. i)
          for n = 1, ARGV[3] do
            local order = i * ARGV[3] + n
            redis.call('HSET', hash, 'dead' .. i .. ':' .. n, '1 ' .. order)
            redis.call('ZADD', queue, order, 'dead' .. i .. ':' .. n)
          end
        end
        local state, at = redis.call('HGET', hash, 'state'), 8 * ARGV[4]
        local waiting = struct.unpack('<d', state, at + 1) + (ARGV[2] - ARGV[1] + 1) * ARGV[3]
        state = string.sub(state, 1, at) .. struct.pack('<d', waiting) .. string.sub(state, at + 9)
        redis.call('HSET', hash, 'state', state)",
    );
    let [hash, queue, _, registry] = keys("a");
    let mut conn = server.conn();
    for from in (1..=instances).step_by(1000) {
        let mut call = script.prepare_invoke();
        call.key(&queue).key(&registry).key(&hash);
        call.arg(from).arg(instances.min(from + 999)).arg(tickets_each).arg(WAITING);
        call.invoke::<()>(&mut conn).expect("bury");
    }
    Record::patch(server, "a", DUE, f64::NEG_INFINITY);
}

/// A holder and a waiter live on while all these are reaped, a bounded number with each call.
fn reap(instances: u64, tickets_each: u64) {
    const BATCH: u64 = 128;
    let server = server();
    let (_client, limiter) = open(&server.url(), "a", 1, 2 * POLL);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    let done = Completions::new();
    line_up(&limiter, &done, 0..1);
    server.reset_stats();
    bury(&server, instances, tickets_each);
    wait_status(&limiter, "only the living are left", |s| (s.waiting, s.instances) == (1, 1));
    let (calls, removals) = (server.script_calls(), server.calls("zrem"));
    let dead = instances + instances * tickets_each;
    assert!(removals >= dead, "{removals} of {dead}");
    // Each call may reap one batch of instances and one of tickets; the looks of wait_status make it no fewer.
    assert!(removals <= calls * 2 * (BATCH + 1), "{removals} removals in {calls} calls");
    assert_kept(&permit);
    permit.release().expect("release");
    drain_in_order(&done, [0]);
    assert_empty(&server, &limiter);
}

/// S41
#[test]
fn twenty_thousand_tickets_of_a_dead_process_are_reaped_in_bounded_steps() {
    reap(1, 20_000);
}

/// S41
#[test]
fn twenty_thousand_dead_processes_are_reaped_in_bounded_steps() {
    reap(20_000, 1);
}

/// S44
#[test]
fn a_release_onto_a_line_of_dead_tickets_looks_at_a_bounded_number() {
    let server = server();
    let (_clock, client) = still(&server);
    let limiter = still_limiter(&client, 1);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    bury(&server, 10, 10_000);
    server.reset_stats();
    permit.release().expect("release");
    let (calls, removals) = (server.script_calls(), server.calls("zrem"));
    assert!(removals <= calls * 500, "{removals} removals in {calls} calls");
}

fn registry(server: &Server) -> (u64, u64) {
    let [hash, _, _, instances] = keys("a");
    (run(server, &["ZCARD", &instances]), run(server, &["HLEN", &hash]))
}

/// S21
#[test]
fn hundreds_of_short_lived_clients_leave_nothing_in_the_registry() {
    let server = server();
    let (_client, limiter) = open(&server.url(), "a", 4, POLL);
    limiter.acquire(&Request::new()).expect("a permit").release().expect("release");
    let before = registry(&server);
    for _ in 0..300 {
        let (_short_lived, limiter) = open(&server.url(), "a", 4, POLL);
        limiter.acquire(&Request::new()).expect("a permit").release().expect("release");
    }
    // Or smaller: the idle one of before may have been forgotten as well.
    eventually("the registry is no larger than before", SOON, || {
        let now = registry(&server);
        now.0 <= before.0 && now.1 <= before.1
    });
}

/// S21, without a farewell.
#[test]
fn clients_that_vanish_leave_nothing_in_the_registry_once_their_leases_end() {
    let server = server();
    let proxy = Proxy::to(server.port());
    let (_client, limiter) = open(&server.url(), "a", 100, POLL);
    let permit = limiter.acquire(&Request::new()).expect("a permit");
    eventually("it is known to listen", SOON, || listeners(&server, "a") == 1);
    let before = registry(&server);
    let vanishing: Vec<(Client, Permit)> = (0..50)
        .map(|_| open(&proxy.url(), "a", 100, POLL))
        .map(|(client, limiter)| (client, limiter.acquire(&Request::new()).expect("a permit")))
        .collect();
    assert_eq!(registry(&server).0, before.0 + 50);
    proxy.refuse();
    proxy.cut();
    drop(vanishing);
    eventually("the registry is as before", SOON, || registry(&server) == before);
    assert_kept(&permit);
    assert_eq!(limiter.status().expect("status").holders, 1);
}
