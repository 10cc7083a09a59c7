package io.fairq;

import java.time.Duration;

/**
 * What a process declares of a limiter when it opens it. Immutable: each method answers a new one. When processes declare
 * different settings, the newest wins; what an operator sets stands above all of them.
 */
public final class LimiterOptions {
    private static final LimiterOptions NONE = new LimiterOptions(Settings.NONE);

    private final Settings settings;

    private LimiterOptions(Settings settings) {
        this.settings = settings;
    }

    /**
     * Declares a limit.
     *
     * @param limit how much cost may be held at once; zero admits nobody
     * @return options with this one
     */
    public static LimiterOptions ofLimit(long limit) {
        return NONE.limit(limit);
    }

    /**
     * Declares nothing: the limiter is one that others have declared.
     *
     * @return options without any
     */
    public static LimiterOptions attach() {
        return NONE;
    }

    /**
     * How much cost may be held at once.
     *
     * @param limit zero admits nobody
     * @return these options and this one
     */
    public LimiterOptions limit(long limit) {
        return new LimiterOptions(settings.with("limit", limit));
    }

    /**
     * How many may wait; 10,000 by default.
     *
     * @param waiters zero: who cannot be admitted at once is rejected
     * @return these options and this one
     */
    public LimiterOptions maxQueue(long waiters) {
        return new LimiterOptions(settings.with("max_queue", waiters));
    }

    /**
     * Any number may wait.
     *
     * @return these options and this one
     */
    public LimiterOptions unboundedQueue() {
        return option("max_queue", "unbounded");
    }

    /**
     * How long a request waits that does not say so itself; 30 s by default.
     *
     * @param wait zero: it has a permit at once, or not at all
     * @return these options and this one
     */
    public LimiterOptions maxWait(Duration wait) {
        return new LimiterOptions(settings.with("max_wait", wait));
    }

    /**
     * A request that does not say so itself waits for ever.
     *
     * @return these options and this one
     */
    public LimiterOptions waitForever() {
        return option("max_wait", "forever");
    }

    /**
     * After how long a silence of its process a slot is free again; 10 s by default.
     *
     * @param lease 100 ms to a day
     * @return these options and this one
     */
    public LimiterOptions lease(Duration lease) {
        return new LimiterOptions(settings.with("lease", lease));
    }

    /**
     * How long a permit may be held before it is lost; by default as long as its process lives.
     *
     * @param hold zero: as long as its process lives
     * @return these options and this one
     */
    public LimiterOptions maxHold(Duration hold) {
        return new LimiterOptions(settings.with("max_hold", hold));
    }

    /**
     * After how long without any use the store forgets the limiter; 10 minutes by default.
     *
     * @param idle at least two leases
     * @return these options and this one
     */
    public LimiterOptions idle(Duration idle) {
        return new LimiterOptions(settings.with("idle", idle));
    }

    /**
     * How often an instance with waiting requests asks the store, should no message come; each second by default.
     *
     * @param poll 10 ms to 60 s
     * @return these options and this one
     */
    public LimiterOptions poll(Duration poll) {
        return new LimiterOptions(settings.with("poll", poll));
    }

    /**
     * While the store is away, requests wait in line until their time is over. This is the default.
     *
     * @return these options and this one
     */
    public LimiterOptions waitInOutage() {
        return option("outage", "wait");
    }

    /**
     * While the store is away, requests fail at once.
     *
     * @return these options and this one
     */
    public LimiterOptions failInOutage() {
        return option("outage", "fail");
    }

    /**
     * While the store is away, this process admits so much by itself. Over all processes more than the limit may run then.
     *
     * @param limit how much cost
     * @return these options and this one
     */
    public LimiterOptions localInOutage(long limit) {
        return option("outage", "local:" + limit);
    }

    /**
     * An option by key and value, as in a configuration file; see {@link Option#all}. It is judged when the limiter is opened.
     *
     * @param key which
     * @param value how it is written there
     * @return these options and this one
     */
    public LimiterOptions option(String key, String value) {
        return new LimiterOptions(settings.with(key, value));
    }

    Settings settings() {
        return settings;
    }

    @Override
    public String toString() {
        return settings.toString();
    }
}
