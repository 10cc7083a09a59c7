package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static io.fairq.testing.Checks.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.CancelledException;
import io.fairq.ClosedException;
import io.fairq.ImpossibleException;
import io.fairq.InvalidException;
import io.fairq.Limiter;
import io.fairq.LimiterChange;
import io.fairq.LimiterOptions;
import io.fairq.LimiterStatus;
import io.fairq.NoSuchLimiterException;
import io.fairq.Permit;
import io.fairq.PermitState;
import io.fairq.QueueFullException;
import io.fairq.Request;
import io.fairq.StaleException;
import io.fairq.StatusCode;
import io.fairq.Ticket;
import io.fairq.TimedOutException;
import io.fairq.testing.Checks;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Permits, and each way not to get one. */
@ParameterizedClass
@EnumSource(Store.class)
class AcquireTest extends StoreTest {
    AcquireTest(Store store) {
        super(store);
    }

    @Test
    void aPermit() throws Exception {
        Limiter limiter = limiter(3);
        try (Permit permit = limiter.acquire(PATIENT.cost(2).label("tenant 7 ü"))) {
            assertTrue(permit.isValid());
            assertEquals(PermitState.VALID, permit.state());
            assertEquals(2, permit.cost());
            assertTrue(permit.fence() > 0 && permit.order() > 0);
            assertEquals(limiter, permit.limiter());
            try (Permit next = limiter.acquire()) {
                assertTrue(next.fence() > permit.fence() && next.order() > permit.order());
            }
            Checks.eventually("it was given back", () -> limiter.status().used() == 2);
            permit.close();
            permit.close();
            assertFalse(permit.isValid());
            assertEquals(PermitState.RELEASED, permit.state());
            assertTrue(permit.fence() > 0 && permit.order() > 0, "it is told afterwards too");
        }
    }

    @Test
    void aReleaseWaitsForItsAnswer() throws Exception {
        Limiter limiter = limiter(1);
        Permit permit = limiter.acquire();
        permit.release();
        assertEquals(0, limiter.status().used());
        refused(StaleException.class, StatusCode.STALE, permit::release);
        Permit other = limiter.acquire();
        Checks.get(other.releaseAsync());
        assertEquals(0, limiter.status().used());
        assertEquals(StatusCode.STALE, ((StaleException) Checks.failure(other.releaseAsync())).status());
        permit.close();
    }

    @Test
    void theWaitIsOver() throws Exception {
        Limiter limiter = limiter(LimiterOptions.ofLimit(1).maxWait(Duration.ofMillis(20)));
        try (Permit held = limiter.acquire(PATIENT)) {
            TimedOutException error = refused(TimedOutException.class, StatusCode.TIMED_OUT, limiter::acquire);
            assertTrue(error.retryable());
            assertTrue(error.getMessage().contains(limiter.name()), error.getMessage());
            refused(TimedOutException.class, StatusCode.TIMED_OUT, () -> limiter.acquire(Request.atOnce()));
            assertEquals(
                    StatusCode.TIMED_OUT,
                    ((TimedOutException) Checks.failure(limiter.acquireAsync())).status());
            assertTrue(held.isValid());
        }
    }

    /** S6: it is no wait of zero, and none for ever. */
    @Test
    void aWaitOfLessThanAMillisecond() throws Exception {
        Limiter limiter = limiter(1);
        try (Permit held = limiter.acquire()) {
            refused(TimedOutException.class, StatusCode.TIMED_OUT, () -> limiter.acquire(Request.ofMaxWait(Duration.ofNanos(1))));
            refused(
                    TimedOutException.class,
                    StatusCode.TIMED_OUT,
                    () -> limiter.acquire(Request.ofMaxWait(Duration.ofNanos(400_000))));
            assertTrue(held.isValid());
        }
    }

