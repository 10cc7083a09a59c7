package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.testing.Checks;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Many at once. */
@ParameterizedClass
@EnumSource(Store.class)
class CrowdTest extends StoreTest {
    private static final int CROWD = 10_000;

    CrowdTest(Store store) {
        super(store);
    }

    /** S48: nobody has used the client before. */
    @Test
    void aColdClient() throws Exception {
        Limiter limiter = limiter(100);
        CountDownLatch start = new CountDownLatch(1);
        List<CompletableFuture<Permit>> permits = new ArrayList<>();
        for (int at = 0; at < 100; at++) {
            CompletableFuture<Permit> permit = new CompletableFuture<>();
            permits.add(permit);
            Threads.start(() -> {
                try {
                    start.await();
                    permit.complete(limiter.acquire(PATIENT));
                } catch (Throwable error) {
                    permit.completeExceptionally(error);
                }
            });
        }
        start.countDown();
        for (CompletableFuture<Permit> permit : permits) {
            assertTrue(Checks.get(permit).isValid());
        }
        assertEquals(100, limiter.status().used());
        permits.forEach(permit -> permit.join().close());
    }

    /** They are threads of nobody, and are granted in their order. */
    @Test
    void futures() throws Exception {
        Limiter limiter = limiter(1);
        Permit first = limiter.acquire();
        int before = Threads.count();
        List<CompletableFuture<Permit>> futures = new ArrayList<>();
        for (int at = 0; at < CROWD; at++) {
            futures.add(limiter.acquireAsync(PATIENT));
        }
        Checks.inLine(limiter, CROWD);
        int more = Threads.count() - before;
        System.out.println(CROWD + " futures on " + store + ": " + more + " more threads");
        assertTrue(more <= 3, "more threads: " + more);
        for (int at = 0; at < CROWD; at += 2) {
            assertTrue(futures.get(at).cancel(true)); // they leave in the middle of the line
        }
        List<Long> fences = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch ends = new CountDownLatch(CROWD / 2);
        for (int at = 1; at < CROWD; at += 2) {
            futures.get(at).thenAccept(permit -> {
                fences.add(permit.order());
                permit.close();
                ends.countDown();
            });
        }
        first.close();
        Checks.await(ends);
        assertEquals(fences.stream().sorted().toList(), fences);
    }

    @Test
    void virtualThreads() throws Exception {
        Threads.needVirtual();
        Limiter limiter = limiter(1);
        Permit first = limiter.acquire();
        Checks.join(Threads.startVirtual(limiter::status)); // what carries them is there
        int before = Threads.count();
        CountDownLatch ends = new CountDownLatch(CROWD);
        List<Thread> threads = new ArrayList<>();
        for (int at = 0; at < CROWD; at++) {
            threads.add(Threads.startVirtual(() -> {
                try (Permit permit = limiter.acquire(PATIENT)) {
                    if (!permit.isValid()) {
                        throw new AssertionError("it was not granted");
                    }
                } catch (InterruptedException expected) {
                    // it leaves the line
                } finally {
                    ends.countDown();
                }
            }));
        }
        Checks.inLine(limiter, CROWD);
        int more = Threads.count() - before;
        System.out.println(CROWD + " virtual threads on " + store + ": " + more + " more threads");
        assertTrue(more <= 3, "more threads: " + more);
        for (int at = 0; at < CROWD; at += 2) {
            threads.get(at).interrupt();
        }
        first.close();
        Checks.await(ends);
    }

    /** What blocks in the library must not keep the two or three threads that carry all virtual ones. */
    @Test
    void virtualThreadsThatAskTheStore() throws Exception {
        Threads.needVirtual();
        Limiter limiter = limiter(2000);
        List<Thread> threads = new ArrayList<>();
        CountDownLatch ends = new CountDownLatch(1000);
        for (int at = 0; at < 1000; at++) {
            threads.add(Threads.startVirtual(() -> {
                try {
                    Permit permit = limiter.acquire(PATIENT);
                    limiter.status();
                    permit.release();
                    ends.countDown();
                } catch (InterruptedException unexpected) {
                    throw new AssertionError(unexpected);
                }
            }));
        }
        Checks.await(ends);
        assertTrue(Threads.names().stream().filter(name -> name.startsWith("fairq-call-")).count() <= 4);
    }
}
