package peers;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RScript;
import org.redisson.api.RTopic;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;
import org.redisson.client.codec.StringCodec;

/**
 * The design that fairq set out from, written anew from its description; nobody's code. An entry in a ZSET with a global,
 * increasing score, and beside it a marker with a TTL that says that its owner lives; a script that claims, when the entry is
 * among the first (free + slack) living ones; then, as a second step, a permit of a semaphore; back into the ZSET with
 * the old score when there was none. Each ticket polls, and each release is broadcast to all processes, where notifications
 * that come while a sweep runs are merged into one more.
 */
final class ClaimThenAcquire implements Semaphore {
    private static final int SLACK = 8;
    private static final long POLL_MS = 200;
    private static final long LEASE_S = 30;
    private static final long MARKER_S = 60;

    private static final String ENQUEUE = """
        local score = redis.call('INCR', KEYS[3])
        redis.call('SET', KEYS[2], '1', 'EX', ARGV[2])
        redis.call('ZADD', KEYS[1], score, ARGV[1])
        return score""";

    /** The score when the entry was claimed, else nothing. */
    private static final String CLAIM = """
        local place = 0
        for _, entry in ipairs(redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[2]) + tonumber(ARGV[3]) - 1)) do
          if redis.call('EXISTS', ARGV[4] .. entry) == 0 then
            redis.call('ZREM', KEYS[1], entry)
          elseif entry == ARGV[1] then
            local score = redis.call('ZSCORE', KEYS[1], entry)
            redis.call('ZREM', KEYS[1], entry)
            return tonumber(score)
          else
            place = place + 1
            if place >= tonumber(ARGV[2]) then return nil end
          end
        end
        return nil""";

    private final RPermitExpirableSemaphore semaphore;
    private final RScript scripts;
    private final RTopic released;
    private final String queue;
    private final String markers;
    private final String sequence;

    /** Those of this process that wait, by their scores. */
    private final Map<Long, Ticket> waiting = new ConcurrentSkipListMap<>();

    private final ScheduledExecutorService pollers = Executors.newScheduledThreadPool(8);
    private final AtomicBoolean firing = new AtomicBoolean();
    private final AtomicBoolean pending = new AtomicBoolean();

    ClaimThenAcquire(RedissonClient redisson, String name, int limit) {
        semaphore = redisson.getPermitExpirableSemaphore(name + ":permits");
        semaphore.trySetPermits(limit);
        scripts = redisson.getScript(StringCodec.INSTANCE);
        released = redisson.getTopic(name + ":released", LongCodec.INSTANCE);
        queue = name + ":queue";
        markers = name + ":marker:";
        sequence = name + ":sequence";
        released.addListener(Long.class, (channel, message) -> pollers.execute(this::notified));
    }

    private final class Ticket {
        final String id = UUID.randomUUID().toString();
        final CountDownLatch granted = new CountDownLatch(1);
        long score;
        String permit;

        void enqueue() {
            List<Object> keys = List.of(queue, markers + id, sequence);
            score = scripts.eval(
                    RScript.Mode.READ_WRITE, ENQUEUE, RScript.ReturnType.LONG, keys, id, String.valueOf(MARKER_S));
        }

        /** One at a time for each ticket: its poll and a sweep may come together. */
        synchronized boolean tryOnce() {
            if (permit != null) {
                return true;
            }
            int free = semaphore.availablePermits();
            if (free <= 0 || !claimed(free)) {
                return false;
            }
            permit = tryPermit();
            if (permit == null) {
                // Somebody else was faster: back to the old place.
                scripts.eval(
                        RScript.Mode.READ_WRITE,
                        "return redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])",
                        RScript.ReturnType.LONG,
                        List.of(queue),
                        String.valueOf(score),
                        id);
                return false;
            }
            waiting.remove(score);
            granted.countDown();
            return true;
        }

        private boolean claimed(int free) {
            Object[] arguments = {id, String.valueOf(free), String.valueOf(SLACK), markers};
            Long claim = scripts.eval(
                    RScript.Mode.READ_WRITE, CLAIM, RScript.ReturnType.LONG, List.of(queue), arguments);
            return claim != null;
        }

        private String tryPermit() {
            try {
                return semaphore.tryAcquire(0, LEASE_S, TimeUnit.SECONDS);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return null;
            }
        }
    }

    private void notified() {
        pending.set(true);
        while (pending.get() && firing.compareAndSet(false, true)) {
            try {
                while (pending.getAndSet(false)) {
                    new ArrayList<>(waiting.values()).forEach(Ticket::tryOnce);
                }
            } finally {
                firing.set(false);
            }
        }
    }

    @Override
    public String acquire() throws InterruptedException {
        Ticket ticket = new Ticket();
        ticket.enqueue();
        waiting.put(ticket.score, ticket);
        if (!ticket.tryOnce()) {
            ScheduledFuture<?> poll =
                    pollers.scheduleWithFixedDelay(ticket::tryOnce, POLL_MS, POLL_MS, TimeUnit.MILLISECONDS);
            ticket.granted.await();
            poll.cancel(false);
        }
        return ticket.permit;
    }

    @Override
    public void release(String permit) {
        semaphore.release(permit);
        released.publish(1L);
    }
}