    /** S50. */
    @Test
    void eachWaitIsAcceptedOrRefused() throws Exception {
        Limiter limiter = limiter(LimiterOptions.ofLimit(1).maxHold(Duration.ZERO).waitForever());
        for (Request request : new Request[] {
            Request.atOnce(), Request.waitForever(), Request.ofDefaults(), Request.ofMaxWait(Duration.ZERO),
            Request.ofMaxWait(Duration.ofSeconds(Long.MAX_VALUE)), Request.ofMaxWait(Duration.ofMillis(Long.MAX_VALUE))
        }) {
            limiter.acquire(request).close();
        }
        assertEquals(Optional.empty(), limiter.status().maxWait());
        assertEquals(Optional.empty(), limiter.status().maxHold());
        Duration negative = Duration.ofNanos(-1);
        refused(InvalidException.class, StatusCode.INVALID, () -> Request.ofMaxWait(negative));
        refused(InvalidException.class, StatusCode.INVALID, () -> LimiterOptions.ofLimit(1).lease(negative));
        refused(InvalidException.class, StatusCode.INVALID, () -> client.close(negative));
        refused(
                InvalidException.class,
                StatusCode.INVALID,
                () -> client.limiter("lease", LimiterOptions.ofLimit(1).lease(Duration.ZERO)));
        assertThrows(NullPointerException.class, () -> Request.ofMaxWait(null));
    }

    @Test
    void argumentsThatMeanNothing() {
        refused(InvalidException.class, StatusCode.INVALID, () -> Request.ofDefaults().cost(0));
        refused(InvalidException.class, StatusCode.INVALID, () -> Request.ofDefaults().cost(-1));
        refused(InvalidException.class, StatusCode.INVALID, () -> LimiterOptions.ofLimit(-1));
        refused(InvalidException.class, StatusCode.INVALID, () -> Request.ofDefaults().label("\ud800"));
        refused(InvalidException.class, StatusCode.INVALID, () -> client.limiter(""));
        refused(InvalidException.class, StatusCode.INVALID, () -> client.limiter("x".repeat(257)));
        refused(InvalidException.class, StatusCode.INVALID, () -> client.limiter("x", LimiterOptions.attach().option("lmit", "1")));
        Limiter limiter = limiter(1);
        Request longLabel = Request.ofDefaults().label("é".repeat(1000));
        refused(InvalidException.class, StatusCode.INVALID, () -> limiter.acquire(longLabel));
        assertThrows(NullPointerException.class, () -> limiter.acquire(null));
        assertThrows(NullPointerException.class, () -> limiter.acquireAsync((Request) null));
        assertThrows(NullPointerException.class, () -> limiter.acquire(PATIENT, null));
    }

    @Test
    void theLineIsFull() throws Exception {
        Limiter limiter = limiter(LimiterOptions.ofLimit(1).maxQueue(0));
        try (Permit held = limiter.acquire()) {
            QueueFullException error =
                    refused(QueueFullException.class, StatusCode.QUEUE_FULL, () -> limiter.acquire(PATIENT));
            assertTrue(error.retryable());
            assertEquals(Optional.empty(), limiter.tryAcquire(PATIENT));
            assertTrue(held.isValid());
        }
    }

    @Test
    void theCostIsAboveTheLimit() {
        Limiter limiter = limiter(2);
        ImpossibleException error = refused(
                ImpossibleException.class, StatusCode.IMPOSSIBLE, () -> limiter.acquire(PATIENT.cost(3)));
        assertFalse(error.retryable());
    }

    @Test
    void aTry() throws Exception {
        Limiter limiter = limiter(1);
        Permit permit = limiter.tryAcquire().orElseThrow();
        assertEquals(Optional.empty(), limiter.tryAcquire());
        CompletableFuture<Permit> waiting = limiter.acquireAsync(PATIENT);
        Checks.inLine(limiter, 1);
        permit.close();
        Permit next = Checks.get(waiting);
        assertTrue(next.isValid());
        next.close();
        Checks.idle(limiter);
        limiter.tryAcquire(PATIENT).orElseThrow().close();
    }

