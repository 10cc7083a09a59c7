package io.fairq;

import java.time.Duration;

/** The store has no memory for another ticket, or this process has as many as it may ({@link ClientOptions#maxTickets}). */
public final class OverloadedException extends FairqException {
    private static final long serialVersionUID = 1;

    /**
     * As the library makes it; for tests of programs too.
     *
     * @param message what went wrong and what to do
     * @param retryable whether the same request may succeed later without anything being changed
     * @param retryAfter after how long to try again, or null where that is not known
     */
    public OverloadedException(String message, boolean retryable, Duration retryAfter) {
        super(StatusCode.OVERLOADED, message, retryable, retryAfter);
    }
}
