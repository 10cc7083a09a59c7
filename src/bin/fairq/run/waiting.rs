//! The wait in line: the permit, a signal, or the end of patience, whichever comes first.

use std::io::{IsTerminal, Write};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded, select};
use fairq::{Limiter, Permit, Position, Request, Ticket, format_duration};

use crate::exit::Failure;
use crate::signals::Signal;

/// How often the position is asked for and shown.
const REFRESH: Duration = Duration::from_secs(1);
/// Those that end the wait; the others would mean something to the command only.
const ENDING: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

/// Waits for the permit. A signal takes the ticket out of the line, or gives back the permit that it crossed.
pub fn for_permit(limiter: &Limiter, request: &Request, signals: &Receiver<Signal>) -> Result<Permit, Failure> {
    let ticket = limiter.ticket();
    let result = acquire_in_thread(limiter, request, &ticket)?;
    let progress = show_progress(&ticket)?;
    let mut ended_by = None;
    let permit = loop {
        select! {
            recv(result) -> permit => break permit,
            recv(signals) -> signal => match signal {
                Ok(signal) if ENDING.contains(&signal.number) => {
                    ended_by.get_or_insert(signal.number);
                    ticket.cancel();
                }
                _ => {}
            }
        }
    };
    progress.finish();
    let permit = permit.map_err(|_| Failure::new(crate::exit::SOFTWARE, "the waiting thread died"))?;
    match ended_by {
        Some(number) => {
            drop(permit);
            Err(Failure::signalled(number))
        }
        None => Ok(permit?),
    }
}

/// The blocking call in a thread of its own, so that signals are heard meanwhile.
fn acquire_in_thread(
    limiter: &Limiter,
    request: &Request,
    ticket: &Ticket,
) -> Result<Receiver<Result<Permit, fairq::Error>>, Failure> {
    let (sender, receiver) = bounded(1);
    let (limiter, request, ticket) = (limiter.clone(), request.clone(), ticket.clone());
    let acquire = move || {
        // Nobody receives only if this process is already on its way out; then the permit is dropped: given back.
        let _ = sender.send(limiter.acquire_with(&ticket, &request));
    };
    thread::Builder::new().name("acquire".into()).spawn(acquire)?;
    Ok(receiver)
}

/// The line on the terminal that says where one stands.
struct Progress {
    stop: Option<crossbeam_channel::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Progress {
    /// Stops, and wipes the line before the command writes its own.
    fn finish(mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed already, and was about decoration.
            let _ = thread.join();
        }
    }
}

/// Asks for the position in a thread of its own: the server may be slow to answer, and signals are not to wait for
/// that.
fn show_progress(ticket: &Ticket) -> Result<Progress, Failure> {
    if !std::io::stderr().is_terminal() {
        return Ok(Progress { stop: None, thread: None });
    }
    let (stop, stopped) = bounded::<()>(0);
    let ticket = ticket.clone();
    let show = move || {
        let mut shown = false;
        while stopped.recv_timeout(REFRESH) == Err(crossbeam_channel::RecvTimeoutError::Timeout) {
            if let Some(line) = describe(ticket.position()) {
                shown = true;
                eprint!("\r\x1b[K{line}");
                let _ = std::io::stderr().flush();
            }
        }
        if shown {
            eprint!("\r\x1b[K");
        }
    };
    let thread = thread::Builder::new().name("progress".into()).spawn(show)?;
    Ok(Progress { stop: Some(stop), thread: Some(thread) })
}

fn describe(position: Result<Option<Position>, fairq::Error>) -> Option<String> {
    match position {
        Ok(Some(Position { position, estimate: Some(estimate) })) => {
            Some(format!("fairq: number {position} in line, about {}", format_duration(estimate)))
        }
        Ok(Some(Position { position, .. })) => Some(format!("fairq: number {position} in line")),
        Ok(None) => None,
        Err(_) => Some("fairq: waiting, but the server does not answer".into()),
    }
}
