package io.fairq.micrometer;

import io.fairq.Observer;
import io.fairq.StatusCode;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * What becomes of requests, as the {@linkplain io.fairq.ClientOptions#observer observer} of a client. All meters have the tag
 * {@code limiter}:
 *
 * <ul>
 *   <li>{@code fairq.wait}: a timer of requests, from their start to their end, with the tag {@code outcome}: {@code ok}, or a
 *       {@link StatusCode} such as {@code timed_out}. Its count is the number of requests that ended so;
 *   <li>{@code fairq.hold}: a timer of permits, until they are given back;
 *   <li>{@code fairq.lost}, {@code fairq.leaked}: counters of permits that were lost, or found as garbage.
 * </ul>
 */
public final class FairqMetrics implements Observer {
    private final Supplier<? extends MeterRegistry> registry;
    private final Tags tags;
    /** The registry would make the tags of a timer anew each time. */
    private final Map<WaitKey, Timer> waits = new ConcurrentHashMap<>();

    private final Map<String, Timer> holds = new ConcurrentHashMap<>();

    private record WaitKey(String limiter, StatusCode outcome) {}

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
        this(supplier(registry), tags);
    }

    /**
     * Meters in a registry that may be made after the client, with more tags.
     *
     * @param registry where; it is asked for when there is something to tell
     * @param tags that each meter has
     */
    public FairqMetrics(Supplier<? extends MeterRegistry> registry, Tags tags) {
        this.registry = Objects.requireNonNull(registry, "registry");
        this.tags = Objects.requireNonNull(tags, "tags");
    }

    private static Supplier<MeterRegistry> supplier(MeterRegistry registry) {
        Objects.requireNonNull(registry, "registry");
        return () -> registry;
    }

    @Override
    public void requestEnded(String limiter, StatusCode outcome, Duration waited) {
        waits.computeIfAbsent(new WaitKey(limiter, outcome), this::waitTimer).record(waited);
    }

    @Override
    public void permitGivenBack(String limiter, Duration held) {
        holds.computeIfAbsent(limiter, this::holdTimer).record(held);
    }

    @Override
    public void permitLost(String limiter) {
        counter("fairq.lost", "Permits that were lost", limiter).increment();
    }

    @Override
    public void permitLeaked(String limiter) {
        counter("fairq.leaked", "Permits that nobody gave back, collected as garbage", limiter).increment();
    }

    private Timer waitTimer(WaitKey key) {
        return Timer.builder("fairq.wait")
                .description("How long requests waited, by what became of them")
                .tags(of(key.limiter).and("outcome", key.outcome.name().toLowerCase(Locale.ROOT)))
                .register(registry.get());
    }

    private Timer holdTimer(String limiter) {
        return Timer.builder("fairq.hold")
                .description("How long permits were held")
                .tags(of(limiter))
                .register(registry.get());
    }

    private Counter counter(String name, String description, String limiter) {
        return Counter.builder(name).description(description).tags(of(limiter)).register(registry.get());
    }

    private Tags of(String limiter) {
        return tags.and("limiter", limiter);
    }
}
