package io.fairq;

import java.time.Duration;

/** An operator took the place in line away. */
public final class RevokedException extends FairqException {
    private static final long serialVersionUID = 1;

    /**
     * As the library makes it; for tests of programs too.
     *
     * @param message what went wrong and what to do
     * @param retryable whether the same request may succeed later without anything being changed
     * @param retryAfter after how long to try again, or null where that is not known
     */
    public RevokedException(String message, boolean retryable, Duration retryAfter) {
        super(StatusCode.REVOKED, message, retryable, retryAfter);
    }
}
