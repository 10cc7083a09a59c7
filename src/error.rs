//! What can go wrong, for callers. Nothing here ever shows a password.

use std::time::Duration;

use crate::events::LostReason;

/// Why a request ended without a permit, or an operation without a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request waited as long as it was allowed to.
    #[error("no permit of {limiter:?} within {}: raise max_wait, or the limit", crate::format_duration(*waited))]
    TimedOut {
        /// How long it waited.
        waited: Duration,
        /// The limiter's name.
        limiter: String,
    },
    /// The request was cancelled.
    #[error("cancelled while waiting for a permit")]
    Cancelled,
    /// The client is closed or closing.
    #[error("the client is closed")]
    Closed,
    /// The line is as long as it may be.
    #[error("the line is full: {waiting} are waiting and max_queue is {max_queue}")]
    QueueFull {
        /// Tickets in line.
        waiting: u64,
        /// The limiter's `max_queue`.
        max_queue: u64,
        /// When a place is likely to be free, once the limiter has seen a permit come back.
        retry_after: Option<Duration>,
    },
    /// The cost is above the limit, so the request could never be granted.
    #[error("a cost of {cost} can never be granted under a limit of {limit}: lower the cost or raise the limit")]
    Impossible {
        /// The cost that was asked for.
        cost: u64,
        /// The limit in force.
        limit: u64,
    },
    /// An operator took the place in line away.
    #[error("an operator revoked the place in line")]
    Revoked,
    /// The permit had been taken back before the operation.
    #[error("the permit was lost: {0}")]
    PermitLost(LostReason),
    /// A release found that the permit had been taken back already; nothing was freed.
    #[error("the permit had been taken back already")]
    Stale,
    /// The store cannot be reached, or does not take commands now. Whatever was asked is safe to ask again.
    #[error("the store is unavailable: {detail}")]
    Unavailable {
        /// What was tried and what it said.
        detail: String,
        /// When the next attempt is due.
        retry_after: Duration,
    },
    /// An operator's order was sent, and its answer was lost: look whether it was carried out.
    #[error("it is not known whether the store has done it: {detail}")]
    UnknownOutcome {
        /// What went wrong.
        detail: String,
    },
    /// The store has no memory for another ticket, or this process has as many as it may (`max_tickets`).
    #[error("overloaded: {detail}")]
    Overloaded {
        /// What the store said, or how many there are.
        detail: String,
    },
    /// An argument means nothing; nothing was done.
    #[error("{what}: {detail}")]
    Invalid {
        /// The argument.
        what: &'static str,
        /// What is wrong, and what to do.
        detail: String,
    },
    /// The client or the server is not set up right; trying again does not help.
    #[error("configuration: {detail}")]
    Config {
        /// What is wrong, and what to do.
        detail: String,
    },
    /// The server answered with something that fairq does not understand.
    #[error("the server answered: {detail}")]
    Server {
        /// What it answered.
        detail: String,
    },
    /// The limiter does not exist, and the caller has not declared a limit for it.
    #[error("there is no limiter {name:?}: open it with a limit first")]
    NoSuchLimiter {
        /// Its name.
        name: String,
    },
    /// The process was forked after the client was opened: the child has to open a client of its own.
    #[error("this client belongs to the parent process: open another one after fork")]
    Forked,
    /// A bug in fairq; all waiters were settled.
    #[error("internal: {detail}")]
    Internal {
        /// What happened.
        detail: String,
    },
}

impl Error {
    pub(crate) fn invalid(what: &'static str, detail: impl Into<String>) -> Self {
        Error::Invalid { what, detail: detail.into() }
    }

    /// Whether the same request may succeed later without anything being changed.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Error::TimedOut { .. } | Error::QueueFull { .. } | Error::Unavailable { .. } | Error::Overloaded { .. }
        )
    }

    /// When to try again, where that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::QueueFull { retry_after, .. } => *retry_after,
            Error::Unavailable { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }
}
