//! The command `fairq`, as a user meets it: its output, its exit statuses, its signals.

#![cfg(feature = "cli")]

#[path = "support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::{SOON, Server, eventually, eventually_some};

fn server() -> Server {
    Server::start(Server::default_flavor())
}

/// The command, without the settings of whoever runs the tests.
fn fairq(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairq"));
    command.args(args).env_remove("FAIRQ_URL").env_remove("FAIRQ_LOG").stdin(Stdio::null());
    command
}

fn on(server: &Server, args: &[&str]) -> Command {
    let mut command = fairq(args);
    command.env("FAIRQ_URL", server.url());
    command
}

fn output(mut command: Command) -> Output {
    command.output().expect("run fairq")
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("start fairq")
}

/// Runs to the end and gives stdout; panics with everything it said unless it ended with this status.
#[track_caller]
fn expect(status: i32, command: Command) -> String {
    expect_output(status, &output(command)).0
}

#[track_caller]
fn expect_output(status: i32, output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "stdout:\n{stdout}\nstderr:\n{stderr}");
    (stdout, stderr)
}

#[track_caller]
fn json(command: Command) -> Value {
    serde_json::from_str(&expect(0, command)).expect("JSON on stdout")
}

/// `fairq run --name NAME --limit 1 [options] -- sh -c SCRIPT`
fn run(server: &Server, name: &str, options: &[&str], script: &str) -> Command {
    let command = [&["run", "--name", name, "--limit", "1"], options, &["--", "sh", "-c", script]].concat();
    on(server, &command)
}

/// A command that holds the only permit of a limiter until it is ended.
struct Holder(Child);

impl Holder {
    fn start(server: &Server, name: &str, options: &[&str]) -> Holder {
        let holder = Holder(start(run(server, name, options, "exec sleep 60")));
        eventually("the permit is held", SOON, || status(server, name).is_some_and(|status| status["used"] == 1));
        holder
    }

    fn end(mut self) -> Output {
        signal(&self.0, libc::SIGTERM);
        let child = std::mem::replace(&mut self.0, Command::new("true").spawn().expect("run true"));
        child.wait_with_output().expect("wait for fairq run")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        signal(&self.0, libc::SIGTERM);
        let _ = self.0.wait();
    }
}

fn signal(child: &Child, number: i32) {
    // SAFETY: a plain system call; the child has not been waited for, so the id is its own.
    unsafe { libc::kill(child.id() as i32, number) };
}

/// The limiter's status; `None` while there is no such limiter.
fn status(server: &Server, name: &str) -> Option<Value> {
    let output = output(on(server, &["status", name, "--json"]));
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON on stdout"))
}

