package io.fairq;

import java.time.Duration;

/** The line is as long as it may be; {@link #retryAfter()} says when to come back, where that is known. */
public final class QueueFullException extends FairqException {
    private static final long serialVersionUID = 1;

    /**
     * As the library makes it; for tests of programs too.
     *
     * @param message what went wrong and what to do
     * @param retryable whether the same request may succeed later without anything being changed
     * @param retryAfter after how long to try again, or null where that is not known
     */
    public QueueFullException(String message, boolean retryable, Duration retryAfter) {
        super(StatusCode.QUEUE_FULL, message, retryable, retryAfter);
    }
}
