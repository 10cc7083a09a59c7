//! What is to happen to the next chunk. All of it is guarded by one lock
//! ([`super::accept::Shared`]), decided without I/O.

use std::time::Duration;

/// What happens to traffic and new connections in general.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Pass,
    Refuse,
    Hang,
}

/// What to do with one request.
pub enum Request {
    Forward,
    /// Forward it and lose its reply.
    LoseReply,
    /// Keep it, until its [`Catch`] says so.
    Hold(CatchId),
    /// The same, and the client is left waiting for its answer.
    Stall(CatchId),
}

/// What to do with one reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    Forward,
    /// Lose this one, keep the connection.
    Swallow,
    /// Lose it and the connection.
    Lose,
}

/// How far a caught request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Waiting,
    Caught,
    Delivered,
}

/// The place of a [`Catch`] in [`Rules::catches`].
pub type CatchId = usize;

/// A request to be caught, or caught.
pub struct Catch {
    pub stage: Stage,
    /// How long after the catch it is delivered; `None`: not yet known.
    pub release_after: Option<Duration>,
}

/// What a trap does with its request.
#[derive(Clone, Copy)]
enum Harm {
    LoseReply,
    Hold(CatchId),
    Stall(CatchId),
}

/// A one-shot fault that waits for its request.
struct Trap {
    needle: Vec<u8>,
    /// How many that match are let through before.
    skip: u32,
    harm: Harm,
}

pub struct Rules {
    pub mode: Mode,
    pub latency: Duration,
    pub pubsub_blocked: bool,
    pub lose_replies: u32,
    /// Of so many replies one is lost, with its connection; 0: none.
    pub lose_one_in: u64,
    /// Connections that begin now are cut after so many bytes, either way.
    pub cut_after: Option<usize>,
    pub closing: bool,
    pub fired: u64,
    pub accepted: u64,
    /// All that were ever asked for; they outlive [`Rules::heal`].
    pub catches: Vec<Catch>,
    /// In the order in which they were asked for.
    traps: Vec<Trap>,
    dice: u64,
}

impl Rules {
    pub fn new() -> Rules {
        Rules {
            mode: Mode::Pass,
            latency: Duration::ZERO,
            pubsub_blocked: false,
            lose_replies: 0,
            lose_one_in: 0,
            cut_after: None,
            closing: false,
            fired: 0,
            accepted: 0,
            catches: Vec::new(),
            traps: Vec::new(),
            dice: 0x9e37_79b9_7f4a_7c15,
        }
    }

    pub fn heal(&mut self) {
        self.mode = Mode::Pass;
        self.latency = Duration::ZERO;
        self.pubsub_blocked = false;
        self.lose_replies = 0;
        self.lose_one_in = 0;
        self.cut_after = None;
        self.traps.clear();
    }

    pub fn lose_reply_to(&mut self, needle: &[u8]) {
        self.set_trap(needle, 0, Harm::LoseReply);
    }

    pub fn hold(&mut self, needle: &[u8], release_after: Option<Duration>) -> CatchId {
        let id = self.new_catch(release_after);
        self.set_trap(needle, 0, Harm::Hold(id));
        id
    }

    pub fn stall(&mut self, needle: &[u8], skip: u32) -> CatchId {
        let id = self.new_catch(None);
        self.set_trap(needle, skip, Harm::Stall(id));
        id
    }

    fn new_catch(&mut self, release_after: Option<Duration>) -> CatchId {
        self.catches.push(Catch { stage: Stage::Waiting, release_after });
        self.catches.len() - 1
    }

    fn set_trap(&mut self, needle: &[u8], skip: u32, harm: Harm) {
        let needle = needle.to_vec();
        self.traps.push(Trap { needle, skip, harm });
    }

    /// Decides about a request, which is the end of `window`: the bytes before
    /// are known already and only complete a needle that was cut in two.
    pub fn on_request(&mut self, window: &[u8], new: usize) -> Request {
        let hit = |trap: &Trap| {
            let old = window.len() - new;
            let from = (old + 1).saturating_sub(trap.needle.len());
            contains(&window[from..], &trap.needle)
        };
        let Some(index) = self.traps.iter().position(hit) else {
            return Request::Forward;
        };
        if self.traps[index].skip > 0 {
            self.traps[index].skip -= 1;
            return Request::Forward;
        }
        self.fired += 1;
        match self.traps.remove(index).harm {
            Harm::LoseReply => Request::LoseReply,
            Harm::Hold(id) => {
                self.catches[id].stage = Stage::Caught;
                Request::Hold(id)
            }
            Harm::Stall(id) => {
                self.catches[id].stage = Stage::Caught;
                Request::Stall(id)
            }
        }
    }

    /// Decides about a reply on a connection that may be a subscriber's, and
    /// may have a reply to lose.
    pub fn on_reply(&mut self, subscriber: bool, lose: bool) -> Reply {
        if lose {
            return Reply::Lose;
        }
        if subscriber {
            let blocked = self.pubsub_blocked;
            return if blocked { Reply::Swallow } else { Reply::Forward };
        }
        if self.lose_replies > 0 {
            self.lose_replies -= 1;
            self.fired += 1;
            return Reply::Lose;
        }
        if self.lose_one_in > 0 && self.roll().is_multiple_of(self.lose_one_in) {
            self.fired += 1;
            return Reply::Lose;
        }
        Reply::Forward
    }

    /// The same faults in every run, as far as the traffic is the same.
    fn roll(&mut self) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.dice >> 33
    }
}

/// Whether the bytes contain a command that makes a subscriber.
pub fn subscribes(bytes: &[u8]) -> bool {
    let upper = bytes.to_ascii_uppercase();
    let commands: [&[u8]; 3] = [b"\nSUBSCRIBE\r\n", b"\nPSUBSCRIBE\r\n", b"\nSSUBSCRIBE\r\n"];
    commands.iter().any(|command| contains(&upper, command))
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || bytes.windows(needle.len()).any(|part| part == needle)
}