    @Test
    void aTicketCancels() throws Exception {
        Limiter limiter = limiter(1);
        Ticket before = limiter.ticket();
        assertTrue(before.cancel());
        refused(CancelledException.class, StatusCode.CANCELLED, () -> limiter.acquire(PATIENT, before));
        Permit held = limiter.acquire();
        Ticket waiting = limiter.ticket();
        CompletableFuture<Permit> future = limiter.acquireAsync(PATIENT, waiting);
        Checks.inLine(limiter, 1);
        assertEquals(1, waiting.position().orElseThrow().position());
        assertEquals(1, waiting.lastPosition().orElseThrow().position());
        assertTrue(waiting.cancel());
        assertEquals(StatusCode.CANCELLED, ((CancelledException) Checks.failure(future)).status());
        assertTrue(future.isCompletedExceptionally() && !future.isCancelled(), "it is the ticket that was cancelled");
        assertEquals(Optional.empty(), waiting.lastPosition());
        held.close();
        Ticket granted = limiter.ticket();
        Permit permit = limiter.acquire(PATIENT, granted);
        assertFalse(granted.cancel());
        refused(InvalidException.class, StatusCode.INVALID, () -> limiter.acquire(PATIENT, granted));
        permit.close();
    }

    @Test
    void aTicketOfAnotherLimiter() {
        Limiter limiter = limiter(1);
        Ticket other = limiter(1).ticket();
        refused(InvalidException.class, StatusCode.INVALID, () -> limiter.acquire(PATIENT, other));
    }

    @Test
    void aLimiterThatNobodyHasDeclared() {
        Limiter limiter = client.limiter(newName());
        refused(NoSuchLimiterException.class, StatusCode.NO_SUCH_LIMITER, limiter::acquire);
        refused(NoSuchLimiterException.class, StatusCode.NO_SUCH_LIMITER, limiter::status);
    }

    @Test
    void oneThatOthersHaveDeclared() throws Exception {
        Limiter limiter = limiter(1);
        try (Permit held = limiter.acquire()) {
            assertEquals(Optional.empty(), client.limiter(limiter.name()).tryAcquire());
            assertTrue(held.isValid());
        }
    }

    @Test
    void itsOperator() throws Exception {
        LimiterOptions declared = LimiterOptions.ofLimit(1).maxQueue(7).maxWait(Duration.ofSeconds(9)).lease(Duration.ofSeconds(5));
        Limiter limiter = limiter(declared);
        limiter.acquire().close();
        Checks.idle(limiter);
        LimiterStatus status = Checks.get(limiter.statusAsync());
        assertEquals(limiter.name(), status.name());
        assertEquals(1, status.limit());
        assertEquals(OptionalLong.of(7), status.maxQueue());
        assertEquals(Optional.of(Duration.ofSeconds(9)), status.maxWait());
        assertEquals(Duration.ofSeconds(5), status.lease());
        assertEquals(1, status.grantedTotal());
        assertEquals(1, status.instances());
        assertFalse(status.paused());
        limiter.setLimit(2);
        try (Permit both = limiter.acquire(PATIENT.cost(2))) {
            assertTrue(both.isValid());
        }
        limiter.configure(LimiterChange.none().paused(true).unboundedQueue().waitForever().maxHold(Duration.ofHours(1)));
        status = limiter.status();
        assertTrue(status.paused());
        assertEquals(OptionalLong.empty(), status.maxQueue());
        assertEquals(Optional.empty(), status.maxWait());
        assertEquals(Optional.of(Duration.ofHours(1)), status.maxHold());
        limiter.configure(LimiterChange.none().reset());
        assertEquals(1, limiter.status().limit());
        refused(InvalidException.class, StatusCode.INVALID, () -> limiter.configure(LimiterChange.none().option("idle", "1s")));
    }

    @Test
    void aClosedClient() throws Exception {
        Limiter limiter = limiter(1);
        Permit permit = limiter.acquire();
        client.close();
        client.close(Duration.ofMillis(1));
        refused(ClosedException.class, StatusCode.CLOSED, limiter::acquire);
        refused(ClosedException.class, StatusCode.CLOSED, limiter::status);
        refused(ClosedException.class, StatusCode.CLOSED, client::check);
        refused(ClosedException.class, StatusCode.CLOSED, () -> client.limiter("x"));
        assertEquals(StatusCode.CLOSED, ((ClosedException) Checks.failure(limiter.acquireAsync())).status());
        assertFalse(permit.isValid());
        permit.close();
    }
}
