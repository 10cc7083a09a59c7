package io.fairq.micrometer;

import io.fairq.Limiter;
import io.fairq.LimiterStatus;
import io.fairq.Observer;
import io.fairq.StatusCode;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToDoubleFunction;

/**
 * Meters, all with the tag {@code limiter}.
 *
 * <p>As the {@linkplain io.fairq.ClientOptions#observer observer} of a client:
 *
 * <ul>
 *   <li>{@code fairq.wait}: a timer of requests, from their start to their end, with the tag {@code outcome}: {@code ok}, or a
 *       {@link StatusCode} such as {@code timed_out}. Its count is the number of requests that ended so;
 *   <li>{@code fairq.hold}: a timer of permits, until they are given back;
 *   <li>{@code fairq.lost}, {@code fairq.leaked}: counters of permits that were lost, or found as garbage.
 * </ul>
 *
 * <p>For each limiter that {@link #watch} is called for, over all processes: the gauges {@code fairq.limit}, {@code fairq.used},
 * {@code fairq.holders} and {@code fairq.waiting}. They ask the store, at most once in {@link #FRESH} for all four, in the thread
 * that reads them; they have no value while it does not answer.
 */
public final class FairqMetrics implements Observer {
    /** For how long an answer of the store serves the gauges. */
    public static final Duration FRESH = Duration.ofSeconds(1);

    private final MeterRegistry registry;
    private final Tags tags;
    private final ConcurrentHashMap<String, Timer> timers = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<String, Standing> watched = new ConcurrentHashMap<>();

    /**
     * Meters in a registry.
     *
     * @param registry where
     */
    public FairqMetrics(MeterRegistry registry) {
        this(registry, Tags.empty());
    }

    /**
     * Meters in a registry, with more tags.
     *
     * @param registry where
     * @param tags that each meter has
     */
    public FairqMetrics(MeterRegistry registry, Tags tags) {
        this.registry = registry;
        this.tags = tags;
    }

    /**
     * Makes the gauges of a limiter. Does not block; reading them does, for a round trip.
     *
     * @param limiter of any client; the gauges keep it
     */
    public void watch(Limiter limiter) {
        Standing standing = new Standing(limiter);
        if (watched.putIfAbsent(limiter.name(), standing) == null) {
            gauge("fairq.limit", "how much cost may be held at once", standing, LimiterStatus::limit);
            gauge("fairq.used", "the cost that is held", standing, LimiterStatus::used);
            gauge("fairq.holders", "permits that are held", standing, LimiterStatus::holders);
            gauge("fairq.waiting", "requests in line", standing, LimiterStatus::waiting);
        }
    }

    private void gauge(String name, String doc, Standing standing, ToDoubleFunction<LimiterStatus> read) {
        Gauge.builder(name, standing, of -> of.read(read))
                .description(doc)
                .tags(of(standing.limiter.name()))
                .register(registry);
    }

    @Override
    public void requestEnded(String limiter, StatusCode outcome, Duration waited) {
        // A timer that is known costs one look; the registry would make its tags anew.
        timers.computeIfAbsent(outcome.ordinal() + limiter, key -> waits(limiter, outcome)).record(waited);
    }

    private Timer waits(String limiter, StatusCode outcome) {
        return Timer.builder("fairq.wait")
                .description("requests until their end")
                .tags(of(limiter).and("outcome", outcome.name().toLowerCase(Locale.ROOT)))
                .register(registry);
    }

    @Override
    public void permitGivenBack(String limiter, Duration held) {
        timers.computeIfAbsent(limiter, this::holds).record(held);
    }

    private Timer holds(String limiter) {
        return Timer.builder("fairq.hold")
                .description("permits until they are given back")
                .tags(of(limiter))
                .register(registry);
    }

    @Override
    public void permitLost(String limiter) {
        registry.counter("fairq.lost", of(limiter)).increment();
    }

    @Override
    public void permitLeaked(String limiter) {
        registry.counter("fairq.leaked", of(limiter)).increment();
    }

    private Tags of(String limiter) {
        return tags.and("limiter", limiter);
    }
}
