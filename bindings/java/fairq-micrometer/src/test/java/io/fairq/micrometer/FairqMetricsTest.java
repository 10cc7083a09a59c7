package io.fairq.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Client;
import io.fairq.ClientOptions;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.StatusCode;
import io.fairq.TimedOutException;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What becomes of requests, in meters. */
class FairqMetricsTest {
    private final SimpleMeterRegistry registry = new SimpleMeterRegistry();
    private final FairqMetrics metrics = new FairqMetrics(registry, Tags.of("service", "test"));

    private Timer timer(String name, String... tags) {
        return registry.get(name).tag("limiter", "chat").tag("service", "test").tags(tags).timer();
    }

    private double gauge(String name) {
        return registry.get(name).tag("limiter", "chat").gauge().value();
    }

    @Test
    void requestsAndPermits() throws Exception {
        try (Client client = Client.open("memory:metrics", ClientOptions.defaults().observer(metrics))) {
            Limiter chat = client.limiter("chat", LimiterOptions.ofLimit(3));
            metrics.watch(chat);
            metrics.watch(chat);
            Permit held = chat.acquire(Request.ofDefaults().cost(2));
            assertEquals(1, timer("fairq.wait", "outcome", "ok").count());
            assertEquals(3, gauge("fairq.limit"));
            assertEquals(2, gauge("fairq.used"));
            assertEquals(1, gauge("fairq.holders"));
            assertEquals(0, gauge("fairq.waiting"));
            assertThrows(TimedOutException.class, () -> chat.acquire(Request.atOnce().cost(2)));
            assertEquals(1, timer("fairq.wait", "outcome", "timed_out").count());
            CompletableFuture<Permit> cancelled = chat.acquireAsync(Request.waitForever().cost(2));
            cancelled.cancel(true);
            held.close();
            assertEquals(1, timer("fairq.hold").count());
            assertTrue(timer("fairq.hold").totalTime(TimeUnit.NANOSECONDS) > 0);
            chat.acquire(Request.waitForever().cost(3)).close();
            assertEquals(1, timer("fairq.wait", "outcome", "cancelled").count());
        }
    }

    @Test
    void lostPermits() throws Exception {
        try (Client client = Client.open("memory:metrics", ClientOptions.defaults().observer(metrics))) {
            Limiter chat = client.limiter("chat", LimiterOptions.ofLimit(1).maxHold(Duration.ofMillis(20)));
            Permit permit = chat.acquire();
            CompletableFuture<StatusCode> lost = new CompletableFuture<>();
            permit.onLost(why -> lost.complete(why.status()));
            assertEquals(StatusCode.PERMIT_LOST, lost.get(60, TimeUnit.SECONDS));
            assertEquals(1, registry.get("fairq.lost").tag("limiter", "chat").counter().count());
            permit.close();
        }
    }

    @Test
    void aStoreThatDoesNotAnswer() {
        Client client = Client.open("memory:metrics");
        metrics.watch(client.limiter("chat"));
        client.close();
        assertTrue(Double.isNaN(gauge("fairq.used")));
    }
}
