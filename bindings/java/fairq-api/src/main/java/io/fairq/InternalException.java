package io.fairq;

import java.time.Duration;

/** A fault inside of fairq; the message says which. Please report it. */
public final class InternalException extends FairqException {
    private static final long serialVersionUID = 1;

    /**
     * As the library makes it; for tests of programs too.
     *
     * @param message what went wrong
     * @param retryable whether the same request may succeed later without anything being changed
     * @param retryAfter after how long to try again, or null where that is not known
     */
    public InternalException(String message, boolean retryable, Duration retryAfter) {
        this(StatusCode.INTERNAL, message, retryable, retryAfter);
    }

    InternalException(StatusCode status, String message, boolean retryable, Duration retryAfter) {
        super(status, message, retryable, retryAfter);
    }

    InternalException(String message, Throwable cause) {
        this(message, false, null);
        initCause(cause);
    }
}
