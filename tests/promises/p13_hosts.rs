//! P13, hosts: a forked child gets `forked`, and cannot give back what its parent holds. (The rest of P13 is about the C
//! ABI and the bindings: `tests/c`, `bindings/*/tests`.)

use std::time::Duration;

use fairq::{Client, Completions, Error, Request};

use crate::stores::*;

/// Runs `child` in a fork of this process; its answer is its exit status.
fn in_a_fork(child: impl FnOnce() -> u8) -> i32 {
    // SAFETY: the child runs on this thread's copy alone. It takes no lock that others here could have held (the
    // allocator looks after its own), and ends without running anybody's destructors or exit handlers.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
        0 => {
            let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child)).unwrap_or(99);
            // SAFETY: ends the child.
            unsafe { libc::_exit(answer.into()) }
        }
        pid => {
            let mut status = 0;
            // SAFETY: waits for our own child, into a place of ours.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            assert!(libc::WIFEXITED(status), "the child was killed by signal {}", libc::WTERMSIG(status));
            libc::WEXITSTATUS(status)
        }
    }
}

fn is_forked<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Forked))
}

#[test]
fn a_forked_child_can_do_nothing_with_what_it_inherits() {
    on_both(|world| {
        let (client, limiter, queue) = (world.client(), world.limiter(1), Completions::new());
        let mut held = Some(take(&limiter));
        let waiting = queue_up(&limiter, &queue, 1, &patient(), 0);
        let answer = in_a_fork(|| {
            let permit = held.take().expect("the parent's");
            let checks = [
                !permit.is_valid(),
                is_forked(permit.release()),
                !waiting.cancel(),
                is_forked(limiter.acquire(&Request::new())),
                is_forked(limiter.acquire_start(&Request::new(), &queue, 2)),
                is_forked(limiter.status()),
                is_forked(client.check()),
                is_forked(client.limiter("x").limit(1).open()),
                is_forked(client.close(Duration::ZERO)),
            ];
            drop((client.clone(), limiter.clone(), queue.clone()));
            checks.iter().position(|fine| !fine).map_or(0, |at| at as u8 + 1)
        });
        assert_eq!(answer, 0, "the check of that number");
        let status = limiter.status().expect("status");
        assert_eq!((status.used, status.waiting), (1, 1), "the child gave something back");
        held.take().expect("untouched").release().expect("release");
        granted(&queue, 1).release().expect("release");
    });
}

/// Also while threads of its parent wait in all kinds of places: the child does not have them.
#[test]
fn a_forked_child_may_open_a_client_of_its_own() {
    const WAITERS: u64 = 8;
    on_both(|world| {
        let limiter = world.limiter(1);
        let held = take(&limiter);
        std::thread::scope(|scope| {
            for _ in 0..WAITERS {
                scope.spawn(|| limiter.acquire(&patient()).expect("a permit").release().expect("release"));
            }
            wait_for_line(&limiter, WAITERS);
            for _ in 0..20 {
                assert_eq!(in_a_fork(|| use_a_client_of_its_own(world)), 0);
            }
            held.release().expect("release");
        });
    });
}

/// 0: it found what it should.
fn use_a_client_of_its_own(world: &World) -> u8 {
    let client = Client::open(&world.url).expect("open");
    let limiter = client.limiter(NAME).limit(1).open().expect("open");
    let free = limiter.try_acquire(&Request::new()).expect("ask").is_some();
    client.close(Duration::ZERO).expect("close");
    // A child's memory is a world of its own; Redis is one for both.
    u8::from(free != world.is_memory())
}
