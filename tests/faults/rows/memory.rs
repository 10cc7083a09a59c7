//! Keys that disappear or belong to somebody else, and a server without memory.

use crate::load::*;
use crate::matrix::{Recoveries, Row};
use crate::rows::proxy::{repeat, wait_until};
use crate::support::*;
use crate::tools::{keys, ms, raw, run};
use crate::workers::now;

/// While a key is of another type, whoever asks is told so.
const CONFIG: Price = Price { permits: false, failures: &["Config"] };
/// On a full server a new request waits until its deadline, and may be told why it was in vain.
const FULL: Price = Price { permits: false, failures: &["Overloaded"] };

pub fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row::load("FLUSHALL", "5 times", "brought back by their owners, in order", NOTHING, flush_all).quick(),
        Row::load(
            "a key of another type",
            "each of the four keys is overwritten by a string for 300 ms, then deleted",
            "an error that names it, nothing written; heals with it",
            CONFIG,
            other_types,
        ),
        Row::load(
            "memory full, noeviction",
            "`maxmemory 1` for 2 s",
            "releases, cancels and heartbeats work; new requests wait, or are told \"overloaded\"",
            FULL,
            full,
        ),
    ];
    rows.extend(["", ":queue", ":held", ":instances"].map(|part| {
        let key = format!("fq:{{a}}{part}");
        let expected = "noticed by the next call; brought back by the owners";
        Row::load(&format!("deleted: {key}"), "3 times", expected, NOTHING, move |load| delete(load, &key))
    }));
    rows.extend(["volatile-lru", "allkeys-lru"].map(|policy| {
        Row::load(
            &format!("memory full, {policy}"),
            "`maxmemory 1` for 2 s: whatever is there gets evicted, again and again",
            "brought back, again and again; nobody is admitted meanwhile",
            FULL,
            move |load| evict(load, policy),
        )
    }));
    rows
}

fn flush_all(load: &mut Load) -> Recoveries {
    repeat(5, || {
        raw::<()>(&load.server, "FLUSHALL");
        load.has_lost_state();
        load.recovered(now())
    })
}

fn delete(load: &mut Load, key: &str) -> Recoveries {
    repeat(3, || {
        assert_eq!(run::<u64>(&load.server, &["DEL", key]), 1);
        load.has_lost_state();
        load.recovered(now())
    })
}

fn other_types(load: &mut Load) -> Recoveries {
    let recover = |key: &String| {
        run::<()>(&load.server, &["SET", key, "something else"]);
        load.has_lost_state();
        wait_until(now(), ms(300));
        run::<()>(&load.server, &["DEL", key]);
        load.has_lost_state();
        load.recovered(now())
    };
    keys(NAME).iter().map(recover).collect()
}

fn full(load: &mut Load) -> Recoveries {
    repeat(2, || {
        raw::<()>(&load.server, "CONFIG SET maxmemory 1");
        // What waits is served, what is held is given back: then the line is empty, and nobody can enter it.
        let is_idle = || load.observer.status().is_ok_and(|status| status.waiting == 0 && status.used == 1);
        eventually("releases, cancels and grants go on", SOON, is_idle);
        wait_until(now(), LEASE);
        assert_eq!(load.observer.status().expect("status").used, 1, "the permit that is kept was renewed");
        raw::<()>(&load.server, "CONFIG SET maxmemory 0");
        load.recovered(now())
    })
}

fn evict(load: &mut Load, policy: &str) -> Recoveries {
    run::<()>(&load.server, &["CONFIG", "SET", "maxmemory-policy", policy]);
    repeat(2, || {
        raw::<()>(&load.server, "CONFIG SET maxmemory 1");
        load.has_lost_state();
        wait_until(now(), ms(2000));
        raw::<()>(&load.server, "CONFIG SET maxmemory 0");
        load.has_lost_state();
        load.recovered(now())
    })
}
