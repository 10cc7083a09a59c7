package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Client;
import io.fairq.ClosedException;
import io.fairq.FairqException;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.PermitState;
import io.fairq.testing.Checks;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** The end of a client. */
@ParameterizedClass
@EnumSource(Store.class)
class CloseTest extends StoreTest {
    CloseTest(Store store) {
        super(store);
    }

    @Test
    void eachWaiterIsTold() throws Exception {
        Limiter limiter = limiter(1);
        Permit held = limiter.acquire();
        List<CompletableFuture<Permit>> futures = new ArrayList<>();
        List<AtomicReference<Throwable>> errors = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int at = 0; at < 50; at++) {
            futures.add(limiter.acquireAsync(PATIENT));
            AtomicReference<Throwable> error = new AtomicReference<>();
            errors.add(error);
            threads.add(Threads.start(() -> {
                try {
                    limiter.acquire(PATIENT).close();
                } catch (InterruptedException | FairqException told) {
                    error.set(told);
                }
            }));
        }
        Checks.inLine(limiter, 100);
        AtomicInteger lost = new AtomicInteger();
        held.onLost(why -> lost.incrementAndGet());
        client.close();
        for (CompletableFuture<Permit> future : futures) {
            assertInstanceOf(ClosedException.class, Checks.failure(future));
        }
        for (Thread thread : threads) {
            Checks.join(thread);
        }
        errors.forEach(error -> assertInstanceOf(ClosedException.class, error.get()));
        assertEquals(PermitState.LOST, held.state());
        Checks.eventually("the holder is told", () -> lost.get() == 1);
        held.close();
    }

    @Test
    void whatIsHeldMayEnd() throws Exception {
        Limiter limiter = limiter(1);
        Permit held = limiter.acquire();
        CompletableFuture<Permit> waiting = limiter.acquireAsync(PATIENT);
        Checks.inLine(limiter, 1);
        Thread closer = Threads.start(() -> client.close(Checks.PATIENCE));
        assertInstanceOf(ClosedException.class, Checks.failure(waiting));
        assertTrue(held.isValid(), "it drains");
        assertTrue(closer.isAlive());
        held.close();
        Checks.join(closer);
    }

    @Test
    void byAVirtualThread() throws Exception {
        Threads.needVirtual();
        Limiter limiter = limiter(1);
        Permit held = limiter.acquire();
        Thread closer = Threads.startVirtual(() -> client.close(Checks.PATIENCE));
        Checks.eventually("it closes", () -> {
            try {
                return Checks.failure(limiter.acquireAsync()) instanceof ClosedException;
            } catch (java.util.concurrent.TimeoutException notYet) {
                return false;
            }
        });
        held.close();
        Checks.join(closer);
    }

    /** Requests that start while it closes: each ends. */
    @Test
    void whileOthersStart() throws Exception {
        for (int round = 0; round < 30; round++) {
            Client closing = Client.open(store.url());
            Limiter limiter = closing.limiter(newName(), LimiterOptions.ofLimit(1));
            AtomicInteger closed = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int at = 0; at < 3; at++) {
                threads.add(Threads.start(() -> {
                    try {
                        while (true) {
                            limiter.acquireAsync(PATIENT).thenAccept(Permit::close);
                            limiter.acquire(PATIENT).close();
                        }
                    } catch (InterruptedException | ClosedException told) {
                        closed.incrementAndGet();
                    }
                }));
            }
            Checks.eventually("they are at it", () -> round(limiter) > 0);
            closing.close();
            for (Thread thread : threads) {
                Checks.join(thread);
            }
            assertEquals(3, closed.get());
        }
    }

    private static long round(Limiter limiter) {
        try {
            return limiter.status().grantedTotal();
        } catch (io.fairq.NoSuchLimiterException notYet) {
            return 0;
        }
    }

    @Test
    void itsThreadsEnd() throws Exception {
        Limiter limiter = limiter(1);
        limiter.acquire().close();
        Checks.idle(limiter);
        int with = Threads.count();
        client.close();
        Checks.eventually("its threads end", () -> Threads.count() < with);
        assertFalse(Threads.names().stream().anyMatch(name -> name.startsWith("fairq-poller-")), Threads.names().toString());
    }

    @Test
    void nobodyIsInTheWayOfOthers() throws Exception {
        Limiter limiter = limiter(1);
        Permit held = limiter.acquire();
        try (Client other = Client.open(store.url())) {
            Limiter same = other.limiter(limiter.name(), LimiterOptions.ofLimit(1));
            CompletableFuture<Permit> waiting = same.acquireAsync(PATIENT);
            Checks.inLine(same, 1);
            client.close(Duration.ZERO);
            assertTrue(Checks.get(waiting).isValid());
            waiting.join().close();
        }
        held.close();
    }
}
