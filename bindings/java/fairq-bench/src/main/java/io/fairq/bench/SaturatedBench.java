package io.fairq.bench;

import io.fairq.Client;
import io.fairq.FairqException;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Request;
import java.util.Arrays;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;

/**
 * A limiter that is never idle: 64 threads of one client take permits and give them back at once, 16 at a time. As
 * {@code BenchmarkSaturated} of the Go binding has it.
 */
public final class SaturatedBench {
    private static final int THREADS = 64;
    private static final int LIMIT = 16;
    private static final int ROUNDS = 5;
    private static final long WARM_UP_MS = 4000;
    private static final long ROUND_MS = 2000;
    private static final double NANOS = 1e9;

    private final Limiter limiter;
    private final LongAdder grants = new LongAdder();
    private final AtomicBoolean over = new AtomicBoolean();

    private SaturatedBench(Limiter limiter) {
        this.limiter = limiter;
    }

    private void work() {
        try {
            while (!over.get()) {
                limiter.acquire(Request.waitForever()).close();
                grants.increment();
            }
        } catch (InterruptedException | FairqException error) {
            throw new IllegalStateException("the benchmark has failed", error);
        }
    }

    private double[] run(ThreadFactory factory) throws InterruptedException {
        Thread[] threads = new Thread[THREADS];
        for (int at = 0; at < THREADS; at++) {
            threads[at] = factory.newThread(this::work);
            threads[at].start();
        }
        Thread.sleep(WARM_UP_MS);
        double[] rounds = new double[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            rounds[round] = perSecond();
        }
        over.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
        return rounds;
    }

    private double perSecond() throws InterruptedException {
        long before = grants.sum();
        long start = System.nanoTime();
        Thread.sleep(ROUND_MS);
        return (grants.sum() - before) * NANOS / (System.nanoTime() - start);
    }

    private static void tell(String what, double[] rounds) {
        Arrays.sort(rounds);
        System.out.printf(
                "%s, %s: %,.0f grants/s; lowest %,.0f, highest %,.0f%n",
                Client.provider(), what, rounds[ROUNDS / 2], rounds[0], rounds[ROUNDS - 1]);
    }

    private static void measure(String url, String what, ThreadFactory factory) throws InterruptedException {
        try (Client client = Client.open(url)) {
            Limiter limiter = client.limiter("bench:" + ProcessHandle.current().pid(), LimiterOptions.ofLimit(LIMIT));
            tell(what, new SaturatedBench(limiter).run(factory));
        }
    }

    /**
     * Measures with threads, and where there are virtual ones with these.
     *
     * @param arguments where a server is that nobody else uses: {@code redis://host}
     * @throws Exception when something is not as it should be
     */
    public static void main(String[] arguments) throws Exception {
        measure(arguments[0], THREADS + " threads", Executors.defaultThreadFactory());
        if (Runtime.version().feature() >= 21) {
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            var factory = Class.forName("java.lang.Thread$Builder").getMethod("factory").invoke(builder);
            measure(arguments[0], THREADS + " virtual threads", (ThreadFactory) factory);
        }
    }
}
