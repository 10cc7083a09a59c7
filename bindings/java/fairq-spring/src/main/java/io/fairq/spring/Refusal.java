package io.fairq.spring;

import io.fairq.FairqException;
import io.fairq.StatusCode;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/**
 * A refusal as HTTP has it, the same in all languages that fairq is used from:
 *
 * <table>
 *   <caption>Errors and their statuses</caption>
 *   <tr><th>error</th><th>status</th><th>{@code Retry-After}</th></tr>
 *   <tr><td>{@code queue_full}, {@code timed_out}</td><td>429</td><td>as the error says; else 5 s</td></tr>
 *   <tr><td>{@code closed}, {@code unavailable}, {@code overloaded}, {@code permit_lost}, {@code revoked},
 *       {@code no_such_limiter}, {@code configuration}, {@code server}</td><td>503</td><td>as the error says; else 5 s</td></tr>
 *   <tr><td>{@code impossible}</td><td>400</td><td>none: trying again does not help</td></tr>
 *   <tr><td>{@code cancelled}</td><td>499</td><td>none: the client has gone, and nobody reads it</td></tr>
 * </table>
 *
 * <p>Other errors are mistakes in the program, and no refusals. What a 503 could tell of the inside goes to the log, and not to the
 * client.
 *
 * @param status the status of the response
 * @param error the name that programs go by
 * @param message for people
 * @param retryAfter whole seconds; empty where trying again does not help
 */
public record Refusal(int status, String error, String message, Optional<Long> retryAfter) {
    private static final Log LOG = LogFactory.getLog(Refusal.class);
    private static final int TOO_MANY = 429;
    private static final int AWAY = 503;
    private static final int WRONG = 400;
    private static final int GONE = 499;
    private static final Duration USUAL_RETRY = Duration.ofSeconds(5);
    private static final long NANOS = 1_000_000_000;
    private static final Map<StatusCode, Told> TOLD = new EnumMap<>(StatusCode.class);

    private record Told(int status, String message) {}

    static {
        Told away = new Told(AWAY, "The service is not available at the moment.");
        TOLD.put(StatusCode.QUEUE_FULL, new Told(TOO_MANY, "Too many are waiting already."));
        TOLD.put(StatusCode.TIMED_OUT, new Told(TOO_MANY, "No place became free in time."));
        TOLD.put(StatusCode.CLOSED, new Told(AWAY, "The service is shutting down."));
        TOLD.put(StatusCode.UNAVAILABLE, away);
        TOLD.put(StatusCode.OVERLOADED, away);
        TOLD.put(StatusCode.CONFIGURATION, away);
        TOLD.put(StatusCode.NO_SUCH_LIMITER, away);
        TOLD.put(StatusCode.SERVER, away);
        TOLD.put(StatusCode.REVOKED, new Told(AWAY, "An operator took the place in line away."));
        TOLD.put(StatusCode.PERMIT_LOST, new Told(AWAY, "The request lost its place."));
        TOLD.put(StatusCode.IMPOSSIBLE, new Told(WRONG, "The request costs more than is ever admitted."));
        TOLD.put(StatusCode.CANCELLED, new Told(GONE, "The client went away."));
    }

    /**
     * The refusal that tells a client of an error. One with the status 503 is logged.
     *
     * @param error why there is no permit
     * @return empty for a mistake in the program
     */
    public static Optional<Refusal> of(FairqException error) {
        Told told = TOLD.get(error.status());
        if (told == null) {
            return Optional.empty();
        }
        if (told.status == AWAY) {
            LOG.warn("refused a request: " + error.getMessage());
        }
        boolean again = told.status == TOO_MANY || told.status == AWAY;
        Optional<Long> retryAfter = again ? Optional.of(seconds(error.retryAfter().orElse(USUAL_RETRY))) : Optional.empty();
        return Optional.of(
                new Refusal(told.status, error.status().name().toLowerCase(Locale.ROOT), told.message, retryAfter));
    }

    /** Rounded up, and at least one: zero would ask for a storm. */
    private static long seconds(Duration after) {
        return Math.max(1, after.plusNanos(NANOS - 1).getSeconds());
    }

    /**
     * The body of a response, or the data of the event {@code rejected}.
     *
     * @return JSON
     */
    public String json() {
        // Nothing in it needs escapes.
        String again = retryAfter.map(String::valueOf).orElse("null");
        return "{\"error\": \"" + error + "\", \"message\": \"" + message + "\", \"retry_after\": " + again + "}";
    }
}
