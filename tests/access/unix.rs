//! A server of the same machine, by its socket.

use fairq::{Client, Completions};

use crate::stores::{granted, limiter, patient, queue_up, take, wait_for_use};
use crate::support::{Flavor, Server};

#[test]
fn a_permit_goes_round_by_a_unix_socket() {
    for flavor in Flavor::available() {
        let server = Server::builder(flavor).password("s3cret").start();
        let url = server.unix_url();
        let [ours, theirs] = [(); 2].map(|()| limiter(&Client::open(&url).expect("open"), 1));
        let (held, completions) = (take(&theirs), Completions::new());
        queue_up(&ours, &completions, 1, &patient(), 0);
        held.release().expect("release");
        granted(&completions, 1).release().expect("release");
        wait_for_use(&ours, 0);
        assert!(!Client::open(&url).expect("open").url().contains("s3cret"));
    }
}

#[test]
fn the_login_may_come_from_elsewhere_than_the_address() {
    let server = Server::builder(Server::default_flavor()).password("s3cret").start();
    let url = server.unix_url().split('?').next().expect("an address").replace("redis+unix:", "unix:");
    let file = server.folder().join("password");
    std::fs::write(&file, "s3cret\n").expect("write");
    let client = Client::builder(&url).password_file(&file).open().expect("open");
    client.check().expect("fit for use");
    take(&limiter(&client, 1)).release().expect("release");
}
