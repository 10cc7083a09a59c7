package io.fairq;

import java.time.Duration;

/**
 * What an operator changes of a limiter that runs, with {@link Limiter#configure}; what is not named stays as it is. Immutable:
 * each method answers a new one.
 */
public final class LimiterChange {
    private static final LimiterChange NONE = new LimiterChange(Settings.NONE);

    private final Settings settings;

    private LimiterChange(Settings settings) {
        this.settings = settings;
    }

    /**
     * Where changes begin.
     *
     * @return one that changes nothing
     */
    public static LimiterChange none() {
        return NONE;
    }

    /**
     * How much cost may be held at once. Lowering it revokes nothing; nobody is admitted until use is below it.
     *
     * @param limit zero admits nobody
     * @return this change and that
     */
    public LimiterChange limit(long limit) {
        return new LimiterChange(settings.with("limit", limit));
    }

    /**
     * How many may wait.
     *
     * @param waiters zero: who cannot be admitted at once is rejected
     * @return this change and that
     */
    public LimiterChange maxQueue(long waiters) {
        return new LimiterChange(settings.with("max_queue", waiters));
    }

    /**
     * Any number may wait.
     *
     * @return this change and that
     */
    public LimiterChange unboundedQueue() {
        return option("max_queue", "unbounded");
    }

    /**
     * How long a request waits that does not say so itself.
     *
     * @param wait zero: it has a permit at once, or not at all
     * @return this change and that
     */
    public LimiterChange maxWait(Duration wait) {
        return new LimiterChange(settings.with("max_wait", wait));
    }

    /**
     * A request that does not say so itself waits for ever.
     *
     * @return this change and that
     */
    public LimiterChange waitForever() {
        return option("max_wait", "forever");
    }

    /**
     * After how long a silence of its process a slot is free again.
     *
     * @param lease 100 ms to a day
     * @return this change and that
     */
    public LimiterChange lease(Duration lease) {
        return new LimiterChange(settings.with("lease", lease));
    }

    /**
     * How long a permit may be held before it is lost.
     *
     * @param hold zero: as long as its process lives
     * @return this change and that
     */
    public LimiterChange maxHold(Duration hold) {
        return new LimiterChange(settings.with("max_hold", hold));
    }

    /**
     * Whether the limiter is paused, and admits nobody; what is held stays held.
     *
     * @param paused whether
     * @return this change and that
     */
    public LimiterChange paused(boolean paused) {
        return option("paused", Boolean.toString(paused));
    }

    /**
     * Forgets what operators have set before, so that the declared settings hold again.
     *
     * @return this change and that
     */
    public LimiterChange reset() {
        return option("reset", "true");
    }

    /**
     * A setting by key and value, as in a configuration file; see {@link Option#all}. It is judged by {@link Limiter#configure}.
     *
     * @param key which
     * @param value how it is written there
     * @return this change and that
     */
    public LimiterChange option(String key, String value) {
        return new LimiterChange(settings.with(key, value));
    }

    Settings settings() {
        return settings;
    }

    @Override
    public String toString() {
        return settings.toString();
    }
}
