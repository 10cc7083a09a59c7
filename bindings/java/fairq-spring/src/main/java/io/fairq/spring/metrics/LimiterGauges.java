package io.fairq.spring.metrics;

import io.fairq.Limiter;
import io.fairq.LimiterStatus;
import io.fairq.spring.Limiters;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;
import org.springframework.context.SmartLifecycle;
import org.springframework.scheduling.concurrent.CustomizableThreadFactory;

/**
 * How the limiters stand, over all processes: the gauges {@code fairq.limit}, {@code fairq.used} and {@code fairq.waiting}. The store
 * is asked in the background, again and again; a scrape sees the last answer, and never waits for one. Where there is no answer,
 * since the store is away or nobody has used the limiter, they are not a number.
 */
public final class LimiterGauges implements SmartLifecycle {
    private final MeterRegistry registry;
    private final Limiters limiters;
    private final Duration pause;
    private final Map<String, Seen> seen = new ConcurrentHashMap<>();
    private ScheduledExecutorService clock;

    /** What was last seen of a limiter; gauges hold on to it weakly, and the map strongly. */
    private static final class Seen {
        volatile LimiterStatus status;

        double number(ToDoubleFunction<LimiterStatus> of) {
            LimiterStatus now = status;
            return now == null ? Double.NaN : of.applyAsDouble(now);
        }
    }

    LimiterGauges(MeterRegistry registry, Limiters limiters, Duration pause) {
        this.registry = registry;
        this.limiters = limiters;
        this.pause = pause;
    }

    /**
     * Asks the store now. Does not block.
     *
     * @return complete when the gauges show the answers
     */
    public CompletableFuture<Void> refresh() {
        return CompletableFuture.allOf(limiters.all().stream().map(this::refresh).toArray(CompletableFuture<?>[]::new));
    }

    private CompletableFuture<Void> refresh(Limiter limiter) {
        Seen of = seen.computeIfAbsent(limiter.name(), this::register);
        return limiter.statusAsync().handle((status, error) -> {
            of.status = status;
            return null;
        });
    }

    private Seen register(String limiter) {
        Seen of = new Seen();
        gauge("fairq.limit", "How much cost may be held at once", limiter, of, LimiterStatus::limit);
        gauge("fairq.used", "The cost that is held", limiter, of, LimiterStatus::used);
        gauge("fairq.waiting", "Requests in line", limiter, of, LimiterStatus::waiting);
        return of;
    }

    private void gauge(String name, String description, String limiter, Seen of, ToDoubleFunction<LimiterStatus> number) {
        Gauge.builder(name, of, seen -> seen.number(number))
                .description(description)
                .tags(RequestMeters.tags(limiter))
                .register(registry);
    }

    // --- again and again

    @Override
    public synchronized void start() {
        CustomizableThreadFactory threads = new CustomizableThreadFactory("fairq-gauges-");
        threads.setDaemon(true);
        clock = Executors.newSingleThreadScheduledExecutor(threads);
        clock.execute(() -> goOn(clock));
    }

    /** The next look comes after the answers of this one, so that a slow store is not asked more and more. */
    private void goOn(ScheduledExecutorService of) {
        refresh().whenComplete((done, error) -> {
            synchronized (this) {
                if (!of.isShutdown()) {
                    of.schedule(() -> goOn(of), pause.toNanos(), TimeUnit.NANOSECONDS);
                }
            }
        });
    }

    @Override
    public synchronized void stop() {
        clock.shutdownNow();
        clock = null;
    }

    @Override
    public synchronized boolean isRunning() {
        return clock != null;
    }
}
