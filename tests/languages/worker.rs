//! A worker of the cross-language line (see `line.py`), in Rust.
//!
//! Reads from standard input `start TOKEN COST`, `release TOKEN`, and the end; says `granted TOKEN FENCE`,
//! `released TOKEN` or `failed TOKEN WHY`.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairq::{Client, Completions, Permit, Request};

type Held = Arc<Mutex<HashMap<u64, Permit>>>;

/// Tells of each completion, on a thread of its own; the reader of the orders blocks.
fn tell(completions: &Completions, held: &Held) {
    loop {
        for done in completions.poll(16, Duration::from_secs(60)) {
            match done.result {
                Ok(permit) => {
                    let fence = permit.fence();
                    held.lock().expect("no panic").insert(done.token, permit);
                    println!("granted {} {fence}", done.token);
                }
                Err(error) => println!("failed {} {error}", done.token),
            }
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let (url, name) = (args.next().expect("a URL"), args.next().expect("a limiter"));
    let client = Client::open(&url).expect("open the client");
    let limiter = client.limiter(&name).limit(3).open().expect("open the limiter");
    let (completions, held) = (Completions::new(), Held::default());
    let (queue, permits) = (completions.clone(), held.clone());
    std::thread::spawn(move || tell(&queue, &permits));
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("read an order");
        let words: Vec<&str> = line.split(' ').collect();
        let token: u64 = words[1].parse().expect("a token");
        match words[0] {
            "start" => {
                let cost = words[2].parse().expect("a cost");
                let request = Request::new().cost(cost).label(format!("t{token}")).wait_forever();
                limiter.acquire_start(&request, &completions, token).expect("start");
            }
            _ => {
                let permit = held.lock().expect("no panic").remove(&token).expect("a permit");
                permit.release().expect("release");
                println!("released {token}");
            }
        }
    }
    client.close(Duration::ZERO).expect("close");
}
