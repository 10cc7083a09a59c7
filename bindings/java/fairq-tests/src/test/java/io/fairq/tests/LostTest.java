package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.FairqException;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.PermitLostException;
import io.fairq.PermitState;
import io.fairq.StatusCode;
import io.fairq.testing.Checks;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Permits that are taken back. */
@ParameterizedClass
@EnumSource(Store.class)
class LostTest extends StoreTest {
    LostTest(Store store) {
        super(store);
    }

    private Limiter brief() {
        return limiter(LimiterOptions.ofLimit(2).maxHold(Duration.ofMillis(50)).lease(Duration.ofMillis(300)));
    }

    @Test
    void itsListenersAreToldOnce() throws Exception {
        Limiter limiter = brief();
        Permit permit = limiter.acquire();
        AtomicInteger told = new AtomicInteger();
        CompletableFuture<PermitLostException> first = new CompletableFuture<>();
        CompletableFuture<FairqException> second = new CompletableFuture<>();
        permit.onLost(why -> {
            told.incrementAndGet();
            first.complete(why);
            throw new IllegalStateException("what a listener throws is logged");
        });
        permit.onLost(second::complete);
        assertEquals(StatusCode.PERMIT_LOST, Checks.get(first).status());
        assertTrue(Checks.get(first).getMessage().length() > 10, Checks.get(first).getMessage());
        Checks.get(second);
        assertEquals(PermitState.LOST, permit.state());
        assertFalse(permit.isValid());
        permit.close();
        assertEquals(PermitState.LOST, permit.state());
        CompletableFuture<FairqException> late = new CompletableFuture<>();
        permit.onLost(late::complete);
        Checks.get(late);
        assertEquals(1, told.get());
        limiter.acquire(PATIENT).close();
    }

    @Test
    void nobodyListensUntilLater() throws Exception {
        Limiter limiter = brief();
        Permit permit = limiter.acquire();
        Checks.eventually("it is lost", () -> permit.state() == PermitState.LOST);
        CompletableFuture<FairqException> late = new CompletableFuture<>();
        permit.onLost(late::complete);
        Checks.get(late);
        Checks.refused(PermitLostException.class, StatusCode.PERMIT_LOST, permit::release);
        assertEquals(PermitState.LOST, permit.state());
    }

    @Test
    void oneThatWasGivenBackIsNotLost() throws Exception {
        Limiter limiter = brief();
        AtomicInteger told = new AtomicInteger();
        Permit permit = limiter.acquire();
        permit.onLost(why -> told.incrementAndGet());
        permit.release();
        permit.onLost(why -> told.incrementAndGet());
        Permit other = limiter.acquire();
        CompletableFuture<FairqException> lost = new CompletableFuture<>();
        other.onLost(lost::complete);
        Checks.get(lost); // which comes after what the first would have been told
        assertEquals(0, told.get());
        assertEquals(PermitState.RELEASED, permit.state());
        other.close();
    }

    /** Many, with as many futures that nobody has looked at yet. */
    @Test
    void many() throws Exception {
        Limiter limiter = limiter(LimiterOptions.ofLimit(200).maxHold(Duration.ofMillis(50)).lease(Duration.ofMillis(300)));
        AtomicInteger told = new AtomicInteger();
        Queue<Permit> held = new ConcurrentLinkedQueue<>(); // a listener keeps no permit
        for (int at = 0; at < 200; at++) {
            limiter.acquireAsync(PATIENT).thenAccept(permit -> {
                held.add(permit);
                permit.onLost(why -> {
                    told.incrementAndGet();
                    permit.close();
                });
            });
        }
        Checks.eventually("each is told", () -> told.get() == 200);
        Checks.idle(limiter);
        assertEquals(200, told.get());
        assertEquals(200, held.size());
    }
}
