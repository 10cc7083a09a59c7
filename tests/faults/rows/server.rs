//! The server stalls, refuses, forgets its scripts, or goes away and comes back.

use std::time::Duration;

use fairq::Completions;

use crate::load::*;
use crate::matrix::{Recoveries, Row};
use crate::rows::proxy::{repeat, wait_until};
use crate::support::*;
use crate::tools::{line_up, ms, raw, run, take};
use crate::workers::now;

const AOF: &[(&str, &str)] = &[("--appendonly", "yes"), ("--appendfsync", "always")];

pub fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row::load(
            "every client killed",
            "`CLIENT KILL` of all connections, 30 times, 100 ms apart",
            "connected and subscribed again each time",
            NOTHING,
            clients_killed,
        ),
        Row::load("CLIENT PAUSE", "1 s, 3 times", "who waits goes on waiting", NOTHING, client_pause),
        Row::load(
            "SCRIPT FLUSH",
            "every 100 ms, for 3 s",
            "the scripts are sent again, work goes on meanwhile",
            NOTHING,
            script_flush,
        )
        .quick(),
        Row::load(
            "BUSY",
            "an endless script of somebody else, killed after 1.5 s",
            "`BUSY` is tried again",
            NOTHING,
            busy,
        ),
        Row::load("DEBUG SLEEP", "1.5 s, 3 times", "who waits goes on waiting", NOTHING, debug_sleep),
        Row::load(
            "maxclients",
            "all connections are cut, and new ones refused for 1.5 s, since there are too many",
            "tried again until there is room",
            NOTHING,
            max_clients,
        ),
    ];
    let stops = [("half a lease", LEASE / 2), ("5 s", Duration::from_secs(5)), ("three leases", LEASE * 3)];
    rows.extend(stops.map(|(name, time)| {
        Row::load(
            &format!("server stopped for {name}"),
            "SIGSTOP, SIGCONT",
            "nobody is reaped for the server's silence",
            NOTHING,
            move |load| stop_server(load, time),
        )
    }));
    rows.extend([
        restart_row("from its AOF", AOF, false),
        restart_row("from an old dump", &[], true),
        restart_row("with nothing", &[], false),
    ]);
    rows.push(Row::alone(
        "two outages, closer than a heartbeat",
        "the server is stopped for 9 s, answers one outsider, who wants all there is, and is stopped as long again; \
         lease 6 s",
        "who could not report in between keeps its permits",
        |flavor| {
            // Nobody is reaped for 5/12 of the lease: enough to connect again on a busy machine.
            let mut load = Load::start(Server::start(flavor), LEASE * 3);
            let recovery = two_outages(&mut load, Duration::from_secs(9));
            load.finish(NOTHING);
            vec![recovery]
        },
    ));
    rows
}

fn clients_killed(load: &mut Load) -> Recoveries {
    for _ in 0..30 {
        for kind in ["normal", "pubsub"] {
            run::<usize>(&load.server, &["CLIENT", "KILL", "TYPE", kind]);
        }
        wait_until(now(), ms(100));
    }
    vec![load.recovered(now())]
}

fn client_pause(load: &mut Load) -> Recoveries {
    repeat(3, || {
        raw::<()>(&load.server, "CLIENT PAUSE 1000");
        wait_until(now(), ms(1000));
        load.recovered(now())
    })
}

fn script_flush(load: &mut Load) -> Recoveries {
    for _ in 0..30 {
        raw::<()>(&load.server, "SCRIPT FLUSH");
        wait_until(now(), ms(100));
        load.goes_on(1);
    }
    vec![load.recovered(now())]
}

fn busy(load: &mut Load) -> Recoveries {
    raw::<()>(&load.server, "CONFIG SET lua-time-limit 100");
    repeat(3, || {
        std::thread::scope(|scope| {
            let server = &load.server;
            scope.spawn(|| {
                let endless = redis::cmd("EVAL").arg("while true do end").arg(0).query::<()>(&mut server.conn());
                assert!(endless.is_err(), "it was killed");
            });
            let mut conn = server.conn();
            let is_busy = |conn: &mut redis::Connection| redis::cmd("PING").exec(conn).is_err();
            eventually("it is busy", SOON, || is_busy(&mut conn));
            wait_until(now(), ms(1500));
            redis::cmd("SCRIPT").arg("KILL").exec(&mut conn).expect("SCRIPT KILL");
            load.recovered(now())
        })
    })
}

fn debug_sleep(load: &mut Load) -> Recoveries {
    repeat(3, || {
        raw::<()>(&load.server, "DEBUG SLEEP 1.5");
        load.recovered(now())
    })
}

fn max_clients(load: &mut Load) -> Recoveries {
    repeat(3, || {
        let mut conn = load.server.conn();
        let mut set = |most: u32| redis::cmd("CONFIG").arg("SET").arg("maxclients").arg(most).exec(&mut conn);
        set(1).expect("CONFIG SET");
        load.proxy.cut();
        wait_until(now(), ms(1500));
        set(10_000).expect("CONFIG SET");
        load.recovered(now())
    })
}

fn stop_server(load: &mut Load, time: Duration) -> Recoveries {
    load.server.pause();
    wait_until(now(), time);
    load.server.resume();
    vec![load.recovered(now())]
}

fn restart_row(name: &str, options: &'static [(&str, &str)], saves: bool) -> Row {
    Row::load_on(
        options,
        &format!("restart {name}"),
        "kill -9 of the server and a new start, 3 times",
        "the instances bring back what they hold and wait for",
        NOTHING,
        move |load| restart(load, saves),
    )
}

fn restart(load: &mut Load, saves: bool) -> Recoveries {
    repeat(3, || {
        if saves {
            raw::<()>(&load.server, "SAVE");
        }
        load.goes_on(10);
        load.server.restart();
        load.has_lost_state();
        load.recovered(now())
    })
}

/// In between only the observer comes through: it stands in line for all there is, should the others be taken for dead.
fn two_outages(load: &mut Load, each: Duration) -> Duration {
    let done = Completions::new();
    load.proxy.hang(); // or what lies in the server's sockets would be run in between
    load.server.pause();
    wait_until(now(), each);
    load.proxy.cut();
    load.proxy.refuse();
    load.proxy.cut();
    load.server.resume();
    line_up(&load.observer, &done, 0..LIMIT);
    load.server.pause();
    load.proxy.heal();
    wait_until(now(), each);
    load.server.resume();
    let recovery = load.recovered(now());
    (0..LIMIT).for_each(|_| drop(take(&done)));
    recovery
}
