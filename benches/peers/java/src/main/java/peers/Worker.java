package peers;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A worker process of run.py for what is built on Redisson: a thread for each that waits, as its users have. Its arguments and
 * its words are told in README.md.
 */
public final class Worker {
    /** A JVM is slow before it has compiled what is called often. */
    private static final int WARM_UP = 1000;

    private static final class Grant {
        final long asked = System.nanoTime(); // CLOCK_MONOTONIC on Linux
        volatile long granted;
        volatile long released;
    }

    private final Semaphore semaphore;
    private final int rounds;
    private final long holdMs;
    private final Queue<Grant> grants = new ConcurrentLinkedQueue<>();

    private Worker(Semaphore semaphore, int rounds, long holdMs) {
        this.semaphore = semaphore;
        this.rounds = rounds;
        this.holdMs = holdMs;
    }

    private static Semaphore named(String peer, RedissonClient redisson, String name, int limit) {
        return switch (peer) {
            case "redisson-semaphore" -> Redissons.permitExpirable(redisson, name, limit);
            case "redisson-fair-lock" -> Redissons.fairLock(redisson, name, limit);
            case "claim-then-acquire" -> new ClaimThenAcquire(redisson, name, limit);
            default -> throw new IllegalArgumentException(peer);
        };
    }

    private void work(CountDownLatch done) {
        try {
            for (int round = 0; round < rounds; round++) {
                Grant grant = new Grant();
                grants.add(grant);
                String permit = semaphore.acquire();
                grant.granted = System.nanoTime();
                Thread.sleep(holdMs);
                grant.released = System.nanoTime();
                semaphore.release(permit);
            }
        } catch (Exception failure) {
            System.err.println(failure);
        } finally {
            done.countDown();
        }
    }

    private void finish(Path file) {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(file))) {
            for (Grant grant : grants) {
                out.println(grant.asked + " " + grant.granted + " " + grant.released);
            }
        } catch (IOException failure) {
            System.err.println(failure);
        }
        System.out.println("done");
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] words) throws Exception {
        String peer = words[0];
        int limit = Integer.parseInt(words[3]);
        Config config = new Config();
        config.useSingleServer().setAddress(words[1]);
        RedissonClient redisson = Redisson.create(config);
        Semaphore warm = named(peer, redisson, "warm-" + ProcessHandle.current().pid(), 1);
        for (int pair = 0; pair < WARM_UP; pair++) {
            warm.release(warm.acquire());
        }
        Semaphore semaphore = named(peer, redisson, words[2], limit);
        semaphore.release(semaphore.acquire());
        Worker worker = new Worker(semaphore, Integer.parseInt(words[5]), Long.parseLong(words[6]));
        Path file = Path.of(words[7]);
        System.out.println("ready");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        if ("go".equals(orders.readLine())) {
            int waiters = Integer.parseInt(words[4]);
            CountDownLatch done = new CountDownLatch(waiters);
            for (int waiter = 0; waiter < waiters; waiter++) {
                Thread thread = new Thread(() -> worker.work(done));
                thread.setDaemon(true);
                thread.start();
            }
            Thread watch = new Thread(() -> {
                try {
                    orders.readLine(); // stop, or the end
                    worker.finish(file);
                } catch (IOException failure) {
                    System.err.println(failure);
                }
            });
            watch.setDaemon(true);
            watch.start();
            done.await();
        }
        worker.finish(file);
    }
}
