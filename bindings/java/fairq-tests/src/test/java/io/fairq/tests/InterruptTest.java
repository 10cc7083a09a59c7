package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.testing.Checks;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Threads that are interrupted while they wait (S14). */
@ParameterizedClass
@EnumSource(Store.class)
class InterruptTest extends StoreTest {
    InterruptTest(Store store) {
        super(store);
    }

    @Test
    void beforeItWaits() {
        Limiter limiter = limiter(1);
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, limiter::acquire);
        assertFalse(Thread.interrupted(), "it was told");
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, limiter::tryAcquire);
    }

    @Test
    void inLine() throws Exception {
        interruptInLine(Threads::start);
    }

    @Test
    void inLineAsAVirtualThread() throws Exception {
        Threads.needVirtual();
        interruptInLine(Threads::startVirtual);
    }

    private void interruptInLine(Function<Runnable, Thread> start) throws Exception {
        Limiter limiter = limiter(1);
        Permit held = limiter.acquire();
        AtomicBoolean told = new AtomicBoolean();
        Thread waiter = start.apply(() -> {
            try {
                limiter.acquire(PATIENT).close();
            } catch (InterruptedException expected) {
                told.set(true);
            }
        });
        Checks.inLine(limiter, 1);
        waiter.interrupt();
        Checks.join(waiter);
        assertTrue(told.get());
        Checks.inLine(limiter, 0);
        held.close();
    }

    @Test
    void whileItWasGranted() throws Exception {
        Limiter limiter = limiter(1);
        for (int round = 0; round < 300; round++) {
            Permit held = limiter.acquire();
            AtomicInteger ends = new AtomicInteger();
            Thread waiter = Threads.start(() -> {
                try {
                    limiter.acquire(PATIENT).close();
                } catch (InterruptedException quick) {
                    // it goes back
                }
                ends.incrementAndGet();
            });
            Checks.inLine(limiter, 1);
            Thread other = Threads.start(held::close);
            waiter.interrupt();
            Checks.join(waiter);
            Checks.join(other);
            assertEquals(1, ends.get());
            limiter.acquire(PATIENT).release(); // nothing is in the way
        }
    }

    /** At any point of an acquire, whether it has to wait or not. */
    @Test
    void anywhere() throws Exception {
        Limiter limiter = limiter(2);
        int rounds = Rounds.of(store);
        run(limiter, rounds / 2);
        Memory before = new Memory();
        run(limiter, rounds);
        Checks.idle(limiter);
        before.checkFlat("interrupts on " + store, rounds);
    }

    private void run(Limiter limiter, int rounds) throws InterruptedException {
        AtomicInteger interrupted = new AtomicInteger();
        AtomicInteger granted = new AtomicInteger();
        Thread[] workers = new Thread[3]; // one more than there are permits
        for (int worker = 0; worker < workers.length; worker++) {
            workers[worker] = Threads.start(() -> work(limiter, rounds, granted, interrupted));
        }
        SplittableRandom random = new SplittableRandom(7);
        int longest = store == Store.MEMORY ? 500 : 200_000;
        while (workers[0].isAlive() || workers[1].isAlive() || workers[2].isAlive()) {
            workers[random.nextInt(workers.length)].interrupt();
            for (int spin = random.nextInt(longest); spin > 0; spin--) {
                Thread.onSpinWait();
            }
        }
        System.out.println(interrupted + " interrupted, " + granted + " granted");
        assertTrue(interrupted.get() > rounds / 1000 && granted.get() > rounds / 1000,
                interrupted + " interrupted, " + granted + " granted");
    }

    private static void work(Limiter limiter, int rounds, AtomicInteger granted, AtomicInteger interrupted) {
        while (granted.get() + interrupted.get() < rounds) {
            try {
                limiter.acquire(PATIENT).close();
                granted.incrementAndGet();
            } catch (InterruptedException expected) {
                interrupted.incrementAndGet();
            }
        }
    }
}
