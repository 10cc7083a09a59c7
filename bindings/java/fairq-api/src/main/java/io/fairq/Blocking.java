package io.fairq;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** Calls that block in the library. A virtual thread would keep its carrier there; a few platform threads do it for them. */
final class Blocking {
    private static final int THREADS = 4;
    private static final long IDLE_SECONDS = 10;
    private static final AtomicInteger NUMBER = new AtomicInteger();
    private static final ThreadPoolExecutor POOL = pool();

    private Blocking() {}

    /** Makes the call here, or for a virtual thread elsewhere. No interrupt ends it. */
    static <T> T call(Supplier<T> call) {
        return Tasks.inVirtualThread() ? await(CompletableFuture.supplyAsync(call, POOL)) : call.get();
    }

    /** As {@link #call}, for one that takes long, and would keep others from being made. */
    static <T> T callLong(Supplier<T> call) {
        return Tasks.inVirtualThread()
                ? await(CompletableFuture.supplyAsync(call, task -> daemon(task, "fairq-close").start()))
                : call.get();
    }

    /** Makes the call elsewhere; what depends on it runs in the executor. */
    static <T> CompletableFuture<T> async(Supplier<T> call, Executor executor) {
        CompletableFuture<T> future = new CompletableFuture<>();
        POOL.execute(() -> {
            try {
                T result = call.get();
                Tasks.run(executor, () -> future.complete(result));
            } catch (Throwable error) {
                Tasks.run(executor, () -> future.completeExceptionally(error));
            }
        });
        return future;
    }

    private static <T> T await(CompletableFuture<T> future) {
        try {
            return future.join(); // keeps an interrupt for later
        } catch (CompletionException error) {
            if (error.getCause() instanceof FairqException cause) {
                cause.addSuppressed(new Throwable("called from here"));
                throw cause;
            }
            throw error;
        }
    }

    private static ThreadPoolExecutor pool() {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                THREADS,
                THREADS,
                IDLE_SECONDS,
                TimeUnit.SECONDS,
                new LinkedBlockingQueue<>(),
                task -> daemon(task, "fairq-call-" + NUMBER.incrementAndGet()));
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    /** A thread that keeps neither the process nor what its maker had in thread locals and class loaders. */
    static Thread daemon(Runnable task, String name) {
        Thread thread = new Thread(null, task, name, 0, false);
        thread.setDaemon(true);
        thread.setContextClassLoader(ClassLoader.getSystemClassLoader());
        return thread;
    }
}
