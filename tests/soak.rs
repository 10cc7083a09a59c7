//! `fairq soak`, as a user meets it.

#![cfg(feature = "cli")]

#[path = "support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};

use support::Server;

const FIVE_SECONDS: &str = "0.084";

fn soak(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairq"));
    command.arg("soak").args(args).env_remove("FAIRQ_URL").env_remove("FAIRQ_LOG").stdin(Stdio::null());
    command
}

#[track_caller]
fn expect(status: i32, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "stdout:\n{stdout}\nstderr:\n{stderr}");
    stdout
}

#[test]
fn a_short_soak_with_faults_keeps_every_promise_and_says_how_to_do_it_again() {
    let server = Server::start(Server::default_flavor());
    let args = ["--url", &server.url(), "--minutes", FIVE_SECONDS, "--processes", "3", "--seed", "7", "--faults"];
    let stdout = expect(0, &soak(&args).output().expect("run fairq"));
    assert!(stdout.contains("every promise was kept"), "{stdout}");
    assert!(stdout.contains("--seed 7 --faults"), "{stdout}");
    assert!(!stdout.contains("faults: 0"), "nothing was broken: {stdout}");
}

/// An operator raises a limit behind its back: to the soak that is a limit exceeded.
#[test]
fn a_broken_promise_ends_a_soak_and_is_told() {
    let server = Server::start(Server::default_flavor());
    let mut command = soak(&["--url", &server.url(), "--seed", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start fairq");
    let name = format!("soak-{}-0", child.id());
    let mut raise = Command::new(env!("CARGO_BIN_EXE_fairq"));
    raise.args(["limit", &name, "5"]).env("FAIRQ_URL", server.url()).stdout(Stdio::null()).stderr(Stdio::null());
    support::eventually("the limit is raised", support::SOON, || raise.status().expect("run fairq").success());
    let stdout = expect(1, &child.wait_with_output().expect("wait for fairq"));
    for told in ["a promise was broken", "limiter 0: ", "held at once, the limit is 1", "granted", "--seed 1"] {
        assert!(stdout.contains(told), "{told}: {stdout}");
    }
}

/// Nor is anybody else's server disturbed unless that is allowed.
#[test]
fn ctrl_c_ends_a_soak_with_its_summary_and_leaves_nothing() {
    let server = Server::start(Server::default_flavor());
    let mut command = soak(&["--url", &server.url(), "--processes", "2"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start fairq");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut text = String::new();
    stdout.read_line(&mut text).expect("the introduction");
    assert!(text.contains("without faults"), "{text}");
    support::eventually("it is at work", support::SOON, || server.script_calls() > 200);
    // SAFETY: a plain system call; the child has not been waited for, so the id is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    stdout.read_to_string(&mut text).expect("the summary");
    assert_eq!(child.wait().expect("wait for fairq").code(), Some(130), "{text}");
    assert!(text.contains("every promise was kept until then") && text.contains("again: fairq soak"), "{text}");
    let held: Vec<String> = redis::cmd("KEYS").arg("fq:*:held").query(&mut server.conn()).expect("KEYS");
    for key in held {
        let count: u64 = redis::cmd("ZCARD").arg(&key).query(&mut server.conn()).expect("ZCARD");
        assert_eq!(count, 1, "{key} has more than its permanent member");
    }
}
