package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.fairq.ClientOptions;
import io.fairq.ClosedException;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Observer;
import io.fairq.Permit;
import io.fairq.PermitLostException;
import io.fairq.PermitState;
import io.fairq.StatusCode;
import io.fairq.testing.Checks;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Who is told what becomes of requests. */
@ParameterizedClass
@EnumSource(Store.class)
class ObserverTest extends StoreTest implements Observer {
    private final AtomicInteger lost = new AtomicInteger();
    private final AtomicInteger ended = new AtomicInteger();
    private final AtomicInteger givenBack = new AtomicInteger();
    private final AtomicReference<Duration> shortest = new AtomicReference<>(Duration.ZERO);
    private volatile boolean broken;

    ObserverTest(Store store) {
        super(store);
    }

    @Override
    ClientOptions options() {
        return ClientOptions.defaults().observer(this);
    }

    @Override
    public void requestEnded(String limiter, StatusCode outcome, Duration waited) {
        ended.incrementAndGet();
        shortest.accumulateAndGet(waited, ObserverTest::shorter);
        fail();
    }

    @Override
    public void permitGivenBack(String limiter, Duration held) {
        givenBack.incrementAndGet();
        shortest.accumulateAndGet(held, ObserverTest::shorter);
        fail();
    }

    @Override
    public void permitLost(String limiter) {
        lost.incrementAndGet();
        fail();
    }

    private static Duration shorter(Duration one, Duration other) {
        return one.compareTo(other) < 0 ? one : other;
    }

    private void fail() {
        if (broken) {
            throw new NoClassDefFoundError("on purpose");
        }
    }

    /** Also when what it throws is no exception. */
    @Test
    void oneThatFailsIsInNobodysWay() throws Exception {
        broken = true;
        Limiter limiter = limiter(1);
        Permit held = limiter.acquire();
        CompletableFuture<Permit> future = limiter.acquireAsync(PATIENT);
        Checks.inLine(limiter, 1);
        CompletableFuture<Permit> thread = inAThread(limiter);
        Checks.inLine(limiter, 2);
        held.close();
        Checks.get(future).close();
        Permit last = Checks.get(thread);
        List<CompletableFuture<Permit>> waiting = new ArrayList<>();
        for (int at = 0; at < 3; at++) {
            waiting.add(limiter.acquireAsync(PATIENT));
            waiting.add(inAThread(limiter));
        }
        Checks.inLine(limiter, waiting.size());
        client.close();
        for (CompletableFuture<Permit> one : waiting) {
            assertInstanceOf(ClosedException.class, Checks.failure(one));
        }
        last.close();
    }

    private static CompletableFuture<Permit> inAThread(Limiter limiter) {
        CompletableFuture<Permit> permit = new CompletableFuture<>();
        Threads.start(() -> {
            try {
                permit.complete(limiter.acquire(PATIENT));
            } catch (Throwable error) {
                permit.completeExceptionally(error);
            }
        });
        return permit;
    }

    private Permit lostOne() throws InterruptedException {
        Permit permit = limiter(LimiterOptions.ofLimit(1).maxHold(Duration.ofMillis(20))).acquire();
        Checks.eventually("it is lost", () -> permit.state() == PermitState.LOST);
        return permit;
    }

    /** Then nobody has looked for news before it is given back. */
    @Test
    void aLossThatNobodyListensTo() throws Exception {
        lostOne().close();
        assertEquals(1, lost.get());
        Permit other = lostOne();
        assertThrows(PermitLostException.class, other::release);
        assertEquals(2, lost.get());
        other.close();
        limiter(1).acquire().close();
        assertEquals(2, lost.get(), "one that is given back in time is not lost");
    }

    @Test
    void aLossThatSomebodyListensTo() throws Exception {
        Limiter limiter = limiter(LimiterOptions.ofLimit(1).maxHold(Duration.ofMillis(20)));
        Permit permit = limiter.acquire();
        CompletableFuture<PermitLostException> told = new CompletableFuture<>();
        permit.onLost(told::complete);
        Checks.get(told);
        permit.close();
        assertEquals(1, lost.get());
    }

    /** A thread may go on, and give back, before the one is done that has told it. */
    @Test
    void timesOfThreadsThatWakeBySurprise() throws Exception {
        Limiter limiter = limiter(1);
        int rounds = Rounds.of(store) / 10;
        Thread[] workers = {Threads.start(() -> rounds(limiter, rounds)), Threads.start(() -> rounds(limiter, rounds))};
        while (workers[0].isAlive() || workers[1].isAlive()) {
            LockSupport.unpark(workers[0]);
            LockSupport.unpark(workers[1]);
        }
        Checks.eventually("all is told", () -> ended.get() == 2 * rounds && givenBack.get() == 2 * rounds);
        assertEquals(Duration.ZERO, shortest.get(), "none is negative");
    }

    private static void rounds(Limiter limiter, int rounds) {
        try {
            for (int round = 0; round < rounds; round++) {
                limiter.acquire(PATIENT).close();
            }
        } catch (InterruptedException unexpected) {
            throw new AssertionError(unexpected);
        }
    }
}
