package io.fairq.spring.mvc;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/** Runs tasks one after the other, in threads of an executor. */
final class SerialTasks {
    private static final Log LOG = LogFactory.getLog(SerialTasks.class);

    private final Executor executor;
    private final Queue<Runnable> waiting = new ArrayDeque<>();
    private boolean busy;

    SerialTasks(Executor executor) {
        this.executor = executor;
    }

    /** Whether the task will run: not when the executor takes none any more. */
    synchronized boolean add(Runnable task) {
        if (busy) {
            waiting.add(task);
            return true;
        }
        try {
            busy = true;
            executor.execute(() -> runAll(task));
        } catch (RejectedExecutionException shutDown) {
            busy = false;
        }
        return busy;
    }

    private void runAll(Runnable first) {
        for (Runnable task = first; task != null; task = next()) {
            try {
                task.run();
            } catch (RuntimeException error) {
                LOG.error("a task of an event stream has failed", error); // the next ones are no less important
            }
        }
    }

    private synchronized Runnable next() {
        Runnable task = waiting.poll();
        busy = task != null;
        return task;
    }
}
