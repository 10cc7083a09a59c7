//! The server's own clock, set under it: keys expire by it, too, which the skew of [`super::clocks`] does not show.

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

use tempfile::TempDir;

use crate::load::*;
use crate::matrix::{Recoveries, Row};
use crate::rows::proxy::wait_until;
use crate::support::*;
use crate::tools::ms;
use crate::workers::now;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;

pub fn rows() -> Vec<Row> {
    vec![
        row(
            "the server's own clock +1 h",
            "3 times; all keys are past their expiry then",
            "as after FLUSHALL: brought back by their owners, in order",
            |load, clock| set(load, clock, HOUR),
        ),
        row("the server's own clock -1 h", "3 times", "orders and fences still grow", |load, clock| {
            set(load, clock, -HOUR)
        }),
        row(
            "the server's own clock is unsteady",
            "set to and fro every 5 ms, by up to half a second, for 4 s; from its end",
            "nobody alive is reaped, numbers still grow",
            unsteady,
        ),
    ]
}

fn row(
    name: &str,
    what: &str,
    expected: &'static str,
    harm: impl Fn(&mut Load, &WallClock) -> Recoveries + 'static,
) -> Row {
    Row::alone(name, what, expected, move |flavor| {
        let clock = WallClock::new();
        let server = Server::builder(flavor).env("LD_PRELOAD", &clock.library()).env("FAIRQ_TEST_CLOCK", &clock.file());
        let mut load = Load::start(server.start(), LEASE);
        let recoveries = harm(&mut load, &clock);
        load.finish(NOTHING);
        recoveries
    })
}

/// What a server's clock says more than the machine's.
struct WallClock(TempDir);

impl WallClock {
    fn new() -> WallClock {
        let clock = WallClock(tempfile::tempdir().expect("make a temporary folder"));
        clock.set(0);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-shared", "-fPIC", source, "-o"]).arg(clock.library());
        assert!(compiler.status().expect("run cc").success(), "{compiler:?}");
        clock
    }

    fn file(&self) -> std::path::PathBuf {
        self.0.path().join("offset")
    }

    fn library(&self) -> std::path::PathBuf {
        self.0.path().join("clock.so")
    }

    /// Microseconds. In place, since the server has the file mapped.
    fn set(&self, offset: i64) {
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.file());
        file.and_then(|file| file.write_all_at(&offset.to_ne_bytes(), 0)).expect("set the clock");
    }
}

fn server_time(load: &Load) -> i64 {
    let (seconds, micros): (i64, i64) = redis::cmd("TIME").query(&mut load.server.conn()).expect("TIME");
    seconds * SECOND + micros
}

fn set(load: &mut Load, clock: &WallClock, by: i64) -> Recoveries {
    let jump = |turn: i64| {
        let before = server_time(load);
        clock.set(by * turn);
        // Some servers look at the clock now and then only.
        eventually("the server's clock is set", SOON, || (server_time(load) - before - by).abs() < 60 * SECOND);
        if by > 0 {
            load.has_lost_state();
        }
        load.recovered(now())
    };
    (1..=3).map(jump).collect()
}

fn unsteady(load: &mut Load, clock: &WallClock) -> Recoveries {
    let until = now() + ms(4000).as_nanos() as u64;
    let mut dice: i64 = 1;
    while now() < until {
        dice = (dice * 16_807) % 2_147_483_647;
        clock.set(dice % SECOND - SECOND / 2);
        wait_until(now(), ms(5));
    }
    vec![load.recovered(now())]
}
