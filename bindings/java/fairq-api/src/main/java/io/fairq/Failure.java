package io.fairq;

import static io.fairq.Library.fq;

import java.time.Duration;

/** Why there is no permit, or no result: what an exception is made of, in the thread that it is thrown in. */
record Failure(StatusCode status, String message, boolean retryable, Duration retryAfter) {
    static final Failure CLOSED = new Failure(StatusCode.CLOSED, "the client is closed", false, null);

    /** Reads an error of the library, and frees it. */
    static Failure take(int status, long error) {
        StatusCode code = StatusCode.of(status);
        if (error == 0) {
            return new Failure(code, fq().string(fq().statusName(status)), false, null);
        }
        String message = fq().string(fq().errorMessage(error));
        boolean retryable = fq().errorRetryable(error) != 0;
        Duration after = Millis.known(fq().errorRetryAfterMs(error)).orElse(null);
        fq().errorFree(error);
        return new Failure(code, message, retryable, after);
    }

    FairqException exception() {
        return switch (status) {
            case TIMED_OUT -> new TimedOutException(message, retryable, retryAfter);
            case CANCELLED -> new CancelledException(message, retryable, retryAfter);
            case CLOSED -> new ClosedException(message, retryable, retryAfter);
            case QUEUE_FULL -> new QueueFullException(message, retryable, retryAfter);
            case IMPOSSIBLE -> new ImpossibleException(message, retryable, retryAfter);
            case REVOKED -> new RevokedException(message, retryable, retryAfter);
            case PERMIT_LOST -> lost();
            case STALE -> new StaleException(message, retryable, retryAfter);
            case UNAVAILABLE -> new UnavailableException(message, retryable, retryAfter);
            case UNKNOWN_OUTCOME -> new UnknownOutcomeException(message, retryable, retryAfter);
            case OVERLOADED -> new OverloadedException(message, retryable, retryAfter);
            case INVALID -> new InvalidException(message, retryable, retryAfter);
            case CONFIGURATION -> new ConfigurationException(message, retryable, retryAfter);
            case SERVER -> new ServerException(message, retryable, retryAfter);
            case NO_SUCH_LIMITER -> new NoSuchLimiterException(message, retryable, retryAfter);
            case OK, FORKED, PANIC, INTERNAL -> new InternalException(status, message, retryable, retryAfter);
        };
    }

    PermitLostException lost() {
        return new PermitLostException(message, retryable, retryAfter);
    }

    /** What a caller is told whose argument means nothing. */
    static InvalidException invalid(String message) {
        return new InvalidException(message, false, null);
    }
}
