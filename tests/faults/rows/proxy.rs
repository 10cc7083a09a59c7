//! Faults of the network, made by the proxy.

use fairq::{Change, Client, Limiter, Request};

use crate::load::*;
use crate::matrix::{Recoveries, Row};
use crate::support::*;
use crate::tools::{limiter, ms, raw};
use crate::workers::now;

/// The verbs that write.
pub const VERBS: [&str; 9] =
    ["acquire", "release", "cancel", "sync", "restore", "put_back", "configure", "revoke", "leave"];

/// What a request for a verb contains, once the server knows the script.
pub fn needle(verb: &str) -> Vec<u8> {
    let hashes = fairq::bench_support::script_hashes();
    let found = hashes.into_iter().find(|(name, _)| *name == verb);
    found.unwrap_or_else(|| panic!("no script {verb}")).1.into_bytes()
}

pub fn rows() -> Vec<Row> {
    let lost = VERBS.map(|verb| {
        let row = Row::load(
            &format!("reply lost: {verb}"),
            "the server runs it, its reply is lost with the connection; from then on",
            "sent again on the next connection, and counted once",
            NOTHING,
            move |load| lose_replies(load, verb),
        );
        if verb == "acquire" || verb == "release" { row.quick() } else { row }
    });
    let delayed = ["acquire", "release", "cancel", "sync", "put_back", "restore"].map(|verb| {
        Row::load(
            &format!("request delayed: {verb}"),
            "stuck in the network for twice its client's `io_timeout` (700 ms), then run all the same; from the \
             moment it was stuck",
            "the client goes on over a new connection; the zombie is refused, or finds it done",
            NOTHING,
            move |load| delay_requests(load, verb),
        )
    });
    let mut rows: Vec<Row> = lost.into_iter().chain(delayed).collect();
    rows.extend([
        Row::load(
            "path hangs",
            "nothing passes for 1.5 s, then everything does",
            "who waits goes on waiting",
            NOTHING,
            hang,
        ),
        Row::load(
            "half-open without RST",
            "all connections fall silent for good, neither side is told; from then on",
            "given up after `io_timeout`, new ones made",
            NOTHING,
            freeze,
        )
        .quick(),
        Row::load(
            "accepted and never answered",
            "connections are cut; for 1.5 s new ones are accepted and silent",
            "given up, and tried again",
            NOTHING,
            silent,
        ),
        Row::load(
            "refused",
            "connections are cut; for 1 s new ones are closed at once",
            "tried again, ever more slowly",
            NOTHING,
            refused,
        ),
        Row::load(
            "cut after N bytes",
            "every connection, after 1, 10, 60, 150, 400, 1000, 3000, 10000 bytes; 300 ms each",
            "half commands and half replies change nothing twice",
            NOTHING,
            cut_after_bytes,
        ),
        Row::load(
            "slow and lossy",
            "250 to 500 ms each way and 5 % of the replies lost, for 8 s",
            "slow, and right",
            PERMITS,
            slow_and_lossy,
        ),
    ]);
    rows
}

/// An operator behind the proxy, for what the workers do not do.
pub struct Operator {
    client: Client,
    limiter: Limiter,
}

impl Operator {
    pub fn open(url: &str) -> Operator {
        let client = Client::builder(url).io_timeout(ms(700)).connect_timeout(ms(700)).open().expect("open");
        let limiter = limiter(&client, NAME, LIMIT, LEASE);
        Operator { client, limiter }
    }

    /// An order whose reply is lost may have an unknown outcome: that is an answer, too.
    pub fn order(self, verb: &str) {
        match verb {
            "configure" => drop(self.limiter.configure(&Change::new().limit(LIMIT))),
            "revoke" => {
                let victim = self.limiter.acquire(&Request::new()).expect("a permit");
                drop(self.limiter.revoke(&victim.ticket_id()));
            }
            "leave" => drop(self.limiter.acquire(&Request::new()).expect("a permit")),
            _ => {}
        }
        self.client.close(ms(5000)).expect("close");
    }
}

/// Makes sure that the verb is sent: most the workers do by themselves.
fn provoke(load: &mut Load, verb: &str) {
    match verb {
        "configure" | "revoke" | "leave" => Operator::open(&load.proxy.url()).order(verb),
        "restore" => {
            raw::<()>(&load.server, "DEL fq:{a}:held");
            load.has_lost_state();
        }
        _ => {}
    }
}

fn lose_replies(load: &mut Load, verb: &str) -> Recoveries {
    (0..5)
        .map(|_| {
            let before = load.proxy.fired();
            load.proxy.drop_reply_matching(&needle(verb));
            let since = now();
            provoke(load, verb);
            eventually("the reply was lost", SOON, || load.proxy.fired() > before);
            load.recovered(since)
        })
        .collect()
}

fn delay_requests(load: &mut Load, verb: &str) -> Recoveries {
    (0..3)
        .map(|_| {
            let held = load.proxy.stall_request(&needle(verb), 0);
            provoke(load, verb);
            held.wait_caught();
            let since = now();
            let recovery = load.recovered(since);
            wait_until(since, ms(1400));
            held.deliver();
            load.goes_on(30);
            recovery
        })
        .collect()
}

/// Lets a fault last for a while.
pub fn wait_until(since: u64, time: std::time::Duration) {
    let end = since + time.as_nanos() as u64;
    std::thread::sleep(std::time::Duration::from_nanos(end.saturating_sub(now())));
}

fn hang(load: &mut Load) -> Recoveries {
    repeat(3, || {
        load.proxy.hang();
        wait_until(now(), ms(1500));
        load.proxy.heal();
        load.recovered(now())
    })
}

fn freeze(load: &mut Load) -> Recoveries {
    repeat(3, || {
        load.proxy.freeze();
        load.recovered(now())
    })
}

fn silent(load: &mut Load) -> Recoveries {
    repeat(3, || {
        load.proxy.hang();
        load.proxy.cut();
        wait_until(now(), ms(1500));
        load.proxy.heal();
        load.recovered(now())
    })
}

fn refused(load: &mut Load) -> Recoveries {
    repeat(3, || {
        load.proxy.refuse();
        load.proxy.cut();
        wait_until(now(), ms(1000));
        load.proxy.heal();
        load.recovered(now())
    })
}

fn cut_after_bytes(load: &mut Load) -> Recoveries {
    let sizes = [1, 10, 60, 150, 400, 1000, 3000, 10_000];
    let recover = |bytes| {
        load.proxy.cut_after(bytes);
        load.proxy.cut();
        wait_until(now(), ms(300));
        load.proxy.heal();
        load.proxy.cut();
        load.recovered(now())
    };
    sizes.map(recover).into()
}

fn slow_and_lossy(load: &mut Load) -> Recoveries {
    load.proxy.delay(ms(250));
    load.proxy.lose_one_reply_in(20);
    load.goes_on(5);
    wait_until(now(), ms(8000));
    load.proxy.heal();
    vec![load.recovered(now())]
}

/// The same fault several times.
pub fn repeat(times: usize, mut fault: impl FnMut() -> std::time::Duration) -> Recoveries {
    (0..times).map(|_| fault()).collect()
}
