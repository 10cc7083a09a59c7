//! What may happen to a held permit.

use std::fmt;

/// Why a permit was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LostReason {
    /// The process was silent for longer than the lease (stopped, suspended, cut off), and the slot was given away.
    LeaseExpired,
    /// An operator took it.
    Revoked,
    /// It was held for longer than the limiter's `max_hold`.
    MaxHold,
    /// The store lost its state, and the slot was given away before this permit could be registered again.
    StateLost,
    /// The client was closed.
    Closed,
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LostReason::LeaseExpired => "its lease ran out while the process was silent",
            LostReason::Revoked => "an operator revoked it",
            LostReason::MaxHold => "it was held for longer than max_hold",
            LostReason::StateLost => "the store lost its state and gave the slot away",
            LostReason::Closed => "the client was closed",
        })
    }
}

/// Something that happened to a held permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitEvent {
    /// The store has not confirmed the permit for a whole lease: others may have the slot. It may come back.
    Unconfirmed,
    /// The store has confirmed it again.
    Confirmed,
    /// It is lost for good; guarded work has to stop.
    Lost(LostReason),
}
