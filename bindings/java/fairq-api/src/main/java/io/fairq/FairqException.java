package io.fairq;

import java.time.Duration;
import java.util.Optional;

/**
 * Why a request ended without a permit, or a call without a result. Its message says what went wrong and what to do, and never
 * has a password in it. There is a subclass for each {@link StatusCode}.
 */
public class FairqException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** Which it is. */
    private final StatusCode status;

    /** Whether to try again. */
    private final boolean retryable;

    /** When, or null. */
    private final Duration retryAfter;

    /**
     * An exception of any status.
     *
     * @param status which
     * @param message what went wrong and what to do
     * @param retryable whether the same request may succeed later without anything being changed
     * @param retryAfter after how long to try again, or null where that is not known
     */
    protected FairqException(StatusCode status, String message, boolean retryable, Duration retryAfter) {
        super(message);
        this.status = status;
        this.retryable = retryable;
        this.retryAfter = retryAfter;
    }

    /**
     * Which status of the library it is.
     *
     * @return never {@link StatusCode#OK}
     */
    public final StatusCode status() {
        return status;
    }

    /**
     * Whether the same request may succeed later without anything being changed.
     *
     * @return true if so
     */
    public final boolean retryable() {
        return retryable;
    }

    /**
     * After how long to try again.
     *
     * @return empty where that is not known
     */
    public final Optional<Duration> retryAfter() {
        return Optional.ofNullable(retryAfter);
    }
}
