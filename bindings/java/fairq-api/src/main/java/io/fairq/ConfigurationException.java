package io.fairq;

import java.time.Duration;

/** The client or the server is not set up right; trying again does not help. */
public final class ConfigurationException extends FairqException {
    private static final long serialVersionUID = 1;

    /**
     * As the library makes it; for tests of programs too.
     *
     * @param message what went wrong and what to do
     * @param retryable whether the same request may succeed later without anything being changed
     * @param retryAfter after how long to try again, or null where that is not known
     */
    public ConfigurationException(String message, boolean retryable, Duration retryAfter) {
        super(StatusCode.CONFIGURATION, message, retryable, retryAfter);
    }
}
