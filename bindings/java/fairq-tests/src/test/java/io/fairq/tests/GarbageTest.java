package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Client;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.Ticket;
import io.fairq.testing.Checks;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** What nobody has closed, and nobody has any more. */
@ParameterizedClass
@EnumSource(Store.class)
class GarbageTest extends StoreTest {
    private final Logger logger = Logger.getLogger("io.fairq");
    private final List<String> log = new CopyOnWriteArrayList<>();
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord record) {
            log.add(new SimpleFormatter().formatMessage(record));
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    GarbageTest(Store store) {
        super(store);
    }

    @BeforeEach
    void listen() {
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
    }

    @AfterEach
    void listenNoMore() {
        logger.removeHandler(handler);
        logger.setUseParentHandlers(true);
    }

    private boolean collectedAndTold(String words) {
        System.gc();
        return log.stream().anyMatch(line -> line.contains(words));
    }

    private static long leak(Limiter limiter) throws Exception {
        Permit permit = limiter.acquire();
        permit.onLost(why -> permit.close()); // which does not keep it
        return permit.fence();
    }

    @Test
    void aPermit() throws Exception {
        Limiter limiter = limiter(1);
        long fence = leak(limiter);
        Checks.eventually("it is told", () -> collectedAndTold("(fence " + fence + ") was never given back"));
        assertTrue(log.get(0).contains(limiter.name()), log.toString());
        Checks.idle(limiter);
        limiter.tryAcquire().orElseThrow().close();
        System.gc();
        assertEquals(1, log.size(), log.toString());
    }

    @Test
    void aFutureThatNobodyHasLookedAt() throws Exception {
        Limiter limiter = limiter(1);
        limiter.acquireAsync();
        Checks.eventually("it is told", () -> collectedAndTold("was never given back"));
        Checks.idle(limiter);
    }

    /** A request that waits is nobody's garbage. */
    @Test
    void aFutureThatWaits() throws Exception {
        Limiter limiter = limiter(1);
        Permit held = limiter.acquire();
        CompletableFuture<Long> fence = waiting(limiter);
        System.gc();
        held.close();
        assertTrue(Checks.get(fence) > 0);
    }

    private static CompletableFuture<Long> waiting(Limiter limiter) {
        CompletableFuture<Long> fence = new CompletableFuture<>();
        limiter.acquireAsync(PATIENT).thenAccept(permit -> {
            fence.complete(permit.fence());
            permit.close();
        });
        return fence;
    }

    @Test
    void aClient() throws Exception {
        Limiter looker = limiter(1);
        WeakReference<Limiter> gone = new WeakReference<>(leakAClient(store.url(), looker.name()));
        Checks.eventually("it is told", () -> collectedAndTold("a client was never closed"));
        Checks.eventually("all of it is gone", () -> {
            System.gc();
            return gone.get() == null;
        });
        Checks.eventually("what it held is free", () -> looker.tryAcquire().map(GarbageTest::closed).orElse(false));
    }

    private static boolean closed(Permit permit) {
        permit.close();
        return true;
    }

    private static Limiter leakAClient(String url, String name) throws Exception {
        Client client = Client.open(url);
        Limiter limiter = client.limiter(name, LimiterOptions.ofLimit(1));
        Permit permit = limiter.acquire(PATIENT);
        permit.onLost(why -> permit.close());
        CompletableFuture<Permit> other = limiter.acquireAsync(PATIENT);
        Checks.inLine(limiter, 1);
        other.cancel(true);
        return limiter;
    }

    @Test
    void aTicketWhoseRequestGoesOn() throws Exception {
        Limiter limiter = limiter(1);
        Permit held = limiter.acquire();
        CompletableFuture<Permit> future = start(limiter);
        for (int turn = 0; turn < 2; turn++) { // what came before these is cleaned up by then
            long fence = leak(limiter(1));
            Checks.eventually("it is told", () -> collectedAndTold("(fence " + fence + ")"));
        }
        assertTrue(future.cancel(true), "by a ticket that nobody else has");
        Checks.inLine(limiter, 0);
        held.close();
    }

    private static CompletableFuture<Permit> start(Limiter limiter) {
        Ticket ticket = limiter.ticket();
        return limiter.acquireAsync(PATIENT, ticket);
    }
}
