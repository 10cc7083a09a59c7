package io.fairq;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;

/** Where callers' code runs; and what this package uses of JDK 21, where there is it. */
final class Tasks {
    private static final Executor DEFAULT = virtualOrCommon();
    private static final MethodHandle IS_VIRTUAL = isVirtualHandle();

    private Tasks() {}

    static Executor orDefault(Executor executor) {
        return executor == null ? DEFAULT : executor;
    }

    /** Runs it in the executor; where that does not take it (any more), as by default: a permit must not be lost with it. */
    static void run(Executor executor, Runnable task) {
        try {
            executor.execute(task);
        } catch (RejectedExecutionException shutDown) {
            DEFAULT.execute(task);
        }
    }

    private static Executor virtualOrCommon() {
        MethodType type = MethodType.methodType(ExecutorService.class);
        try {
            MethodHandle make = MethodHandles.publicLookup()
                    .findStatic(java.util.concurrent.Executors.class, "newVirtualThreadPerTaskExecutor", type);
            return (ExecutorService) make.invokeExact();
        } catch (Throwable olderJdk) {
            return new CompletableFuture<Void>().defaultExecutor(); // the common pool, unless that has one thread only
        }
    }

    private static MethodHandle isVirtualHandle() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (NoSuchMethodException | IllegalAccessException olderJdk) {
            MethodHandle no = MethodHandles.constant(boolean.class, false);
            return MethodHandles.dropArguments(no, 0, Thread.class);
        }
    }

    /** Whether the calling thread is a virtual one, which must not block outside of Java. */
    static boolean inVirtualThread() {
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }
}
