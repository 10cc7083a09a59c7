//! Calls of the C ABI in any order, with handles that live, are freed, belong to another type or are made up, with NULL, and
//! with hostile strings: nothing crashes, every failure has a status, and at the end nothing is held and no thread is left.
#![no_main]

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use fairq::ffi::*;
use fairq_fuzz::Input;
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 5] = ["a", "b", "{a}:held", "a|b c", "\u{0}"];
const URL: &str = "memory:c";
/// A run is a few calls: one that blocks does it for 2 ms at most.
const MOST_CALLS: usize = 120;

fuzz_target!(|bytes: &[u8]| {
    fairq::fuzzing::forget_worlds();
    let mut machine = Machine { input: Input::new(bytes), handles: Vec::new() };
    for _ in 0..MOST_CALLS {
        if machine.input.is_empty() {
            break;
        }
        machine.step();
    }
    machine.end();
});

/// A handle that some call has given, as the number it is, and the function that frees it.
struct Given {
    handle: usize,
    free: fn(usize),
}

struct Machine<'a> {
    input: Input<'a>,
    handles: Vec<Given>,
}

/// Bytes for a call, or what only claims to be some.
struct Bytes {
    owned: Vec<u8>,
    is_null: bool,
}

impl Bytes {
    fn at(&self) -> *const c_char {
        if self.is_null { null() } else { self.owned.as_ptr().cast() }
    }
}

macro_rules! free_by {
    ($free:ident) => {
        |handle| $free(std::ptr::without_provenance_mut(handle))
    };
}