fn await_waiting(server: &Server, name: &str, n: u64) {
    eventually("so many wait", SOON, || status(server, name).is_some_and(|status| status["waiting"] == n));
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

// ---- demo ----

#[test]
fn the_demo_keeps_every_promise_in_memory() {
    let stdout = expect(0, fairq(&["demo"]));
    assert!(stdout.contains("every promise was kept"), "{stdout}");
    assert!(stdout.contains("permit revoked by an operator"), "{stdout}");
}

#[test]
fn the_demo_keeps_every_promise_with_processes_of_which_one_is_killed() {
    let server = server();
    let stdout = expect(0, on(&server, &["demo", "--processes", "3"]));
    assert!(stdout.contains("every promise was kept"), "{stdout}");
    assert!(stdout.contains("killed (kill -9) while holding"), "{stdout}");
}

#[test]
fn the_demo_says_that_memory_cannot_be_shared_by_processes() {
    let (_, stderr) = expect_output(64, &output(fairq(&["demo", "--processes", "3"])));
    assert!(stderr.contains("--url"), "{stderr}");
}

// ---- run ----

#[test]
fn commands_under_a_limit_of_one_never_overlap() {
    let server = server();
    let folder = tempfile::tempdir().expect("a folder");
    let script = "mkdir busy || echo two at once >> wrong; sleep 0.1; echo $FAIRQ_FENCE >> fences; rmdir busy";
    let children: Vec<Child> = (0..5)
        .map(|_| {
            let mut command = run(&server, "one", &[], script);
            command.current_dir(folder.path());
            start(command)
        })
        .collect();
    for child in children {
        expect_output(0, &child.wait_with_output().expect("wait for fairq run"));
    }
    assert_eq!(read(&folder.path().join("wrong")), "");
    let fences = read(&folder.path().join("fences"));
    let fences: Vec<u64> = fences.lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(fences.len(), 5);
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

#[test]
fn run_exits_as_its_command_did() {
    let server = server();
    expect(0, run(&server, "status", &[], "true"));
    expect(7, run(&server, "status", &[], "exit 7"));
    expect(128 + 9, run(&server, "status", &[], "kill -9 $$"));
    expect(127, on(&server, &["run", "--name", "status", "--limit", "1", "--", "no-such-command"]));
    expect(126, on(&server, &["run", "--name", "status", "--limit", "1", "--", "/"]));
    assert_eq!(status(&server, "status").expect("a status")["used"], 0, "all was given back");
}

#[test]
fn run_says_why_the_command_did_not_run() {
    let server = server();
    let _holder = Holder::start(&server, "why", &["--max-queue", "1"]);
    let options = ["--max-queue", "1", "--max-wait", "100ms"];
    expect(75, run(&server, "why", &options, "true"));
    let waiter = start(run(&server, "why", &["--max-queue", "1"], "true"));
    await_waiting(&server, "why", 1);
    expect(76, run(&server, "why", &options, "true"));
    expect(64, run(&server, "why", &["--max-queue", "1", "--cost", "2"], "true"));
    signal(&waiter, libc::SIGINT);
    expect_output(130, &waiter.wait_with_output().expect("wait for fairq run"));
}

#[test]
fn run_says_that_the_server_is_away_or_missing() {
    let nobody = "redis://127.0.0.1:1";
    let (_, stderr) =
        expect_output(69, &output(fairq(&["run", "--url", nobody, "--name", "x", "--limit", "1", "--", "true"])));
    assert!(stderr.contains("fairq:"), "{stderr}");
    let (_, stderr) = expect_output(64, &output(fairq(&["run", "--name", "x", "--limit", "1", "--", "true"])));
    assert!(stderr.contains("FAIRQ_URL"), "{stderr}");
    let server = server();
    let (_, stderr) = expect_output(64, &output(on(&server, &["run", "--name", "unknown", "--", "true"])));
    assert!(stderr.contains("unknown"), "{stderr}");
}

#[test]
fn ctrl_c_while_waiting_leaves_no_ticket() {
    let server = server();
    let _holder = Holder::start(&server, "line", &[]);
    let waiter = start(run(&server, "line", &[], "true"));
    await_waiting(&server, "line", 1);
    signal(&waiter, libc::SIGINT);
    expect_output(130, &waiter.wait_with_output().expect("wait for fairq run"));
    assert_eq!(status(&server, "line").expect("a status")["waiting"], 0, "gone when the command is gone");
}

#[test]
fn signals_reach_the_command() {
    let server = server();
    let folder = tempfile::tempdir().expect("a folder");
    let script = "trap 'echo usr1 >> heard' USR1; trap 'exit 9' TERM; echo up >> heard; while :; do sleep 0.02; done";
    let mut command = run(&server, "signals", &[], script);
    command.current_dir(folder.path());
    let child = start(command);
    let heard = folder.path().join("heard");
    eventually("the traps are set", SOON, || read(&heard) == "up\n");
    signal(&child, libc::SIGUSR1);
    eventually("USR1 arrives", SOON, || read(&heard) == "up\nusr1\n");
    signal(&child, libc::SIGTERM);
    expect_output(9, &child.wait_with_output().expect("wait for fairq run"));
}

#[test]
fn a_command_that_lost_its_permit_is_stopped_if_so_asked() {
    let server = server();
    for (choice, ends) in [("kill", 77), ("warn", 128 + libc::SIGTERM)] {
        let holder = Holder::start(&server, choice, &["--on-lost", choice]);
        let holders = json(on(&server, &["holders", choice, "--json"]));
        let ticket = holders[0]["ticket"].as_str().expect("a ticket");
        expect(0, on(&server, &["revoke", choice, ticket]));
        let output = if choice == "kill" {
            let mut holder = holder;
            let child = std::mem::replace(&mut holder.0, Command::new("true").spawn().expect("run true"));
            child.wait_with_output().expect("wait for fairq run")
        } else {
            // It hears of the loss, and goes on.
            std::thread::sleep(Duration::from_millis(500));
            holder.end()
        };
        let (_, stderr) = expect_output(ends, &output);
        assert!(stderr.contains("permit was lost"), "{choice}: {stderr}");
    }
}

#[test]
fn a_lost_place_in_line_has_a_status_of_its_own() {
    let server = server();
    let _holder = Holder::start(&server, "place", &[]);
    let waiter = start(run(&server, "place", &[], "true"));
    await_waiting(&server, "place", 1);
    let waiters = json(on(&server, &["waiters", "place", "--json"]));
    let stdout = expect(0, on(&server, &["revoke", "place", waiters[0]["ticket"].as_str().expect("a ticket")]));
    assert!(stdout.contains("line"), "{stdout}");
    expect_output(77, &waiter.wait_with_output().expect("wait for fairq run"));
}

// ---- looking and changing ----

#[test]
fn an_operator_sees_and_changes_a_limiter() {
    let server = server();
    let holder = Holder::start(&server, "ops", &["--label", "first"]);
    let waiter = start(run(&server, "ops", &["--label", "second"], "true"));
    await_waiting(&server, "ops", 1);

    let holders = json(on(&server, &["holders", "ops", "--json"]));
    assert_eq!((&holders[0]["label"], &holders[0]["cost"]), (&"first".into(), &1.into()));
    let waiters = json(on(&server, &["waiters", "ops", "--json"]));
    assert_eq!((&waiters[0]["label"], &waiters[0]["fence"]), (&"second".into(), &Value::Null));
    for what in ["holders", "waiters", "status"] {
        assert!(!expect(0, on(&server, &[what, "ops"])).is_empty());
    }

    let list = json(on(&server, &["list", "--json"]));
    assert_eq!((&list[0]["name"], &list[0]["waiting"]), (&"ops".into(), &1.into()));
    assert!(expect(0, on(&server, &["list"])).contains("ops"));

    expect(0, on(&server, &["pause", "ops"]));
    expect(0, on(&server, &["limit", "ops", "5"]));
    let paused = status(&server, "ops").expect("a status");
    assert_eq!((&paused["paused"], &paused["limit"], &paused["waiting"]), (&true.into(), &5.into(), &1.into()));

    expect(0, on(&server, &["resume", "ops"]));
    expect_output(0, &waiter.wait_with_output().expect("wait for fairq run"));
    expect(0, on(&server, &["limit", "ops", "reset"]));
    let reset = status(&server, "ops").expect("a status");
    assert_eq!((&reset["limit"], &reset["overridden"]), (&1.into(), &Value::Array(vec![])));
    drop(holder);
}

#[test]
fn what_does_not_exist_is_said_so() {
    let server = server();
    let (_, stderr) = expect_output(64, &output(on(&server, &["status", "nothing"])));
    assert!(stderr.contains("fairq list"), "{stderr}");
    let _holder = Holder::start(&server, "real", &[]);
    expect(1, on(&server, &["revoke", "real", "no-such-ticket"]));
    assert!(expect(0, on(&server, &["waiters", "real"])).contains("none"));
}

// ---- doctor ----

#[test]
fn the_doctor_finds_a_plain_server_fit() {
    let server = server();
    let stdout = expect(0, on(&server, &["doctor"]));
    for found in ["[ok]", "rights", "Pub/Sub round trip", "latency of EVALSHA", "nothing has to change"] {
        assert!(stdout.contains(found), "{found}: {stdout}");
    }
}

#[test]
fn the_doctor_names_an_eviction_that_would_lose_limiters() {
    let builder = Server::builder(Server::default_flavor());
    let server = builder.arg("--maxmemory", "100mb").arg("--maxmemory-policy", "allkeys-lru").start();
    let stdout = expect(1, on(&server, &["doctor"]));
    assert!(stdout.contains("[bad]  eviction: allkeys-lru"), "{stdout}");
    assert!(stdout.contains("noeviction"), "{stdout}");
}

#[test]
fn the_doctor_names_a_missing_right() {
    let server = server();
    let acl = ["SETUSER", "poor", "on", ">secret", "~*", "&*", "+@all", "-zadd"];
    redis::cmd("ACL").arg(&acl).exec(&mut server.conn()).expect("ACL SETUSER");
    let url = format!("redis://poor:secret@127.0.0.1:{}", server.port());
    let stdout = expect(1, fairq(&["doctor", "--url", &url]));
    assert!(stdout.contains("[bad]") && stdout.to_lowercase().contains("zadd"), "{stdout}");
    assert!(!stdout.contains("secret"), "the password stays out of it: {stdout}");
}

#[test]
fn the_doctor_says_when_nobody_is_there() {
    let stdout = expect(69, fairq(&["doctor", "--url", "redis://127.0.0.1:1"]));
    assert!(stdout.contains("cannot use"), "{stdout}");
}

// ---- bench ----

#[test]
fn a_short_bench_is_one_json_object() {
    let server = server();
    let args =
        ["bench", "--json", "--processes", "2", "--waiters", "40", "--limit", "3", "--seconds", "0.5", "--idle", "200"];
    let report = json(on(&server, &args));
    assert!(report["load"]["grants_per_s"].as_f64().is_some_and(|n| n > 0.0), "{report}");
    assert_eq!(report["load"]["overtakings"], 0, "{report}");
    assert_eq!(report["idle"]["waiters"], 200, "{report}");
    assert!(report["handoff"]["samples"].as_u64().is_some_and(|n| n > 0), "{report}");
    let left = eventually_some("everything is given back", SOON, || {
        let list = json(on(&server, &["list", "--json"]));
        let list = list.as_array().expect("an array").clone();
        list.iter().all(|limiter| limiter["used"] == 0 && limiter["waiting"] == 0).then_some(list)
    });
    assert!(!left.is_empty());
}

/// Small in every respect: that each part runs, and gives what its table is made of.
#[test]
fn parts_of_the_bench_can_be_had_alone() {
    let server = server();
    let small = ["--seconds", "0.2", "--longest", "100", "--names", "1", "--idle", "50", "--hold", "5ms"];
    let shape = ["--processes", "2", "--instances", "6", "--waiters", "60", "--limit", "3"];
    let only = ["bench", "--json", "--only", "line,names,cancels,scale"];
    let report = json(on(&server, &[&only[..], &small, &shape].concat()));
    assert!(report.get("load").is_none() && report.get("threads").is_none(), "not asked for: {report}");
    let positive = |pointer: &str| report.pointer(pointer).and_then(|value| value.as_f64()).is_some_and(|n| n > 0.0);
    for pointer in ["/line/rows/1/cancel_us", "/names/rows/0/pairs/per_s", "/cancels/script_calls_per_cancel"] {
        assert!(positive(pointer), "{pointer}: {report}");
    }
    assert_eq!(report["scale"]["instances"], 6, "{report}");
    assert_eq!(report["scale"]["load"]["most_at_once"], 3, "{report}");
    assert_eq!(report["scale"]["load"]["overtakings"], 0, "{report}");
    expect(64, on(&server, &["bench", "--only", "no-such-part"]));
}

// ---- usage ----

#[test]
fn wrong_usage_is_64_and_help_is_0() {
    expect(64, fairq(&["no-such-subcommand"]));
    expect(64, fairq(&["run", "--name", "x", "--limit", "0", "--", "true"]));
    expect(64, fairq(&["run", "--name", "x", "--limit", "1", "--max-wait", "5", "--", "true"]));
    assert!(expect(0, fairq(&["run", "--help"])).contains("77"));
    assert!(expect(0, fairq(&["--help"])).contains("Examples"));
}
