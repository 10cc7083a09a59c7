package io.fairq.spring;

import io.fairq.Position;
import java.time.Duration;
import java.util.Locale;

/** What is said in event streams, the same in all languages that fairq is used from. */
public final class Wire {
    /** The event that tells a place in line. */
    public static final String POSITION = "position";

    /** The event that tells why there is no permit, in a stream that has begun. */
    public static final String REJECTED = "rejected";

    /** The event that tells of a failure of the work (not {@code error}, by which an {@code EventSource} means its connection). */
    public static final String FAILED = "failed";

    private static final double MILLIS = 1000;

    private Wire() {}

    /**
     * The data of {@link #POSITION}.
     *
     * @param place a place in line
     * @return such as <code>{"position": 3, "estimate": 12.5}</code>, the estimate in seconds, or null while it is not known
     */
    public static String position(Position place) {
        return "{\"position\": " + place.position() + ", \"estimate\": "
                + place.estimate().map(Wire::seconds).orElse("null") + "}";
    }

    /**
     * The data of {@link #FAILED}.
     *
     * @return JSON that tells nothing of the inside
     */
    public static String failed() {
        return "{\"error\": \"failed\", \"status\": 500, \"message\": \"The service has failed.\"}";
    }

    private static String seconds(Duration duration) {
        return String.format(Locale.ROOT, "%.3f", duration.toMillis() / MILLIS);
    }

    /**
     * What a refusal is in a body that nothing was written to yet.
     *
     * @param refusal why there is no permit
     * @return the event {@link #REJECTED}; an {@code EventSource} that is not closed comes back after {@code retry}
     */
    public static String rejected(Refusal refusal) {
        String retry = refusal.retryAfter().map(seconds -> "retry: " + seconds * (int) MILLIS + "\n").orElse("");
        return retry + "event: " + REJECTED + "\ndata: " + refusal.json() + "\n\n";
    }
}
