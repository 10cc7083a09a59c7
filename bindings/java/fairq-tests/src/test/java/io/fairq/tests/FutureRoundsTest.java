package io.fairq.tests;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.Ticket;
import io.fairq.testing.Checks;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Futures that are cancelled at random moments, in each way there is (S47). */
@ParameterizedClass
@EnumSource(Store.class)
class FutureRoundsTest extends StoreTest {
    private static final int BATCH = 20;
    private static final Request PATIENT = Checks.PATIENT.label("rounds");

    private final SplittableRandom random = new SplittableRandom(7);
    private final AtomicInteger granted = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();

    FutureRoundsTest(Store store) {
        super(store);
    }

    @Test
    void cancelledAnywhere() throws Exception {
        Limiter limiter = limiter(3);
        // Without virtual threads, and with two processors, each completion is a new thread of the system.
        int rounds = Threads.haveVirtual() ? Rounds.of(store) : Rounds.of(store) / 4;
        run(limiter, rounds / 2);
        Memory before = new Memory();
        granted.set(0);
        failed.set(0);
        run(limiter, rounds);
        assertTrue(granted.get() > rounds / 100 && failed.get() > rounds / 100, granted + " granted, " + failed + " failed");
        before.checkFlat("futures on " + store + ", " + granted + " granted", rounds);
    }

    private void run(Limiter limiter, int rounds) throws Exception {
        for (int round = 0; round < rounds; round += BATCH) {
            List<CompletableFuture<?>> ends = new ArrayList<>();
            for (int at = 0; at < BATCH; at++) {
                ends.add(one(limiter));
            }
            Checks.get(CompletableFuture.allOf(ends.toArray(new CompletableFuture<?>[0])));
        }
        Checks.idle(limiter);
    }

    private CompletableFuture<?> one(Limiter limiter) {
        Ticket ticket = limiter.ticket();
        CompletableFuture<Permit> future = limiter.acquireAsync(PATIENT, ticket);
        CompletableFuture<Void> end = future.handle(this::ended);
        int wait = random.nextInt(500);
        switch (random.nextInt(5)) {
            case 0 -> Threads.soon(wait, () -> future.cancel(true));
            case 1 -> Threads.soon(wait, ticket::cancel);
            case 2 -> Threads.soon(wait, () -> future.completeExceptionally(new IllegalStateException("enough")));
            case 3 -> future.orTimeout(random.nextInt(2), TimeUnit.MILLISECONDS);
            default -> {} // it has its permit
        }
        return end;
    }

    private Void ended(Permit permit, Throwable error) {
        if (permit == null) {
            failed.incrementAndGet();
        } else {
            granted.incrementAndGet();
            Threads.soon(200, permit::close);
        }
        return null;
    }
}
