//! Ten requests, three at a time: `cargo run --example limit_streams` (memory), or with `FAIRQ_URL=redis://localhost` in
//! two terminals at once, to see them share the three.

use std::time::Duration;

use fairq::{Client, Completions, Error, Request};

fn main() -> Result<(), Error> {
    let url = std::env::var("FAIRQ_URL").unwrap_or_default();
    let client = Client::open(&url)?;
    let streams = client.limiter("example:streams").limit(3).max_queue(20).open()?;

    // One thread serves any number of waiters.
    let completions = Completions::new();
    for token in 0..10 {
        streams.acquire_start(&Request::new().label(format!("stream {token}")), &completions, token)?;
    }
    let mut workers = Vec::new();
    while workers.len() < 10 {
        for done in completions.poll(16, Duration::from_secs(60)) {
            let permit = done.result?;
            println!("stream {} begins, fence {}", done.token, permit.fence());
            workers.push(std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300)); // the work
                permit.release()
            }));
        }
    }
    for worker in workers {
        worker.join().expect("a worker that does not panic")?;
    }
    client.close(Duration::ZERO)
}
