//! Handles: names of objects, handed to callers in the place of addresses.
//!
//! ```text
//! 63  60 59   52 51            24 23         0
//! | kind | fork |   generation   |   index    |
//! ```
//!
//! `index` is a slot, its low bits the shard it lies in. `generation` counts the slot's tenants, so that the name of a
//! former one is not taken for the present one's; a slot that has used up its generations is not used again. `kind` tells
//! a ticket's name from a permit's, and any name from an address. `fork` tells a parent's name from its child's.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process::{self, PerProcess};
use crate::sync::Mutex;
use crate::{Client, Error, Limiter, Permit, Ticket};

const SHARDS: usize = 8;
const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 28;
const FORK_BITS: u32 = 8;
const MAX_SLOTS: usize = (1 << INDEX_BITS) / SHARDS;
const LAST_GENERATION: u64 = (1 << GENERATION_BITS) - 1;

/// What a handle may stand for.
pub(super) trait Object: Sized + 'static {
    /// The C type that names it.
    type Handle;
    const KIND: u64;
    const NAME: &'static str;
    fn table(objects: &'static Objects) -> &'static Table<Self>;
}

macro_rules! objects {
    ($($field:ident: $object:ty => $handle:ty = $kind:literal $name:literal),* $(,)?) => {
        /// Every object that callers have a handle of.
        #[derive(Default)]
        pub(super) struct Objects { $($field: Table<$object>,)* }
        $(impl Object for $object {
            type Handle = $handle;
            const KIND: u64 = $kind;
            const NAME: &'static str = $name;
            fn table(objects: &'static Objects) -> &'static Table<Self> { &objects.$field }
        })*
    };
}

objects! {
    configs: super::config::Config => super::fq_config = 1 "config",
    clients: Client => super::fq_client = 2 "client",
    limiters: Limiter => super::fq_limiter = 3 "limiter",
    tickets: Ticket => super::fq_ticket = 4 "ticket",
    permits: Permit => super::fq_permit = 5 "permit",
    queues: super::completions::Queue => super::fq_completions = 6 "completions",
    errors: super::error::Failure => super::fq_error = 7 "error",
}

/// A forked child has no objects: its parent's stay where they are, untouched.
static OBJECTS: PerProcess<Objects> = PerProcess::new();

pub(super) struct Table<T> {
    /// Each thread puts its objects into one of them, so that threads seldom meet.
    shards: [Mutex<Shard<T>>; SHARDS],
}

struct Shard<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    generation: u64,
    object: Option<Arc<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { shards: std::array::from_fn(|_| Mutex::new(Shard { slots: Vec::new(), free: Vec::new() })) }
    }
}

impl<T> Shard<T> {
    /// Puts an object into a slot; which, and of which generation. `None`: there are too many.
    fn insert(&mut self, object: T) -> Option<(usize, u64)> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < MAX_SLOTS => {
                self.slots.push(Slot { generation: 1, object: None });
                self.slots.len() - 1
            }
            None => return None,
        };
        self.slots[slot].object = Some(Arc::new(object));
        Some((slot, self.slots[slot].generation))
    }

    fn tenant(&mut self, slot: usize, generation: u64) -> Option<&mut Slot<T>> {
        self.slots.get_mut(slot).filter(|s| s.generation == generation && s.object.is_some())
    }

    fn remove(&mut self, slot: usize, generation: u64) -> Option<Arc<T>> {
        let tenant = self.tenant(slot, generation)?;
        let object = tenant.object.take();
        if tenant.generation < LAST_GENERATION {
            tenant.generation += 1;
            self.free.push(slot);
        }
        object
    }
}

/// Gives an object a name.
pub(super) fn give<T: Object>(object: T) -> Result<*mut T::Handle, Error> {
    let shard = my_shard();
    let place = T::table(OBJECTS.get()).shards[shard].lock().insert(object);
    let Some((slot, generation)) = place else {
        return Err(Error::Internal { detail: format!("too many {}s are open: free some", T::NAME) });
    };
    let index = (slot * SHARDS + shard) as u64;
    let name = T::KIND << 60 | fork() << (INDEX_BITS + GENERATION_BITS) | generation << INDEX_BITS | index;
    Ok(std::ptr::without_provenance_mut(name as usize))
}

/// The object of that name.
///
/// # Errors
/// [`Error::Invalid`] when there is none, [`Error::Forked`] when it is a parent's.
pub(super) fn get<T: Object>(handle: *const T::Handle) -> Result<Arc<T>, Error> {
    let (shard, slot, generation) = place::<T>(handle)?;
    let mut shard = shard.lock();
    let object = shard.tenant(slot, generation).and_then(|tenant| tenant.object.clone());
    drop(shard);
    object.ok_or_else(|| Error::invalid(T::NAME, "there is none under this handle (any more): it may have been freed"))
}

/// Takes the name away; the object stays for as long as somebody uses it. What has no name has none to lose.
pub(super) fn take<T: Object>(handle: *const T::Handle) -> Option<Arc<T>> {
    let (shard, slot, generation) = place::<T>(handle).ok()?;
    shard.lock().remove(slot, generation)
}

fn place<T: Object>(handle: *const T::Handle) -> Result<(&'static Mutex<Shard<T>>, usize, u64), Error> {
    let name = handle.addr() as u64;
    if name == 0 {
        return Err(Error::invalid(T::NAME, "it is NULL"));
    }
    if name >> 60 != T::KIND {
        return Err(Error::invalid(T::NAME, "this is no handle of one"));
    }
    if (name >> (INDEX_BITS + GENERATION_BITS)) & mask(FORK_BITS) != fork() {
        return Err(Error::Forked);
    }
    let index = (name & mask(INDEX_BITS)) as usize;
    let generation = (name >> INDEX_BITS) & mask(GENERATION_BITS);
    Ok((&T::table(OBJECTS.get()).shards[index % SHARDS], index / SHARDS, generation))
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

fn fork() -> u64 {
    u64::from(process::generation()) & mask(FORK_BITS)
}

fn my_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    }
    // A thread that is being torn down may still free what it has.
    MINE.try_with(Cell::get).unwrap_or(0)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_used_again() {
        let mut shard = Shard { slots: Vec::new(), free: Vec::new() };
        let first = shard.insert('a').unwrap();
        assert_eq!(shard.remove(first.0, first.1).as_deref(), Some(&'a'));
        assert_eq!(shard.remove(first.0, first.1), None, "freed twice");
        let second = shard.insert('b').unwrap();
        assert_eq!(second.0, first.0, "the slot is used again");
        assert!(shard.tenant(first.0, first.1).is_none(), "under the old name there is nobody");
        shard.slots[0].generation = LAST_GENERATION;
        shard.remove(0, LAST_GENERATION).unwrap();
        assert_ne!(shard.insert('c').unwrap().0, 0, "a slot without a new name to give is not used again");
    }
}
