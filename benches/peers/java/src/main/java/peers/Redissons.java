package peers;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

/** Redisson's own: as their documentation shows them. */
final class Redissons {
    private Redissons() {}

    /** A permit that expires, as one has to have it for a crash to be survived. */
    static Semaphore permitExpirable(RedissonClient redisson, String name, int limit) {
        RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore(name);
        semaphore.trySetPermits(limit);
        return new Semaphore() {
            @Override
            public String acquire() throws InterruptedException {
                return semaphore.acquire(10, TimeUnit.SECONDS);
            }

            @Override
            public void release(String permit) {
                semaphore.release(permit);
            }
        };
    }

    /** A lock of a thread, renewed by the client's watchdog. */
    static Semaphore fairLock(RedissonClient redisson, String name, int limit) {
        if (limit != 1) {
            throw new IllegalArgumentException("a lock has one holder");
        }
        RLock lock = redisson.getFairLock(name);
        return new Semaphore() {
            @Override
            public String acquire() {
                lock.lock();
                return "";
            }

            @Override
            public void release(String permit) {
                lock.unlock();
            }
        };
    }
}
