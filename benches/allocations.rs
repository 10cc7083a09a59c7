//! Allocations and CPU of a client per grant, by an allocator that counts. On the memory store, and on a server if one is
//! named:
//!
//! ```sh
//! cargo bench --bench allocations
//! cargo bench --bench allocations -- redis://localhost
//! ```
//!
//! All threads of the client are counted, and nobody else is in this process. System calls are counted by the kernel:
//! `strace -cf` (or `perf trace -s`) over the same command; see README.md.
#![allow(unsafe_code, missing_docs, reason = "an allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fairq::{Client, Completions, Limiter, Permit, Request};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is done by the system's allocator; counting beside it allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; it came from the same allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn count(bytes: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WAITING: u64 = 1_000;
const PATIENCE: Duration = Duration::from_secs(10);

fn main() {
    let url = std::env::args().skip(1).find(|word| word != "--bench");
    println!("{:44}{:>12}{:>10}{:>10}{:>10}", "per grant", "allocations", "bytes", "CPU us", "switches");
    store("memory", "memory:bench-allocations", 100_000);
    match url {
        Some(url) => store("Redis", &url, 20_000),
        None => println!("no server named: cargo bench --bench allocations -- redis://localhost"),
    }
}

fn store(name: &str, url: &str, times: u64) {
    let client = Client::open(url).expect("open");
    let open = |part: &str, limit| {
        let limiter = client.limiter(&format!("bench:allocations:{part}:{}", std::process::id())).limit(limit);
        limiter.open().expect("a valid limiter")
    };
    let alone = open("alone", 1);
    let pair = || alone.acquire(&Request::new()).expect("a permit").release().expect("release");
    measure(&format!("{name}: acquire + release, nobody waits"), times, pair);
    let mut line = Line::new(open("line", 4), WAITING);
    measure(&format!("{name}: hand-off, {WAITING} waiting"), times, || line.turn());
    drop(line);
    client.close(Duration::ZERO).expect("close");
}

/// A limiter that is never idle, and whose line is always as long.
struct Line {
    limiter: Limiter,
    completions: Completions,
    ready: Vec<Permit>,
}

impl Line {
    fn new(limiter: Limiter, waiting: u64) -> Line {
        let line = Line { limiter, completions: Completions::new(), ready: Vec::new() };
        (0..waiting).for_each(|_| line.ask());
        line
    }

    fn ask(&self) {
        self.limiter.acquire_start(&Request::new().wait_forever(), &self.completions, 0).expect("start");
    }

    fn turn(&mut self) {
        if self.ready.is_empty() {
            let granted = self.completions.poll(64, PATIENCE);
            self.ready.extend(granted.into_iter().map(|completion| completion.result.expect("a permit")));
        }
        drop(self.ready.pop().expect("a grant"));
        self.ask();
    }
}

fn measure(what: &str, times: u64, mut deed: impl FnMut()) {
    (0..times / 10).for_each(|_| deed()); // until buffers and tables have their size
    let before = Counters::now();
    (0..times).for_each(|_| deed());
    let [calls, bytes, cpu_us, switches] = Counters::now().since(&before).map(|count| count as f64 / times as f64);
    println!("{what:44}{calls:12.2}{bytes:10.0}{cpu_us:10.2}{switches:10.3}");
}

struct Counters([u64; 4]);

impl Counters {
    fn now() -> Counters {
        // SAFETY: getrusage fills the structure, which is plain data.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        let switches = usage.ru_nvcsw as u64 + usage.ru_nivcsw as u64;
        let cpu = micros(usage.ru_utime) + micros(usage.ru_stime);
        Counters([CALLS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed), cpu, switches])
    }

    fn since(self, before: &Counters) -> [u64; 4] {
        std::array::from_fn(|at| self.0[at] - before.0[at])
    }
}
