//! The play: which requests there are, how each is to end, and what happens when.

use std::time::Duration;

/// The limit at the beginning.
pub const LIMIT: u64 = 3;
pub const MAX_QUEUE: u64 = 6;
const LOWERED: u64 = 2;
const RAISED: u64 = 4;

/// How a request is meant to end, or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Ending {
    Finished,
    Cancelled,
    TimedOut,
    Rejected,
    Revoked,
    KilledHolding,
    KilledWaiting,
    /// None of the above; the worker's log says more.
    Failed,
}

pub struct Request {
    pub id: usize,
    /// The process that asks; 0-based.
    pub process: usize,
    pub hold: Duration,
    pub max_wait: Duration,
    pub cost: u64,
    pub expected: Ending,
}

pub enum Step {
    /// This request is made, a little after the one before.
    Ask(usize),
    /// Time passes.
    Pause(Duration),
    /// Goes on when so many wait in line.
    UntilWaiting(u64),
    /// The user of this request gives up.
    Cancel(usize),
    /// The process of this request is killed.
    Kill(usize),
    /// Goes on when the store has forgotten the permit of this request.
    UntilGone(usize),
    /// An operator takes this permit back.
    Revoke(usize),
    /// An operator changes the limit.
    Limit(u64),
}

pub struct Plan {
    pub requests: Vec<Request>,
    pub steps: Vec<Step>,
}

impl Plan {
    pub fn request(&self, id: usize) -> &Request {
        &self.requests[id - 1]
    }

    /// Whether a process is killed (or, where that is not possible, a permit revoked).
    pub fn kills(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Kill(_)))
    }
}

/// The play for so many processes. The last of two or more is the one that gets killed, while it holds one permit and
/// waits for another; with fewer, an operator revokes the permit instead.
pub fn plan(processes: usize) -> Plan {
    let kill = processes >= 2;
    Plan { requests: requests(processes, kill), steps: steps(kill) }
}

fn requests(processes: usize, kill: bool) -> Vec<Request> {
    use Ending::*;
    let (holder, waiter) = if kill { (KilledHolding, KilledWaiting) } else { (Revoked, Finished) };
    // hold in ms, longest wait in ms, cost, ending
    let table: [(u64, u64, u64, Ending); 15] = [
        (1_400, 60_000, 1, Finished),
        (60_000, 60_000, 1, holder),
        (1_800, 60_000, 1, Finished),
        (800, 60_000, 1, Finished),
        (800, 60_000, 1, Finished),
        (800, 60_000, 1, Cancelled),
        (800, 60_000, 1, waiter),
        (800, 700, 1, TimedOut),
        (800, 60_000, 1, Finished),
        (800, 60_000, 1, Rejected),
        (700, 60_000, 1, Finished),
        (700, 60_000, 1, Finished),
        (700, 60_000, 2, Finished),
        (700, 60_000, 1, Finished),
        (700, 60_000, 1, Finished),
    ];
    let rows = table.into_iter().enumerate();
    rows.map(|(index, (hold, wait, cost, expected))| Request {
        id: index + 1,
        process: process_of(index, expected, processes, kill),
        hold: Duration::from_millis(hold),
        max_wait: Duration::from_millis(wait),
        cost,
        expected,
    })
    .collect()
}

fn process_of(index: usize, expected: Ending, processes: usize, kill: bool) -> usize {
    match expected {
        Ending::KilledHolding | Ending::KilledWaiting => processes - 1,
        _ if kill => index % (processes - 1),
        _ => index % processes.max(1),
    }
}

fn steps(kill: bool) -> Vec<Step> {
    let pause = |ms| Step::Pause(Duration::from_millis(ms));
    let mut steps: Vec<Step> = (1..=9).map(Step::Ask).collect();
    steps.extend([Step::UntilWaiting(MAX_QUEUE), Step::Ask(10)]);
    steps.extend([pause(200), Step::Cancel(6), pause(200)]);
    if kill {
        // The lease has to run out; the limit changes meanwhile.
        steps.extend([Step::Kill(2), pause(200), Step::Limit(LOWERED), Step::UntilGone(2)]);
    } else {
        steps.extend([Step::Revoke(2), Step::UntilGone(2), pause(200), Step::Limit(LOWERED)]);
    }
    steps.push(Step::UntilWaiting(0));
    steps.extend((11..=15).map(Step::Ask));
    steps.extend([pause(250), Step::Limit(RAISED)]);
    steps
}

impl Ending {
    /// As it reads in the table at the end.
    pub fn title(self) -> &'static str {
        match self {
            Ending::Finished => "granted and finished",
            Ending::Cancelled => "cancelled while waiting",
            Ending::TimedOut => "timed out while waiting",
            Ending::Rejected => "rejected: the line was full",
            Ending::Revoked => "permit revoked by an operator",
            Ending::KilledHolding => "killed (kill -9) while holding",
            Ending::KilledWaiting => "killed (kill -9) while waiting",
            Ending::Failed => "failed otherwise",
        }
    }

    /// As it reads beside the request.
    pub fn short(self) -> &'static str {
        match self {
            Ending::Finished => "finished",
            Ending::Cancelled => "cancelled",
            Ending::TimedOut => "timed out",
            Ending::Rejected => "rejected, line full",
            Ending::Revoked => "revoked",
            Ending::KilledHolding => "killed, held",
            Ending::KilledWaiting => "killed, waited",
            Ending::Failed => "failed",
        }
    }

    pub const ALL: [Ending; 8] = [
        Ending::Finished,
        Ending::Cancelled,
        Ending::TimedOut,
        Ending::Rejected,
        Ending::Revoked,
        Ending::KilledHolding,
        Ending::KilledWaiting,
        Ending::Failed,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_process_is_killed_and_it_does_nothing_else() {
        for processes in 2..5 {
            let plan = plan(processes);
            for request in &plan.requests {
                let killed = matches!(request.expected, Ending::KilledHolding | Ending::KilledWaiting);
                assert_eq!(request.process == processes - 1, killed, "request {}", request.id);
            }
        }
    }

    #[test]
    fn nothing_is_killed_where_it_would_take_the_demo_along() {
        for processes in 0..2 {
            assert!(!plan(processes).kills());
            assert!(plan(processes).requests.iter().all(|request| request.process == 0));
        }
    }
}
