//! The command itself: started with the permit's numbers in its environment, watched until it ends.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, after, bounded, never, select};
use fairq::{Permit, PermitEvent};

use super::OnLost;
use crate::exit::{Failure, LOST, by_signal};
use crate::signals::Signal;

/// How long a command that lost its permit may take to stop before it is made to.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn spawn(command: &[OsString], permit: &Permit, on_lost: OnLost) -> std::io::Result<Child> {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]);
    child.env("FAIRQ_FENCE", permit.fence().to_string());
    child.env("FAIRQ_TICKET", permit.ticket_id());
    if on_lost == OnLost::Kill {
        die_with_us(&mut child);
    }
    child.spawn()
}

/// Waits for the end of the command, passing signals on to it, and stops it when the permit is lost (if that was asked
/// for).
pub fn supervise(
    mut child: Child,
    permit: &Permit,
    signals: &Receiver<Signal>,
    on_lost: OnLost,
) -> Result<u8, Failure> {
    let ended = end_of(&child)?;
    let mut events = permit.events();
    let mut kill_at = never();
    let mut stopped = false;
    loop {
        select! {
            recv(ended) -> _ => break,
            recv(signals) -> signal => if let Ok(signal) = signal { forward(&child, signal) },
            recv(events) -> event => match event {
                Ok(event) => if tell(event, on_lost) && !stopped {
                    stopped = true;
                    send(&child, libc::SIGTERM);
                    kill_at = after(PATIENCE);
                }
                // The permit has said all it will ever say.
                Err(_) => events = never(),
            },
            recv(kill_at) -> _ => send(&child, libc::SIGKILL),
        }
    }
    let status = child.wait()?;
    Ok(if stopped { LOST } else { exit_status(status) })
}

/// Says what happened to the permit; whether the command is to be stopped for it.
fn tell(event: PermitEvent, on_lost: OnLost) -> bool {
    let kill = on_lost == OnLost::Kill;
    let then = if kill { "stopping the command" } else { "the command goes on without it (--on-lost warn)" };
    match event {
        PermitEvent::Lost(reason) => eprintln!("fairq: the permit was lost: {reason}; {then}"),
        PermitEvent::Unconfirmed if kill => eprintln!("fairq: the server does not confirm the permit; {then}"),
        PermitEvent::Unconfirmed => eprintln!("fairq: the server does not confirm the permit; it may be lost"),
        PermitEvent::Confirmed => {
            eprintln!("fairq: the permit is confirmed again");
            return false;
        }
    }
    kill
}

/// A message when the process has ended. It is left unreaped, so that its id cannot be another's when a signal is sent
/// to it.
fn end_of(child: &Child) -> Result<Receiver<()>, Failure> {
    let (sender, receiver) = bounded::<()>(1);
    let pid = child.id();
    let wait = move || {
        // SAFETY: waitid fills plain data; the process is our child until `Child::wait`, which comes after this.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            while libc::waitid(libc::P_PID, pid, &mut info, libc::WEXITED | libc::WNOWAIT) == -1
                && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {}
        }
        let _ = sender.send(());
    };
    thread::Builder::new().name("wait".into()).spawn(wait)?;
    Ok(receiver)
}

/// What the terminal sent went to the whole foreground group: the command, being in it, has had it.
fn forward(child: &Child, signal: Signal) {
    if !signal.from_terminal {
        send(child, signal.number);
    }
}

fn send(child: &Child, signal: i32) {
    // SAFETY: the child has not been reaped, so the id is its own.
    unsafe { libc::kill(child.id() as libc::pid_t, signal) };
}

fn exit_status(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        // What `exit` takes has eight bits already.
        (Some(code), _) => code as u8,
        (None, Some(signal)) => by_signal(signal),
        (None, None) => crate::exit::SOFTWARE,
    }
}

/// Who asked to have the command stopped when the permit is lost does not want it to outlive a killed `fairq` either.
#[cfg(target_os = "linux")]
fn die_with_us(child: &mut Command) {
    // SAFETY: prctl is async-signal-safe and touches the child only.
    unsafe {
        child.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_us(_child: &mut Command) {}
