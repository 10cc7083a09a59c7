package io.fairq.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Client;
import io.fairq.ClientOptions;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Observer;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.TimedOutException;
import io.fairq.testing.Checks;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** What becomes of requests, in meters. */
class FairqMetricsTest {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();

    private Timer timer(String name, String... tags) {
        return registry.get(name).tag("limiter", "chat").tag("service", "test").tags(tags).timer();
    }

    private double count(String name) {
        var counter = registry.find(name).tag("limiter", "chat").tag("service", "test").counter();
        return counter == null ? 0 : counter.count();
    }

    private Client client() {
        return client(new FairqMetrics(registry, Tags.of("service", "test")));
    }

    private static Client client(Observer observer) {
        return Client.open("memory:" + UUID.randomUUID(), ClientOptions.defaults().observer(observer));
    }

    @Test
    void requestsAndPermits() throws Exception {
        try (Client client = client()) {
            Limiter chat = client.limiter("chat", LimiterOptions.ofLimit(3));
            Permit held = chat.acquire(Request.ofDefaults().cost(2));
            assertEquals(1, timer("fairq.wait", "outcome", "ok").count());
            assertThrows(TimedOutException.class, () -> chat.acquire(Request.atOnce().cost(2)));
            assertEquals(1, timer("fairq.wait", "outcome", "timed_out").count());
            chat.acquireAsync(Checks.PATIENT.cost(2)).cancel(true);
            held.close();
            assertEquals(1, timer("fairq.hold").count());
            assertTrue(timer("fairq.hold").totalTime(TimeUnit.NANOSECONDS) > 0);
            chat.acquire(Checks.PATIENT.cost(3)).close();
            assertEquals(1, timer("fairq.wait", "outcome", "cancelled").count());
            assertEquals(0, count("fairq.lost"));
            assertEquals(0, count("fairq.leaked"));
        }
    }

    @Test
    void lostPermits() throws Exception {
        try (Client client = client()) {
            Limiter chat = client.limiter("chat", LimiterOptions.ofLimit(1).maxHold(Duration.ofMillis(20)));
            Permit permit = chat.acquire();
            permit.onLost(why -> {}); // so that it is looked for
            Checks.eventually("it is counted", () -> count("fairq.lost") == 1);
            permit.close();
            assertEquals(1, count("fairq.lost"));
        }
    }

    @Test
    void leakedPermits() throws Exception {
        try (Client client = client()) {
            Limiter chat = client.limiter("chat", LimiterOptions.ofLimit(1));
            leak(chat);
            Checks.eventually("it is counted", () -> {
                System.gc();
                return count("fairq.leaked") == 1;
            });
            Checks.idle(chat);
        }
    }

    private static void leak(Limiter limiter) throws InterruptedException {
        limiter.acquire();
    }

    /** One limiter's name may be in the other's. */
    @Test
    void eachLimiterHasItsOwn() throws Exception {
        try (Client client = client(new FairqMetrics(registry))) {
            for (String name : new String[] {"chat", "0chat"}) {
                client.limiter(name, LimiterOptions.ofLimit(1)).acquire().close();
            }
            for (String name : new String[] {"chat", "0chat"}) {
                assertEquals(1, registry.get("fairq.wait").tag("limiter", name).timer().count());
                assertEquals(1, registry.get("fairq.hold").tag("limiter", name).timer().count());
            }
        }
    }

    @Test
    void aRegistryThatIsMadeAfterTheClient() throws Exception {
        AtomicReference<MeterRegistry> later = new AtomicReference<>();
        try (Client client = client(new FairqMetrics(later::get, Tags.empty()))) {
            later.set(registry);
            client.limiter("chat", LimiterOptions.ofLimit(1)).acquire().close();
            assertEquals(1, registry.get("fairq.hold").timer().count());
        }
    }
}
