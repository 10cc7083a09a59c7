package io.fairq;

/** How a permit stands: a local, conservative judgement. */
public enum PermitState {
    // In the order of the constants FQ_PERMIT_STATE_.

    /** Held, and confirmed within the lease. */
    VALID,
    /** Held as far as is known, but the store has been silent for a lease: others may have the slot. It may come back. */
    UNCONFIRMED,
    /** Lost; guarded work has to stop. */
    LOST,
    /** Given back. */
    RELEASED;

    private static final PermitState[] ALL = values();

    static PermitState of(int state) {
        return ALL[state];
    }
}
