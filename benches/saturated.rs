//! A limiter that is never idle: 64 threads of one client take permits and give them back at once, 16 at a time. The same
//! in other languages: `BenchmarkSaturated` in `bindings/go`, `SaturatedBench` in `bindings/java`.
//!
//! ```sh
//! cargo bench --bench saturated -- redis://localhost
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fairq::{Client, Request};

const THREADS: usize = 64;
const LIMIT: u64 = 16;
const ROUNDS: usize = 5;
const WARM_UP: Duration = Duration::from_secs(2);
const ROUND: Duration = Duration::from_secs(2);

fn main() -> Result<(), fairq::Error> {
    let url = std::env::args().skip(1).find(|word| word != "--bench");
    let Some(url) = url else {
        println!("no server named: cargo bench --bench saturated -- redis://localhost");
        return Ok(());
    };
    let client = Client::open(&url)?;
    let limiter = client.limiter("bench:saturated").limit(LIMIT).open()?;
    let (grants, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut rates = std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    drop(limiter.acquire(&Request::new().wait_forever()).expect("a permit"));
                    grants.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(WARM_UP);
        let rates: Vec<f64> = (0..ROUNDS).map(|_| rate(&grants)).collect();
        over.store(true, Ordering::Relaxed);
        rates
    });
    rates.sort_by(f64::total_cmp);
    println!("{:.0} grants/s (from {:.0} to {:.0})", rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
    client.close(Duration::ZERO)
}

fn rate(grants: &AtomicU64) -> f64 {
    let (start, before) = (Instant::now(), grants.load(Ordering::Relaxed));
    std::thread::sleep(ROUND);
    (grants.load(Ordering::Relaxed) - before) as f64 / start.elapsed().as_secs_f64()
}
