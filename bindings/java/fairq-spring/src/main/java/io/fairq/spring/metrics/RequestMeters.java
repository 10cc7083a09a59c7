package io.fairq.spring.metrics;

import io.fairq.Observer;
import io.fairq.StatusCode;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.ObjectProvider;

/**
 * What becomes of requests: the timers {@code fairq.wait}, by limiter and outcome ({@code ok}, {@code queue_full}, …), and
 * {@code fairq.hold}, and the counters {@code fairq.lost} and {@code fairq.leaked}.
 */
final class RequestMeters implements Observer {
    private final ObjectProvider<MeterRegistry> registry;
    private final Map<WaitKey, Timer> waits = new ConcurrentHashMap<>();
    private final Map<String, Timer> holds = new ConcurrentHashMap<>();

    private record WaitKey(String limiter, StatusCode outcome) {}

    /** The client, which tells this, may be made before the registry. */
    RequestMeters(ObjectProvider<MeterRegistry> registry) {
        this.registry = registry;
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
                .tags(tags(key.limiter).and("outcome", key.outcome.name().toLowerCase(Locale.ROOT)))
                .register(registry.getObject());
    }

    private Timer holdTimer(String limiter) {
        return Timer.builder("fairq.hold")
                .description("How long permits were held")
                .tags(tags(limiter))
                .register(registry.getObject());
    }

    private Counter counter(String name, String description, String limiter) {
        return Counter.builder(name).description(description).tags(tags(limiter)).register(registry.getObject());
    }

    static Tags tags(String limiter) {
        return Tags.of("limiter", limiter);
    }
}
