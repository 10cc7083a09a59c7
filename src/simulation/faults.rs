//! What may go wrong in a run.

macro_rules! kinds {
    ($($kind:ident $name:literal $what:literal),* $(,)?) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Fault {
            $(#[doc = $what] $kind,)*
        }

        const ALL: &[(Fault, &str)] = &[$((Fault::$kind, $name),)*];
    };
}

kinds! {
    Requests "requests" "A connection is cut before the server has read all of a batch.",
    Replies "replies" "A connection is cut after the server has read a batch, and its answers are lost.",
    Stalls "stalls" "A batch is stuck in the network, and arrives long after its connection was given up.",
    Slow "slow" "A caller that carries out its call itself gives up waiting after 30 ms; the connection stays.",
    Partition "partition" "An instance cannot reach the server for up to two leases.",
    Messages "messages" "Pub/Sub messages are dropped, delayed, doubled, and so overtake one another.",
    Deaf "deaf" "A subscription is dead for a while, and nobody notices.",
    Scripts "scripts" "The server forgets its scripts.",
    Restart "restart" "The server restarts with its data.",
    LostWrites "lost-writes" "It restarts without its last writes.",
    LostAll "lost-all" "It restarts empty.",
    Flush "flush" "FLUSHALL.",
    Keys "keys" "One key is deleted by hand.",
    Stop "stop" "The server is stopped for up to three leases.",
    Wall "wall" "The server's wall clock is set, forwards or back.",
    Full "full" "The server's memory is full for a while.",
    Crash "crash" "An instance dies.",
    Suspend "suspend" "An instance is stopped for up to three leases.",
    Close "close" "Instances close, and new ones open.",
    Operator "operator" "Limits are changed, limiters paused and resumed.",
    Unsubscribe "unsubscribe" "The server ends subscriptions.",
    Replica "replica" "The server is made a replica for a while, and refuses writes.",
    Lag "lag" "Whatever is sent takes 0.1 to 1 s, for a while.",
    Hold "hold" "Permits may be held for so long only.",
    Revoke "revoke" "Permits and places are revoked.",
}

/// A set of kinds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Faults(u32);

impl Faults {
    pub(super) const NONE: Faults = Faults(0);
    pub(super) const ALL: Faults = Faults(u32::MAX);

    /// Those of both.
    pub(super) fn and(self, other: Faults) -> Self {
        Faults(self.0 & other.0)
    }

    pub(super) fn of(kinds: &[Fault]) -> Self {
        kinds.iter().fold(Faults::NONE, |set, kind| set.with(*kind))
    }

    /// Any subset, by chance; rarely all of them.
    pub(super) fn chosen_by(bits: u64) -> Self {
        let all = (1 << ALL.len()) - 1;
        Faults(
            (if bits.is_multiple_of(16) { u64::MAX } else { bits >> 8 & bits >> 36 | bits >> 30 & bits >> 5 }) as u32
                & all,
        )
    }

    /// The comma-separated names.
    pub(super) fn named(names: &str) -> Self {
        let of_name = |name: &str| {
            let found = ALL.iter().find(|(_, known)| *known == name);
            found.unwrap_or_else(|| panic!("there is no fault {name:?}; there are {}", Faults(u32::MAX))).0
        };
        Faults::of(&names.split(',').filter(|name| !name.is_empty()).map(of_name).collect::<Vec<_>>())
    }

    pub(super) fn has(self, kind: Fault) -> bool {
        self.0 & 1 << kind as u32 != 0
    }

    pub(super) fn with(self, kind: Fault) -> Self {
        Faults(self.0 | 1 << kind as u32)
    }

    pub(super) fn without(self, kind: Fault) -> Self {
        Faults(self.0 & !(1 << kind as u32))
    }

    pub(super) fn kinds(self) -> impl Iterator<Item = Fault> {
        ALL.iter().map(|(kind, _)| *kind).filter(move |kind| self.has(*kind))
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = ALL.iter().filter(|(kind, _)| self.has(*kind)).map(|(_, name)| *name).collect();
        f.write_str(&names.join(","))
    }
}
