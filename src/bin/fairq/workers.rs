//! Real processes for `demo`, `bench` and `soak`: this program again, with a hidden subcommand, spoken to in lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::exit::{Failure, SOFTWARE};
use crate::site::Site;

/// How long a worker may take to clean up after its stdin was closed.
const GOODBYE: Duration = Duration::from_secs(5);

/// A worker process. Dropping it closes its stdin, which it takes as the order to give everything back and end.
pub struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
}

/// Workers that end together: all begin to clean up before the first is waited for.
pub struct Team(pub Vec<Worker>);

impl Drop for Team {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Worker::dismiss);
    }
}

/// What a worker said, or that it says no more.
pub struct Said {
    pub worker: usize,
    pub line: Option<String>,
}

impl Worker {
    /// Starts process number `index`; its lines arrive at `said`.
    pub fn start(index: usize, site: &Site, arguments: &[String], said: Sender<Said>) -> Result<Worker, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments);
        site.hand_on(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| Failure::new(SOFTWARE, "no stdout of a worker"))?;
        thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if said.send(Said { worker: index, line: Some(line) }).is_err() {
                    return;
                }
            }
            let _ = said.send(Said { worker: index, line: None });
        })?;
        Ok(Worker { child, stdin })
    }

    /// Sends one line. A worker that is gone does not hear it; its silence is noticed elsewhere.
    pub fn tell(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        }
    }

    /// `kill -9`: it can clean up nothing.
    pub fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops it (SIGSTOP), or lets it go on (SIGCONT).
    pub fn signal(&self, number: i32) -> Result<(), Failure> {
        // SAFETY: a plain system call; the child has not been waited for, so the id is its own.
        let result = unsafe { libc::kill(self.child.id() as i32, number) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
    }

    /// Closes its stdin, so that it begins to end; the drop waits for that.
    fn dismiss(&mut self) {
        self.stdin = None;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.dismiss();
        let start = Instant::now();
        while start.elapsed() < GOODBYE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        // It had its time. What it held is free after the lease.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
