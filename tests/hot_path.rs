//! A permit of the embedded store that nobody else wants costs no memory: what a request needs is there from the one before.
#![allow(unsafe_code, missing_docs, reason = "an allocator is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use fairq::{Client, Limiter, Permit, Request};

/// Counts what the thread itself asks for, so that nobody else's doings come into it.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is done by the system's allocator; counting beside it allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; it came from the same allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Its heartbeats stay out of the count.
fn limiter(world: &str, limit: u64) -> Limiter {
    let hour = Duration::from_secs(3600);
    let client = Client::open(&format!("memory:{world}")).expect("memory is always there");
    client.limiter("a").limit(limit).lease(hour).idle(2 * hour).open().expect("a valid limiter")
}

/// How often the deed asks for memory when it is done again and again.
fn allocations(mut deed: impl FnMut()) -> u64 {
    (0..100).for_each(|_| deed()); // until tables have their size
    let before = COUNT.get();
    (0..10_000).for_each(|_| deed());
    COUNT.get() - before
}

fn acquire(limiter: &Limiter) -> Permit {
    limiter.acquire(&Request::new()).expect("a permit")
}

#[test]
fn a_permit_that_nobody_else_wants_costs_no_memory() {
    let limiter = limiter("hot-path", 1);
    assert_eq!(allocations(|| acquire(&limiter).release().expect("release")), 0, "acquire and release");
    assert_eq!(allocations(|| drop(acquire(&limiter))), 0, "acquire and drop");
    let try_acquire = || limiter.try_acquire(&Request::new()).expect("an answer").expect("a permit");
    assert_eq!(allocations(|| try_acquire().release().expect("release")), 0, "try_acquire and release");
}

#[test]
fn nor_does_one_beside_others() {
    let limiter = limiter("hot-path-beside", 1_000);
    // Where there were twice as many once, hash tables have room for the traces of those who went: when these are in the way,
    // a table that is half empty is swept, and one that is fuller grows.
    let mut held: Vec<_> = (0..1_000).map(|_| acquire(&limiter)).collect();
    held.truncate(500);
    let mut at = 0;
    let turn = || {
        at = (at + 7) % held.len();
        held[at] = acquire(&limiter); // and the one that was there goes back
    };
    assert_eq!(allocations(turn), 0);
}

/// The count counts: a label has to be kept somewhere.
#[test]
fn a_label_costs_memory() {
    let limiter = limiter("hot-path-label", 1);
    let labelled = || limiter.acquire(&Request::new().label("tenant 7")).expect("a permit").release().expect("release");
    assert!(allocations(labelled) >= 10_000);
}
