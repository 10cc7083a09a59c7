package io.fairq.testing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.fail;

import io.fairq.FairqException;
import io.fairq.Limiter;
import io.fairq.LimiterStatus;
import io.fairq.NoSuchLimiterException;
import io.fairq.Request;
import io.fairq.StatusCode;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.function.Executable;

/** What tests look at, and wait for. */
public final class Checks {
    /** After which a test gives up; nothing is expected to take so long. */
    public static final Duration PATIENCE = Duration.ofSeconds(
            Long.parseLong(System.getenv().getOrDefault("FAIRQ_TEST_PATIENCE", "60")));

    /** A request that waits longer than any test does: what leaves the line has not left it by itself. */
    public static final Request PATIENT = Request.ofMaxWait(PATIENCE.multipliedBy(10));

    private static final long LOOK_NANOS = 1_000_000;

    private Checks() {}

    /** What can fail. */
    public interface Condition {
        boolean holds() throws Exception;
    }

    /** Where nothing may be missing, it is a failure. */
    public static void skip(String reason) {
        if ("true".equals(System.getenv("CI"))) {
            fail("had to be skipped: " + reason);
        }
        Assumptions.abort(reason);
    }

    /** Looks again and again; fails when it takes too long. */
    public static void eventually(String what, Condition condition) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        try {
            while (!condition.holds()) {
                if (System.nanoTime() - deadline > 0) {
                    fail("it did not come to be: " + what);
                }
                LockSupport.parkNanos(LOOK_NANOS);
            }
        } catch (Exception error) {
            fail("while waiting for: " + what, error);
        }
    }

    public static void inLine(Limiter limiter, long number) {
        eventually(number + " in line", () -> limiter.status().waiting() == number);
    }

    public static void used(Limiter limiter, long number) {
        eventually(number + " used", () -> usedNow(limiter) == number);
    }

    public static long usedNow(Limiter limiter) {
        try {
            return limiter.status().used();
        } catch (NoSuchLimiterException nobodyYet) {
            return 0;
        }
    }

    /** Nobody holds or waits. */
    public static void idle(Limiter limiter) {
        eventually("nobody holds or waits in " + limiter, () -> {
            LimiterStatus status = limiter.status();
            return status.used() == 0 && status.holders() == 0 && status.waiting() == 0;
        });
    }

    public static void await(CountDownLatch latch) throws InterruptedException {
        if (!latch.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
            fail("it did not come to be");
        }
    }

    public static <T> T get(Future<T> future) throws Exception {
        return future.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    }

    public static <T extends FairqException> T refused(Class<T> type, StatusCode status, Executable call) {
        T error = assertThrows(type, call);
        assertEquals(status, error.status());
        return error;
    }

    /** What a future has failed with. */
    public static Throwable failure(CompletableFuture<?> future) throws Exception {
        return get(future.<Throwable>handle((value, error) -> error instanceof CompletionException ? error.getCause() : error));
    }

    public static void join(Thread thread) throws InterruptedException {
        thread.join(PATIENCE.toMillis());
        if (thread.isAlive()) {
            fail(thread + " does not end: " + Arrays.toString(thread.getStackTrace()));
        }
    }
}
