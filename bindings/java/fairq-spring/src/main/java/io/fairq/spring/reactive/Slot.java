package io.fairq.spring.reactive;

import io.fairq.Permit;

/**
 * Where a subscription has its permit. Operators may drop a value that comes while they are cancelled; so who brings the permit
 * puts it here, and whichever is later, the permit or the end, sees to it that it goes back.
 */
final class Slot {
    private Permit permit;
    private boolean ended;

    /** Whether the subscription still wants it. */
    synchronized boolean put(Permit granted) {
        permit = granted;
        if (ended) {
            permit.close();
        }
        return !ended;
    }

    synchronized void end() {
        ended = true;
        if (permit != null) {
            permit.close();
        }
    }
}
