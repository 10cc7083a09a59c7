//! The command `fairq` is let in by flags or by its environment, and so are the processes that it starts.

#![cfg(feature = "cli")]

use std::process::{Command, Output, Stdio};

use crate::login::{password_file, server_with_user};
use crate::support::{Authority, Tls};
use crate::tls::start;

/// The command with these in its environment, and nothing else of ours.
fn fairq(args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairq"));
    std::env::vars().filter(|(name, _)| name.starts_with("FAIRQ_")).for_each(|(name, _)| {
        command.env_remove(name);
    });
    command.args(args).envs(environment.iter().copied()).stdin(Stdio::null()).output().expect("run fairq")
}

#[track_caller]
fn expect(status: i32, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "stdout:\n{stdout}\nstderr:\n{stderr}");
    stdout + &stderr
}

#[test]
fn certificates_are_given_by_flags_or_by_the_environment() {
    let authority = Authority::new("authority");
    let Some(server) = start(Tls::by(&authority, true)) else { return };
    let (url, own) = (server.tls_url(), authority.sign("client"));
    let path = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    let (authority_file, cert, key) = (path(&authority.file()), path(&own.cert), path(&own.key));
    let flags = ["--url", &url, "--tls-ca-file", &authority_file, "--tls-cert-file", &cert, "--tls-key-file", &key];
    let run = ["run", "--name", "tls", "--limit", "1", "--", "true"];
    expect(0, &fairq(&[&flags[..], &run].concat(), &[]));
    let environment = [
        ("FAIRQ_URL", &*url),
        ("FAIRQ_TLS_CA_FILE", &authority_file),
        ("FAIRQ_TLS_CERT_FILE", &cert),
        ("FAIRQ_TLS_KEY_FILE", &key),
    ];
    let told = expect(0, &fairq(&["doctor"], &environment));
    assert!(told.contains("Pub/Sub round trip") && told.contains("nothing has to change"), "{told}");
    // The system's own store is what this variable says.
    let trusted = [&[("SSL_CERT_FILE", &*authority_file), environment[0]], &environment[2..]].concat();
    expect(0, &fairq(&["list"], &trusted));
    let told = expect(1, &fairq(&["doctor"], &environment[..2]));
    assert!(told.contains("client certificate") && told.contains("tls_cert_file"), "{told}");
    let told = expect(64, &fairq(&["list", "--url", &server.url()], &environment[1..2]));
    assert!(told.contains("tls_ca_file") && told.contains("rediss://"), "{told}");
}

#[test]
fn a_login_is_given_by_flags_or_by_the_environment_and_handed_on() {
    let server = server_with_user("s3cret");
    redis::cmd("ACL").arg(&["SETUSER", "app", "+scan"]).exec(&mut server.conn()).expect("ACL SETUSER");
    let (url, file) = (server.url(), password_file(&server, "s3cret"));
    let file = file.to_str().expect("UTF-8");
    let login = ["--url", &url, "--username", "app", "--password-file", file];
    expect(0, &fairq(&[&["list"][..], &login].concat(), &[]));
    // Nobody else may do it: what the processes do, they do as this user.
    let bench = ["bench", "--processes", "2", "--waiters", "10", "--seconds", "0.2", "--idle", "10"];
    for user in [["SETUSER", "default", "-evalsha", "-eval"], ["SETUSER", "app", "+@all", "~*"]] {
        redis::cmd("ACL").arg(&user).exec(&mut server.conn()).expect("ACL SETUSER");
    }
    let told = expect(0, &fairq(&[&bench[..], &login].concat(), &[]));
    assert!(!told.contains("s3cret"), "{told}");
    let environment = [("FAIRQ_URL", &*url), ("FAIRQ_USERNAME", "app"), ("FAIRQ_PASSWORD", "s3cret")];
    expect(0, &fairq(&["list"], &environment));
    let told = expect(64, &fairq(&["list"], &[environment[0], environment[1], ("FAIRQ_PASSWORD", "wr0ng")]));
    assert!(told.contains("option password") && !told.contains("wr0ng"), "{told}");
}
