package io.fairq.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Client;
import io.fairq.InvalidException;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.testing.Checks;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** How limiters stand. */
class LimiterGaugesTest {
    /** It looks once, at the start, and then when it is told to. */
    private static final Duration NEVER = Duration.ofHours(1);

    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
    private final Client client = Client.open("memory:" + UUID.randomUUID());
    private final List<Limiter> limiters = new CopyOnWriteArrayList<>();

    @AfterEach
    void close() {
        client.close();
    }

    private Limiter limiter(String name) {
        Limiter limiter = client.limiter(name, LimiterOptions.ofLimit(3));
        limiters.add(limiter);
        return limiter;
    }

    private LimiterGauges gauges(Duration pause) throws InterruptedException {
        CountDownLatch looked = new CountDownLatch(1);
        LimiterGauges gauges = new LimiterGauges(
                registry,
                Tags.of("service", "test"),
                () -> {
                    looked.countDown();
                    return limiters;
                },
                pause);
        Checks.await(looked); // its first look is its own; a test's questions come after that
        return gauges;
    }

    private Gauge find(String name, String limiter) {
        return registry.find(name).tag("limiter", limiter).tag("service", "test").gauge();
    }

    private double value(String name) {
        Gauge gauge = find(name, "chat");
        return gauge == null ? Double.NaN : gauge.value();
    }

    @Test
    void howTheyStand() throws Exception {
        Limiter chat = limiter("chat");
        try (LimiterGauges gauges = gauges(NEVER);
                Permit held = chat.acquire(Request.ofDefaults().cost(2))) {
            Checks.get(gauges.refresh());
            var waiting = chat.acquireAsync(Checks.PATIENT.cost(2));
            Checks.inLine(chat, 1);
            assertEquals(0, value("fairq.waiting"), "a scrape asks nobody");
            Checks.get(gauges.refresh());
            assertEquals(3, value("fairq.limit"));
            assertEquals(2, value("fairq.used"));
            assertEquals(1, value("fairq.holders"));
            assertEquals(1, value("fairq.waiting"));
            waiting.cancel(true);
            assertTrue(held.isValid());
        }
    }

    @Test
    void itLooksByItself() throws Exception {
        Limiter chat = limiter("chat");
        LimiterGauges gauges = gauges(Duration.ofMillis(1));
        try (gauges) {
            Permit held = chat.acquire();
            Checks.eventually("it is seen", () -> value("fairq.used") == 1);
            held.close();
            Checks.eventually("it is seen again", () -> value("fairq.used") == 0);
        }
    }

    @Test
    void withoutAnAnswerTheyAreNoNumber() throws Exception {
        limiters.add(client.limiter("chat"));
        try (LimiterGauges gauges = gauges(NEVER)) {
            Checks.get(gauges.refresh());
            assertTrue(find("fairq.used", "chat") != null && Double.isNaN(value("fairq.used")), "nobody has declared it");
            client.limiter("chat", LimiterOptions.ofLimit(1)).acquire().close();
            Checks.get(gauges.refresh());
            assertFalse(Double.isNaN(value("fairq.used")));
            client.close();
            Checks.get(gauges.refresh());
            assertTrue(Double.isNaN(value("fairq.used")), "the store is away");
        }
    }

    @Test
    void limitersMayComeAndGo() throws Exception {
        try (LimiterGauges gauges = gauges(NEVER)) {
            Checks.get(gauges.refresh());
            assertNull(find("fairq.limit", "chat"));
            limiter("chat").acquire().close();
            limiter("other").acquire().close();
            Checks.get(gauges.refresh());
            assertEquals(3, value("fairq.limit"));
            limiters.remove(0);
            Checks.get(gauges.refresh());
            assertNull(find("fairq.limit", "chat"));
            assertEquals(3, find("fairq.limit", "other").value());
        }
    }

    /** A mistake of the one who names the limiters is told to who asks, and does not end it. */
    @Test
    void whoNamesTheLimitersFails() throws Exception {
        limiter("chat").acquire().close();
        AtomicBoolean fails = new AtomicBoolean();
        Supplier<Collection<Limiter>> named = () -> {
            if (fails.get()) {
                throw new IllegalStateException("not now");
            }
            return limiters;
        };
        try (LimiterGauges gauges = new LimiterGauges(registry, Tags.of("service", "test"), named, Duration.ofMillis(1))) {
            Checks.eventually("it looks", () -> value("fairq.limit") == 3);
            fails.set(true);
            Checks.eventually("it fails", () -> Checks.failure(gauges.refresh()) instanceof IllegalStateException);
            fails.set(false);
            Permit held = limiters.get(0).acquire();
            Checks.eventually("it looks again", () -> value("fairq.used") == 1);
            held.close();
        }
    }

    @Test
    void atItsEndNothingIsLeft() throws Exception {
        limiter("chat").acquire().close();
        AtomicReference<Thread> thread = new AtomicReference<>();
        Supplier<Collection<Limiter>> named = () -> {
            thread.compareAndSet(null, Thread.currentThread());
            return limiters;
        };
        LimiterGauges gauges = new LimiterGauges(registry, Tags.empty(), named, NEVER);
        Checks.eventually("it has looked", () -> thread.get() != null && !registry.getMeters().isEmpty());
        assertTrue(thread.get().isDaemon());
        assertNotEquals(Thread.currentThread(), thread.get());
        gauges.close();
        gauges.close();
        Checks.join(thread.get());
        Checks.get(gauges.refresh());
        assertEquals(List.of(), registry.getMeters());
    }

    @Test
    void aPauseThatIsNone() {
        for (Duration pause : List.of(Duration.ZERO, Duration.ofSeconds(-1))) {
            assertThrows(InvalidException.class, () -> gauges(pause));
        }
    }
}
