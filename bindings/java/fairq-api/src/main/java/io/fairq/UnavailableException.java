package io.fairq;

import java.time.Duration;

/** The store cannot be reached, or does not take commands now. Whatever was asked is safe to ask again. */
public final class UnavailableException extends FairqException {
    private static final long serialVersionUID = 1;

    /**
     * As the library makes it; for tests of programs too.
     *
     * @param message what went wrong and what to do
     * @param retryable whether the same request may succeed later without anything being changed
     * @param retryAfter after how long to try again, or null where that is not known
     */
    public UnavailableException(String message, boolean retryable, Duration retryAfter) {
        super(StatusCode.UNAVAILABLE, message, retryable, retryAfter);
    }
}
