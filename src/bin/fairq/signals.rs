//! Signals as messages on a channel, with the one thing that signal-hook tells only by a C helper: whether the terminal
//! sent it. A Ctrl-C goes to the whole foreground group, so a command run by us has had it already.

use std::io::Read;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::exit::Failure;

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    pub number: i32,
    /// Sent by the kernel to the whole group, as Ctrl-C is; known on Linux only.
    pub from_terminal: bool,
}

/// Where the handler writes; -1 before the first `catch`. A process catches once and until its end.
static PIPE: AtomicI32 = AtomicI32::new(-1);
const TERMINAL_BIT: u8 = 0x80;

/// From now on these signals arrive on the channel instead of ending the process.
///
/// One that is ignored stays ignored: `nohup fairq run …` has to survive its terminal.
pub fn catch(numbers: &[i32]) -> Result<Receiver<Signal>, Failure> {
    let (reader, writer) = std::io::pipe()?;
    let writer = OwnedFd::from(writer).into_raw_fd();
    // A full pipe must not block the handler.
    // SAFETY: the descriptor was just made and is ours.
    unsafe { libc::fcntl(writer, libc::F_SETFL, libc::O_NONBLOCK) };
    let before = PIPE.swap(writer, Ordering::SeqCst);
    assert_eq!(before, -1, "signals are caught once in a process");
    let (sender, receiver) = unbounded();
    thread::Builder::new().name("signals".into()).spawn(move || pass_on(reader, &sender))?;
    for &number in numbers {
        install(number)?;
    }
    Ok(receiver)
}

/// Sleeps, unless a signal says that it is time to go.
pub fn sleep(signals: &Receiver<Signal>, duration: Duration) -> Result<(), Failure> {
    match signals.recv_timeout(duration) {
        Ok(signal) => Err(Failure::signalled(signal.number)),
        Err(_) => Ok(()),
    }
}

/// The workers of a command leave Ctrl-C to their parent, which ends them in order.
pub fn leave_to_parent() {
    // SAFETY: SIG_IGN is a valid disposition for this signal.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
}

fn install(number: i32) -> Result<(), Failure> {
    // SAFETY: both structures are plain data that the calls fill or read; `on_signal` has the SA_SIGINFO signature and
    // does nothing but async-signal-safe things.
    let result = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &mut old);
        if old.sa_sigaction == libc::SIG_IGN {
            return Ok(());
        }
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_signal as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(number, &new, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

extern "C" fn on_signal(number: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo; write and errno are async-signal-safe.
    unsafe {
        let byte = number as u8 | if sent_by_terminal(&*info) { TERMINAL_BIT } else { 0 };
        let errno = errno_location();
        let saved = *errno;
        libc::write(PIPE.load(Ordering::SeqCst), (&raw const byte).cast(), 1);
        *errno = saved;
    }
}

#[cfg(target_os = "linux")]
fn sent_by_terminal(info: &libc::siginfo_t) -> bool {
    info.si_code == libc::SI_KERNEL
}

#[cfg(not(target_os = "linux"))]
fn sent_by_terminal(_info: &libc::siginfo_t) -> bool {
    false
}

#[cfg(target_os = "linux")]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: no precondition.
    unsafe { libc::__errno_location() }
}

#[cfg(not(target_os = "linux"))]
unsafe fn errno_location() -> *mut libc::c_int {
    // SAFETY: no precondition.
    unsafe { libc::__error() }
}

fn pass_on(mut reader: std::io::PipeReader, to: &Sender<Signal>) {
    let mut byte = [0u8];
    while reader.read_exact(&mut byte).is_ok() {
        let signal = Signal { number: (byte[0] & !TERMINAL_BIT).into(), from_terminal: byte[0] & TERMINAL_BIT != 0 };
        if to.send(signal).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_becomes_a_message_and_ends_a_sleep() {
        let signals = catch(&[libc::SIGUSR1]).unwrap();
        assert!(sleep(&signals, Duration::from_millis(1)).is_ok());
        // SAFETY: the signal is caught, so raising it only runs the handler.
        unsafe { libc::raise(libc::SIGUSR1) };
        let failure = sleep(&signals, Duration::from_secs(10)).unwrap_err();
        assert_eq!(failure.status, crate::exit::by_signal(libc::SIGUSR1));
    }
}
