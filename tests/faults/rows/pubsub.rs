//! Subscriptions that end, overflow or fall silent: polling finds what their messages did not tell.

use crate::load::*;
use crate::matrix::{Recoveries, Row};
use crate::rows::proxy::{repeat, wait_until};
use crate::support::*;
use crate::tools::{ms, raw, run};
use crate::workers::now;

pub fn rows() -> Vec<Row> {
    vec![
        Row::load(
            "subscriptions killed 100 times",
            "`CLIENT KILL TYPE pubsub`, 100 times, 20 ms apart",
            "subscribed again each time; nobody is taken for dead",
            NOTHING,
            killed,
        )
        .quick(),
        Row::load(
            "output buffer overrun",
            "64 kB at once to every subscriber, whose buffer may hold 32 kB; 10 times",
            "the server cuts them off; subscribed again; nobody is taken for dead",
            NOTHING,
            overrun,
        ),
        Row::load(
            "subscriber half-open",
            "the path of all subscriptions falls silent for good, neither side is told; from then on",
            "polling finds every grant; a probe finds the silence out",
            NOTHING,
            half_open,
        ),
        Row::load(
            "subscribers deaf",
            "what the server sends to subscribers is swallowed, for 3 s; from then on",
            "polling finds every grant",
            NOTHING,
            deaf,
        ),
        Row::load(
            "foreign messages",
            "1000 messages of nonsense, and of tickets that do not exist, to every channel; from then on",
            "worth a sync at most",
            NOTHING,
            nonsense,
        ),
    ]
}

fn killed(load: &mut Load) -> Recoveries {
    for _ in 0..100 {
        raw::<usize>(&load.server, "CLIENT KILL TYPE pubsub");
        wait_until(now(), ms(20));
    }
    vec![load.recovered(now())]
}

fn channels(load: &Load) -> Vec<String> {
    raw(&load.server, "PUBSUB CHANNELS fq:*")
}

fn overrun(load: &mut Load) -> Recoveries {
    run::<()>(&load.server, &["CONFIG", "SET", "client-output-buffer-limit", "pubsub 32kb 16kb 1"]);
    // In one script, so that the server gets to send none of it before it has all; in small parts, since Valkey does not
    // count long strings, which it does not copy.
    let burst = "for _ = 1, 16 do redis.call('PUBLISH', ARGV[1], string.rep('x', 4096)) end";
    repeat(10, || {
        eventually("all listen", SOON, || channels(load).len() >= load.workers.len());
        let goal = load.proxy.accepted() + load.workers.len() as u64;
        for channel in channels(load) {
            run::<()>(&load.server, &["EVAL", burst, "0", &channel]);
        }
        let since = now();
        eventually("subscribers were cut off, and have connected again", SOON, || load.proxy.accepted() >= goal);
        load.recovered(since)
    })
}

fn half_open(load: &mut Load) -> Recoveries {
    repeat(3, || {
        load.proxy.freeze_pubsub();
        load.recovered(now())
    })
}

fn deaf(load: &mut Load) -> Recoveries {
    load.proxy.block_pubsub();
    let since = now();
    let recovery = load.recovered(since);
    wait_until(since, ms(3000));
    load.goes_on(10);
    load.proxy.unblock_pubsub();
    vec![recovery]
}

fn nonsense(load: &mut Load) -> Recoveries {
    let since = now();
    let texts = ["", "x", "9 g,1,1,1|fq:{a}", "0 g,99999999999999999999,1,1|", "1 g,1|fq:{a}", "\u{0} \u{7f}|||"];
    for (channel, i) in channels(load).iter().cycle().zip(0..1000) {
        run::<usize>(&load.server, &["PUBLISH", channel, texts[i % texts.len()]]);
    }
    vec![load.recovered(since)]
}
