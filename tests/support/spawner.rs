//! Starts child processes that die with the test process.
//!
//! Linux sends the parent-death signal when the *thread* that forked ends, and
//! every test has a thread of its own: a server shared between tests would die
//! with the test that happened to start it. So one thread, which lives as long
//! as the process, starts them all.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Answer = io::Result<Child>;

struct Order {
    command: Command,
    answer: Sender<Answer>,
}

/// Starts `command` as a child that gets SIGKILL when this process ends.
pub fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();
    let (answer, answered) = channel();
    SPAWNER
        .get_or_init(start_thread)
        .send(Order { command, answer })
        .expect("the spawner thread lives as long as the process");
    answered.recv().expect("the spawner answers every order")
}

fn start_thread() -> Sender<Order> {
    let (orders, inbox) = channel::<Order>();
    thread::Builder::new()
        .name("spawner".into())
        .spawn(move || {
            for mut order in inbox {
                // A receiver that is gone has panicked: nobody to tell.
                let _ = order.answer.send(spawn_here(&mut order.command));
            }
        })
        .expect("start the spawner thread");
    orders
}

fn spawn_here(command: &mut Command) -> Answer {
    let parent = std::process::id();
    // SAFETY: between fork and exec only async-signal-safe calls are made.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the signal was asked for.
            if libc::getppid() as u32 != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
    command.spawn()
}
