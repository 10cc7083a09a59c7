package io.fairq.micrometer;

import io.fairq.InvalidException;
import io.fairq.Limiter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * How limiters stand, over all processes: the gauges {@code fairq.limit}, {@code fairq.used}, {@code fairq.holders} and
 * {@code fairq.waiting}, with the tag {@code limiter}. The store is asked in the background, again and again; a scrape sees the last
 * answer, and never waits for one. Where there is no answer, since the store is away or nobody has used the limiter, they are not a
 * number.
 */
public final class LimiterGauges implements AutoCloseable {
    private final MeterRegistry registry;
    private final Tags tags;
    private final Supplier<? extends Collection<Limiter>> limiters;
    private final Duration pause;
    private final ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor(LimiterGauges::thread);
    private final Map<String, Seen> seen = new HashMap<>();
    private CompletableFuture<Void> last = CompletableFuture.completedFuture(null);
    private boolean closed;

    /**
     * Begins to ask, in a daemon thread of its own.
     *
     * @param registry where the gauges go
     * @param tags that each gauge has
     * @param limiters which limiters, of different names; this is looked at each time, so that their number may change
     * @param pause how long to wait from one answer to the next question
     * @throws InvalidException for a pause that is not more than zero
     */
    public LimiterGauges(
            MeterRegistry registry, Tags tags, Supplier<? extends Collection<Limiter>> limiters, Duration pause) {
        if (pause.isZero() || pause.isNegative()) {
            throw new InvalidException("pause: " + pause + " is not more than zero", false, null);
        }
        this.registry = Objects.requireNonNull(registry, "registry");
        this.tags = Objects.requireNonNull(tags, "tags");
        this.limiters = Objects.requireNonNull(limiters, "limiters");
        this.pause = pause;
        clock.execute(this::goOn);
    }

    private static Thread thread(Runnable task) {
        Thread thread = new Thread(task, "fairq-gauges");
        thread.setDaemon(true);
        return thread;
    }

    /** The next question comes after the answers of this one, so that a slow store is not asked more and more. */
    private void goOn() {
        refresh().whenComplete((done, error) -> again());
    }

    private synchronized void again() {
        if (!closed) {
            clock.schedule(this::goOn, pause.toNanos(), TimeUnit.NANOSECONDS);
        }
    }

    /**
     * Asks the store now, or when the questions are answered that have been asked before. Does not block.
     *
     * @return complete when the gauges show the answers; exceptionally with what {@code limiters}, or the registry, has thrown
     */
    public synchronized CompletableFuture<Void> refresh() {
        last = last.handle((done, error) -> null).thenCompose(before -> askAll());
        return last.copy(); // whoever completes it does so for nobody else
    }

    private synchronized CompletableFuture<Void> askAll() {
        if (closed) {
            return CompletableFuture.completedFuture(null);
        }
        Collection<Limiter> now = List.copyOf(limiters.get());
        keep(now);
        return CompletableFuture.allOf(now.stream().map(this::ask).toArray(CompletableFuture<?>[]::new));
    }

    /** Makes the gauges that are missing, and takes those away whose limiters have gone. */
    private void keep(Collection<Limiter> now) {
        now.forEach(limiter -> seen.computeIfAbsent(limiter.name(), this::register));
        var names = now.stream().map(Limiter::name).collect(Collectors.toSet());
        seen.entrySet().removeIf(of -> {
            boolean gone = !names.contains(of.getKey());
            if (gone) {
                of.getValue().removeFrom(registry);
            }
            return gone;
        });
    }

    private Seen register(String limiter) {
        return new Seen(registry, tags.and("limiter", limiter));
    }

    private CompletableFuture<Void> ask(Limiter limiter) {
        Seen of = seen.get(limiter.name());
        return limiter.statusAsync().handle((status, error) -> {
            of.show(status);
            return null;
        });
    }

    /** Asks no more, and takes the gauges away. Does not block. */
    @Override
    public synchronized void close() {
        closed = true;
        clock.shutdownNow();
        keep(List.of());
    }
}
