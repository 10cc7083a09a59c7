package io.fairq.tests;

import java.lang.reflect.InvocationTargetException;
import java.util.Set;
import java.util.stream.Collectors;

/** Threads, of which the newer kind is there on JDK 21 and later. */
final class Threads {
    private Threads() {}

    static boolean haveVirtual() {
        return Runtime.version().feature() >= 21;
    }

    /** Skips what needs virtual threads where there are none. */
    static void needVirtual() {
        org.junit.jupiter.api.Assumptions.assumeTrue(haveVirtual(), "virtual threads come with JDK 21");
    }

    static Thread startVirtual(Runnable task) {
        try {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
        } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException error) {
            throw new AssertionError(error);
        }
    }

    static Thread start(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Runs it in another thread, after so many turns of nothing. */
    static void soon(int spins, Runnable task) {
        java.util.concurrent.ForkJoinPool.commonPool().execute(() -> {
            for (int spin = 0; spin < spins; spin++) {
                Thread.onSpinWait();
            }
            task.run();
        });
    }

    /** Names of the platform threads of this process. */
    static Set<String> names() {
        return Thread.getAllStackTraces().keySet().stream().map(Thread::getName).collect(Collectors.toSet());
    }

    /** All threads of this process, the library's too. */
    static int count() {
        return new java.io.File("/proc/self/task").list().length;
    }
}