impl Machine<'_> {
    /// A handle for a call: mostly any that was given at some time, freed and of whatever type; or nonsense.
    fn handle<T>(&mut self) -> *mut T {
        let handle = match self.input.byte() {
            255 => 0,
            254 => self.input.number() as usize,
            253 => usize::MAX,
            which if self.handles.is_empty() => usize::from(which),
            which => {
                let near = self.handles.len() - 1 - usize::from(which) % self.handles.len();
                let Given { handle, .. } = self.handles[near];
                // Now and then a neighbour's, or of another generation.
                if self.input.byte() == 255 { handle ^ 1 << self.input.choose(64) } else { handle }
            }
        };
        std::ptr::without_provenance_mut(handle)
    }

    /// As [`Machine::handle`], but of the last few of the type that `free` frees, so that calls get somewhere.
    fn fitting<T>(&mut self, free: fn(usize)) -> *mut T {
        if self.input.choose(5) == 0 {
            return self.handle();
        }
        let fitting: Vec<usize> = self
            .handles
            .iter()
            .filter(|given| std::ptr::fn_addr_eq(given.free, free))
            .map(|given| given.handle)
            .collect();
        let at = self.input.choose(fitting.len());
        std::ptr::without_provenance_mut(fitting.get(at).copied().unwrap_or(0))
    }

    fn keep<T>(&mut self, handle: *mut T, free: fn(usize)) {
        if !handle.is_null() {
            self.handles.push(Given { handle: handle.addr(), free });
        }
    }

    fn string(&mut self, sensible: &[&str]) -> Bytes {
        let (owned, is_null) = match self.input.choose(8) {
            0 => (self.input.bytes().to_vec(), false),
            1 => (vec![0xff, 0xfe], false),
            2 => (vec![b'x'; 250 + self.input.choose(10)], false),
            3 => (vec![1; self.input.choose(3)], true),
            _ => (sensible[self.input.choose(sensible.len())].as_bytes().to_vec(), false),
        };
        Bytes { owned, is_null }
    }

    fn step(&mut self) {
        let mut error: *mut fq_error = null_mut();
        let err: *mut *mut fq_error = if self.input.choose(4) == 0 { null_mut() } else { &raw mut error };
        // SAFETY: handles may be anything, that is the point; strings and places are real, or NULL.
        let status = unsafe { self.call(err) };
        // SAFETY: lives for ever.
        let name = unsafe { CStr::from_ptr(fq_status_name(status)) };
        assert_ne!(name, c"unknown status", "{status}");
        assert!(!matches!(status, FQ_PANIC | FQ_INTERNAL), "{}", message_of(error));
        if !err.is_null() {
            assert_eq!(status == FQ_OK, error.is_null(), "an error without a status, or a status without an error");
            assert_eq!(fq_error_status(error), status);
        }
        self.keep(error, free_by!(fq_error_free));
    }

    /// One call; what it came to, or FQ_OK where it does not say.
    unsafe fn call(&mut self, err: *mut *mut fq_error) -> fq_status {
        // SAFETY: as the caller's.
        unsafe {
            match self.input.choose(24) {
                0 => self.open_client(err),
                1 | 2 => self.open_limiter(err),
                3..=5 => self.acquire(err),
                6..=9 => self.acquire_start(err),
                10 => self.new_ticket(err),
                11 => fq_cancel(self.fitting(free_by!(fq_ticket_free)), err),
                12 => self.place(err),
                13 | 14 => self.poll(err),
                15 => self.new_queue(err),
                16 => fq_release(self.fitting(free_by!(fq_permit_free)), err),
                17 => self.configure(err),
                18 => self.look(err),
                19 => self.options(err),
                20 => self.free(),
                21 => self.free_as_something_else(),
                22 => fq_completions_set_fd(
                    self.fitting(free_by!(fq_completions_free)),
                    -1 - self.input.choose(2) as i32,
                    err,
                ),
                _ => self.close(err),
            }
        }
    }

    unsafe fn open_client(&mut self, err: *mut *mut fq_error) -> fq_status {
        let url = self.string(&[URL, URL, URL, "memory:other", "http://x", "redis://:pw@"]);
        let text = String::from_utf8_lossy(&url.owned);
        if text.contains(':') && !text.starts_with("memory:") && text != "http://x" && text != "redis://:pw@" {
            return FQ_OK; // no fuzzer is to connect anywhere
        }
        let config = if self.input.choose(3) > 0 { null_mut() } else { self.fitting(free_by!(fq_config_free)) };
        let mut client = null_mut();
        let out = if self.input.choose(9) == 8 { null_mut() } else { &raw mut client };
        let status = unsafe { fq_client_open(url.at(), url.owned.len(), config, out, err) };
        self.keep(client, free_by!(fq_client_free));
        status
    }

    unsafe fn open_limiter(&mut self, err: *mut *mut fq_error) -> fq_status {
        let name = self.string(&NAMES);
        let client = self.fitting(free_by!(fq_client_free));
        let config = self.fitting(free_by!(fq_config_free));
        let mut limiter = null_mut();
        let status = unsafe { fq_limiter_open(client, name.at(), name.owned.len(), config, &raw mut limiter, err) };
        self.keep(limiter, free_by!(fq_limiter_free));
        status
    }

    fn request(&mut self, label: &Bytes, longest: u64) -> fq_request {
        let max_wait_ms = self.input.number();
        fq_request {
            size: if self.input.choose(9) == 8 {
                self.input.number() as u32 % 48
            } else {
                size_of::<fq_request>() as u32
            },
            flags: [0, 1, 2, 3, 3, 4, u32::MAX][self.input.choose(7)],
            max_wait_ms: if longest == FQ_FOREVER { max_wait_ms } else { max_wait_ms % (longest + 1) },
            cost: if self.input.choose(4) > 0 { 1 } else { self.input.number() },
            label: label.at(),
            label_len: label.owned.len(),
        }
    }

    unsafe fn acquire(&mut self, err: *mut *mut fq_error) -> fq_status {
        let label = self.string(&["", "tenant 7", "|", "two\nlines"]);
        let request = self.request(&label, 2);
        let limiter = self.fitting(free_by!(fq_limiter_free));
        let ticket = if self.input.choose(3) > 0 { null_mut() } else { self.fitting(free_by!(fq_ticket_free)) };
        let mut permit = null_mut();
        let out = if self.input.choose(9) == 8 { null_mut() } else { &raw mut permit };
        let status = unsafe { fq_acquire(limiter, &raw const request, ticket, out, err) };
        assert_eq!(status == FQ_OK, !permit.is_null());
        self.keep(permit, free_by!(fq_permit_free));
        status
    }

    unsafe fn acquire_start(&mut self, err: *mut *mut fq_error) -> fq_status {
        let label = self.string(&["", "tenant 7", "|", "two\nlines"]);
        let request = self.request(&label, FQ_FOREVER);
        let asked = if self.input.choose(4) == 0 { null() } else { &raw const request };
        let limiter = self.fitting(free_by!(fq_limiter_free));
        let ticket = if self.input.choose(3) > 0 { null_mut() } else { self.fitting(free_by!(fq_ticket_free)) };
        let queue = self.fitting(free_by!(fq_completions_free));
        let token = self.input.number();
        unsafe { fq_acquire_start(limiter, asked, ticket, queue, token, err) }
    }

    unsafe fn new_ticket(&mut self, err: *mut *mut fq_error) -> fq_status {
        let mut ticket = null_mut();
        let status = unsafe { fq_ticket_new(self.fitting(free_by!(fq_limiter_free)), &raw mut ticket, err) };
        self.keep(ticket, free_by!(fq_ticket_free));
        status
    }

    unsafe fn new_queue(&mut self, err: *mut *mut fq_error) -> fq_status {
        let mut queue = null_mut();
        let status = unsafe { fq_completions_new(&raw mut queue, err) };
        self.keep(queue, free_by!(fq_completions_free));
        status
    }

    unsafe fn place(&mut self, err: *mut *mut fq_error) -> fq_status {
        let ticket = self.fitting(free_by!(fq_ticket_free));
        let mut place = fq_position { position: 0, estimate_ms: 0 };
        let out = if self.input.choose(5) == 4 { null_mut() } else { &raw mut place };
        match self.input.choose(2) {
            0 => unsafe { fq_ticket_position(ticket, out, err) },
            _ => unsafe { fq_ticket_last_position(ticket, out, err) },
        }
    }

    unsafe fn poll(&mut self, err: *mut *mut fq_error) -> fq_status {
        let queue = self.fitting(free_by!(fq_completions_free));
        let capacity = self.input.choose(5);
        let (mut count, mut events) = (77, Vec::with_capacity(capacity));
        let timeout = self.input.choose(3) as u64;
        let status = unsafe { fq_completions_poll(queue, events.as_mut_ptr(), capacity, timeout, &raw mut count, err) };
        assert!(count <= capacity && (status == FQ_OK || count == 0), "{count} of {capacity}");
        // SAFETY: so many were written.
        unsafe { events.set_len(count) };
        for fq_event { permit, error, .. } in events {
            self.keep(permit, free_by!(fq_permit_free));
            self.keep(error, free_by!(fq_error_free));
        }
        status
    }

    unsafe fn configure(&mut self, err: *mut *mut fq_error) -> fq_status {
        let limiter = self.fitting(free_by!(fq_limiter_free));
        match self.input.choose(2) {
            0 => unsafe { fq_limiter_set_limit(limiter, self.input.number(), err) },
            _ => unsafe { fq_limiter_configure(limiter, self.fitting(free_by!(fq_config_free)), err) },
        }
    }

    unsafe fn look(&mut self, err: *mut *mut fq_error) -> fq_status {
        let permit = self.fitting(free_by!(fq_permit_free));
        let _ = (fq_permit_fence(permit), fq_permit_order(permit), fq_permit_cost(permit), fq_permit_is_valid(permit));
        assert!((0..=FQ_PERMIT_STATE_NONE).contains(&fq_permit_state(permit)));
        let error = self.fitting(free_by!(fq_error_free));
        let _ = (message_of(error), fq_error_retryable(error), fq_error_retry_after_ms(error));
        // SAFETY: a struct of numbers, of which 0 is one.
        let mut info: fq_limiter_info = unsafe { std::mem::zeroed() };
        info.size = match self.input.choose(4) {
            0 => self.input.number() as u32 % 140,
            _ => size_of::<fq_limiter_info>() as u32,
        };
        unsafe { fq_limiter_status(self.fitting(free_by!(fq_limiter_free)), &raw mut info, err) }
    }

    unsafe fn options(&mut self, err: *mut *mut fq_error) -> fq_status {
        let config = self.fitting::<fq_config>(free_by!(fq_config_free));
        if config.is_null() || self.input.choose(4) == 0 {
            let mut config = null_mut();
            let status = unsafe { fq_config_new(&raw mut config, err) };
            self.keep(config, free_by!(fq_config_free));
            return status;
        }
        let keys: Vec<&str> = fairq::OPTIONS.iter().map(|option| option.key).collect();
        let key = self.string(&keys);
        let number = self.input.number().to_string();
        let value = self.string(&["1", "2", "3", "200ms", "0", "true", "local:2", "fail", &number]);
        unsafe { fq_config_set(config, key.at(), key.owned.len(), value.at(), value.owned.len(), err) }
    }

    fn free(&mut self) -> fq_status {
        let at = self.input.choose(self.handles.len());
        if let Some(given) = self.handles.get(at) {
            (given.free)(given.handle); // it stays in the list: freed ones are used too
        }
        FQ_OK
    }

    fn free_as_something_else(&mut self) -> fq_status {
        let frees: [fn(usize); 7] = [
            free_by!(fq_client_free),
            free_by!(fq_limiter_free),
            free_by!(fq_ticket_free),
            free_by!(fq_permit_free),
            free_by!(fq_completions_free),
            free_by!(fq_config_free),
            free_by!(fq_error_free),
        ];
        let free = frees[self.input.choose(frees.len())];
        free(self.handle::<u8>().addr());
        FQ_OK
    }

    unsafe fn close(&mut self, err: *mut *mut fq_error) -> fq_status {
        let client = self.fitting(free_by!(fq_client_free));
        unsafe { fq_client_close(client, self.input.choose(3) as u64, err) }
    }

    /// Everything is given back, whatever was done before.
    fn end(self) {
        for given in &self.handles {
            // SAFETY: any handle will do, and NULL.
            unsafe { fq_client_close(std::ptr::without_provenance(given.handle), 0, null_mut()) };
        }
        for given in &self.handles {
            (given.free)(given.handle);
        }
        let start = Instant::now();
        while is_something_left() {
            assert!(start.elapsed() < Duration::from_secs(5), "permits, places or threads are left");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn is_something_left() -> bool {
    let observer = fairq::Client::open(URL).expect("open");
    let left = NAMES.iter().any(|name| {
        let limiter = observer.limiter(name).open().expect("open");
        limiter.status().is_ok_and(|status| (status.used, status.holders, status.waiting) != (0, 0, 0))
    });
    observer.close(Duration::ZERO).expect("close");
    left || threads() > 0
}

/// Threads of the library's.
fn threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.flatten().map(name).filter(|name| name.starts_with("fairq-")).count()
}

fn message_of(error: *const fq_error) -> String {
    // SAFETY: of an error that is not freed yet, or an empty one.
    unsafe { CStr::from_ptr(fq_error_message(error)) }.to_string_lossy().into_owned()
}
