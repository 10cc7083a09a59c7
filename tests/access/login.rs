//! Users and passwords that are given beside the URL.

use std::path::PathBuf;
use std::time::Duration;

use fairq::{Client, ClientBuilder, Error, Request};

use crate::scene::{brisk, limiter};
use crate::stores::take;
use crate::support::{SERVICE, SOON, Server};

/// A server with a user `app` who has the documented rights and this password.
pub fn server_with_user(password: &str) -> Server {
    let server = Server::start(Server::default_flavor());
    let rule = format!("SETUSER app reset on >{password} {}", fairq::redis_acl());
    redis::cmd("ACL").arg(rule.split(' ').collect::<Vec<_>>()).exec(&mut server.conn()).expect("ACL SETUSER");
    server
}

/// A file that holds this.
pub fn password_file(server: &Server, password: &str) -> PathBuf {
    let path = server.folder().join("password");
    std::fs::write(&path, password).expect("write");
    path
}

#[track_caller]
fn works(builder: ClientBuilder) {
    let client = builder.open().expect("open");
    client.check().expect("fit for use");
    take(&limiter(&client, "login", 1)).release().expect("release");
}

#[test]
fn a_login_may_be_given_beside_the_url() {
    let server = server_with_user("s3cret");
    let url = server.url();
    let file = password_file(&server, "s3cret\n");
    works(Client::builder(&url).username("app").password("s3cret"));
    works(Client::builder(&url).username("app").password_file(&file));
    works(Client::builder(&url.replace("://", "://app@")).password_file(&file));
    let keys = [("username", "app"), ("password_file", file.to_str().expect("UTF-8")), ("password", "")];
    let set = |builder: ClientBuilder, (key, value): (&str, &str)| builder.option(key, value).expect("an option");
    works(keys.into_iter().fold(Client::builder(&url), set));
    let only_password = Server::builder(Server::default_flavor()).password("s3cret").start();
    let url = format!("redis://127.0.0.1:{}", only_password.port());
    works(Client::builder(&url).password("s3cret"));
    works(Client::builder(&url).password_file(&file));
}

/// At the first use nothing speaks for it that somebody is about to put it right.
#[test]
fn a_login_that_never_was_right_is_an_error_of_configuration() {
    let server = server_with_user("s3cret");
    let file = password_file(&server, "wr0ng");
    for (builder, words) in [
        (Client::builder(&server.url()).username("app").password("wr0ng"), vec!["option password"]),
        (Client::builder(&server.url()).username("app").password_file(&file), vec!["password_file", "/password"]),
        (
            Client::builder(&server.url()).username("app").password_file("/nowhere/x"),
            vec!["/nowhere/x", "no such file"],
        ),
        (Client::builder(&server.url().replace("://", "://app:wr0ng@")), vec!["the URL"]),
    ] {
        let client = builder.open().expect("open");
        let asked = limiter(&client, "login", 1).acquire(&Request::new().max_wait(SOON)).map(drop);
        for error in [asked, client.check().map(drop)].map(Result::unwrap_err) {
            let Error::Config { detail } = &error else { panic!("not an error of configuration: {error:?}") };
            assert!(words.iter().all(|word| detail.contains(word)) && !detail.contains("wr0ng"), "{words:?}: {detail}");
        }
    }
}

/// A sentinel's login is another than the server's, and may be renewed as well.
#[test]
fn sentinels_have_a_password_file_of_their_own() {
    let server = server_with_user("s3cret");
    let lines = format!("sentinel monitor {SERVICE} 127.0.0.1 {} 1\n", server.port());
    let sentinel = Server::builder(Server::default_flavor()).sentinel(&lines).start();
    let rights = "+sentinel|get-master-addr-by-name +sentinel|master";
    let set_user = |password: &str, rights: &str| {
        let rule = format!("SETUSER watcher reset on >{password} {rights}");
        redis::cmd("ACL")
            .arg(rule.split_whitespace().collect::<Vec<_>>())
            .exec(&mut sentinel.conn())
            .expect("ACL SETUSER");
    };
    set_user("of-sentinels", rights);
    let nobody = ["SETUSER", "default", "-sentinel"];
    redis::cmd("ACL").arg(&nobody).exec(&mut sentinel.conn()).expect("ACL SETUSER");
    let own = sentinel.folder().join("password");
    std::fs::write(&own, "of-sentinels").expect("write");
    let url = format!("redis-sentinel://127.0.0.1:{}/{SERVICE}?sentinel_user=watcher", sentinel.port());
    let file = password_file(&server, "s3cret");
    let builder = Client::builder(&url).username("app").password_file(&file).sentinel_password_file(&own);
    let client = builder.io_timeout(Duration::from_millis(500)).open().expect("open");
    client.check().expect("fit for use");
    let limited = limiter(&client, "sentinel", 1);
    take(&limited).release().expect("release");
    let without = brisk(&url.replace("://", "://app:s3cret@"));
    let asked = limiter(&without, "sentinel", 1).acquire(&Request::new().max_wait(SOON)).map(drop);
    assert!(matches!(asked, Err(Error::Config { .. })), "{asked:?}");

    for right in rights.split(' ') {
        set_user("of-sentinels", &rights.replace(right, ""));
        let told = client.check().map(drop);
        // Redis 6.2 does not tell which of its subcommands it was.
        let named = |detail: &str| detail.contains("'sentinel") && detail.contains("Rights");
        assert!(matches!(&told, Err(Error::Config { detail }) if named(detail)), "{right}: {told:?}");
    }

    // Renewed: whoever asks anew does so with the new one.
    set_user("renewed", rights);
    let refused = client.check().expect_err("the file has the old one");
    let Error::Unavailable { detail, .. } = &refused else { panic!("an outage: {refused:?}") };
    assert!(detail.contains("sentinel_password_file") && !detail.contains("of-sentinels"), "{detail}");
    std::fs::write(&own, "renewed").expect("write");
    client.check().expect("fit for use");
}
