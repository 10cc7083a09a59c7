package io.fairq;

import java.time.Duration;

/**
 * Is told what becomes of all requests of a client, for metrics. Called in whatever thread learns of it, also in the one that
 * all waiters depend on: it has to be quick, and must not block. What it throws is logged.
 */
public interface Observer {
    /** One that nothing is told to. */
    Observer NONE = new Observer() {};

    /**
     * A request has ended.
     *
     * @param limiter the limiter's name
     * @param outcome {@link StatusCode#OK} with a permit, or why there is none
     * @param waited how long that took
     */
    default void requestEnded(String limiter, StatusCode outcome, Duration waited) {}

    /**
     * A permit was given back; also one that was lost before.
     *
     * @param limiter the limiter's name
     * @param held since when it was held
     */
    default void permitGivenBack(String limiter, Duration held) {}

    /**
     * A permit was lost. This is told as soon as it is learned: by the library's news while somebody waits or listens, and at the
     * latest when the permit is given back.
     *
     * @param limiter the limiter's name
     */
    default void permitLost(String limiter) {}

    /**
     * A permit was collected as garbage that nobody had given back. It is given back now.
     *
     * @param limiter the limiter's name
     */
    default void permitLeaked(String limiter) {}
}
