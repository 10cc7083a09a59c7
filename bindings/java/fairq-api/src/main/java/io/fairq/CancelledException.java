package io.fairq;

import java.time.Duration;

/** The request was cancelled by its {@link Ticket}. */
public final class CancelledException extends FairqException {
    private static final long serialVersionUID = 1;

    /**
     * As the library makes it; for tests of programs too.
     *
     * @param message what went wrong and what to do
     * @param retryable whether the same request may succeed later without anything being changed
     * @param retryAfter after how long to try again, or null where that is not known
     */
    public CancelledException(String message, boolean retryable, Duration retryAfter) {
        super(StatusCode.CANCELLED, message, retryable, retryAfter);
    }
}
