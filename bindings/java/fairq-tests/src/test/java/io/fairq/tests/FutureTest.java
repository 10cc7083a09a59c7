package io.fairq.tests;

import static io.fairq.testing.Checks.PATIENT;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.fairq.ClientOptions;
import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.testing.Checks;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Futures that are cancelled at each point where one can be: no permit stays behind. */
@ParameterizedClass
@EnumSource(Store.class)
class FutureTest extends StoreTest {
    /** What is to be run in the client's executor: the test runs it when it wants. */
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();

    FutureTest(Store store) {
        super(store);
    }

    @Override
    ClientOptions options() {
        return ClientOptions.defaults().executor(tasks::add);
    }

    /** One waits behind a permit. */
    private final class Situation {
        final Limiter limiter = limiter(1);
        final Permit held = limiter.acquire();
        final CompletableFuture<Permit> future = limiter.acquireAsync(PATIENT);

        Situation() throws InterruptedException {
            Checks.inLine(limiter, 1);
            assertFalse(future.isDone());
        }

        /** It is granted, and the executor has not told it. */
        Situation grant() {
            held.close();
            Checks.eventually("the executor is asked", () -> !tasks.isEmpty());
            assertFalse(future.isDone());
            return this;
        }

        /** It is granted and told. */
        Situation complete() {
            grant();
            runTasks();
            assertTrue(future.isDone());
            return this;
        }

        void used(long used) {
            assertEquals(used, limiter.status().used());
        }
    }

    private void runTasks() {
        for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
            task.run();
        }
    }

    @Test
    void inLine() throws Exception {
        Situation it = new Situation();
        assertTrue(it.future.cancel(true));
        assertTrue(it.future.isCancelled());
        Checks.inLine(it.limiter, 0);
        it.used(1);
        assertTrue(it.future.cancel(true), "it is cancelled");
        it.held.close();
    }

    @Test
    void grantedAndOnItsWay() throws Exception {
        Situation it = new Situation().grant();
        assertTrue(it.future.cancel(true));
        Checks.idle(it.limiter);
        runTasks();
        assertThrows(CancellationException.class, it.future::join);
    }

    @Test
    void grantedWhileItIsCancelled() throws Exception {
        Situation it = new Situation().grant();
        it.future.completeExceptionally(new IllegalStateException("other"));
        runTasks();
        Checks.idle(it.limiter);
    }

    @Test
    void completeAndNotTaken() throws Exception {
        Situation it = new Situation().complete();
        it.used(1);
        assertTrue(it.future.cancel(true));
        Checks.idle(it.limiter);
        assertTrue(it.future.isCancelled());
        assertThrows(CancellationException.class, it.future::join);
        assertThrows(CancellationException.class, it.future::get);
    }

    @Test
    void completeAndTaken() throws Exception {
        for (Consumer<CompletableFuture<Permit>> take : takes()) {
            Situation it = new Situation().complete();
            take.accept(it.future);
            assertFalse(it.future.cancel(true));
            it.used(1);
            it.future.join().close();
            Checks.idle(it.limiter);
        }
    }

    private static Iterable<Consumer<CompletableFuture<Permit>>> takes() {
        return java.util.List.of(
                CompletableFuture::join,
                future -> future.getNow(null),
                future -> {
                    try {
                        future.get(1, TimeUnit.SECONDS);
                    } catch (InterruptedException | ExecutionException | TimeoutException error) {
                        throw new AssertionError(error);
                    }
                },
                future -> future.thenAccept(permit -> assertTrue(permit.isValid())),
                future -> future.whenComplete((permit, error) -> assertNull(error)));
    }

    /** The one who waits has no patience, and the grant comes just then. */
    @Test
    void aGetTimesOut() throws Exception {
        Situation it = new Situation();
        assertThrows(TimeoutException.class, () -> it.future.get(1, TimeUnit.MILLISECONDS));
        it.complete();
        assertTrue(it.future.cancel(true));
        Checks.idle(it.limiter);
    }

    @Test
    void orTimeout() throws Exception {
        Situation it = new Situation();
        assertSame(it.future, it.future.orTimeout(1, TimeUnit.MILLISECONDS));
        assertInstanceOf(TimeoutException.class, Checks.failure(it.future));
        Checks.inLine(it.limiter, 0);
        it.held.close();
    }

    @Test
    void orTimeoutTakesNoPermit() throws Exception {
        Situation it = new Situation();
        it.future.orTimeout(1, TimeUnit.HOURS).completeOnTimeout(null, 1, TimeUnit.HOURS);
        it.complete();
        assertTrue(it.future.cancel(true));
        Checks.idle(it.limiter);
    }

    @Test
    void completeOnTimeout() throws Exception {
        Situation it = new Situation();
        it.future.completeOnTimeout(null, 1, TimeUnit.MILLISECONDS);
        assertNull(Checks.get(it.future));
        Checks.inLine(it.limiter, 0);
        it.held.close();
    }

    @Test
    void completedByAnother() throws Exception {
        Situation it = new Situation();
        assertTrue(it.future.complete(null));
        Checks.inLine(it.limiter, 0);
        it.held.close();
    }

    /** In the one way that the future does not notice. */
    @Test
    void completedByATask() throws Exception {
        Situation it = new Situation();
        it.future.completeAsync(() -> null, Runnable::run);
        it.held.close();
        Checks.eventually("the executor is asked", () -> !tasks.isEmpty());
        runTasks();
        Checks.idle(it.limiter);
    }

    @Test
    void aDependentStageIsCancelled() throws Exception {
        Situation it = new Situation();
        CompletableFuture<Void> stage = it.future.thenApply(permit -> permit).thenAccept(Permit::close);
        assertTrue(stage.cancel(true));
        assertTrue(it.future.isCancelled());
        Checks.inLine(it.limiter, 0);
        it.held.close();
    }

    @Test
    void aDependentStageHasThePermit() throws Exception {
        Situation it = new Situation();
        CompletableFuture<Permit> work = new CompletableFuture<>();
        CompletableFuture<Permit> stage = it.future.thenCompose(permit -> work.whenComplete((done, error) -> permit.close()));
        it.complete();
        assertTrue(stage.cancel(true));
        assertFalse(it.future.cancel(true));
        it.used(1);
        work.complete(null);
        Checks.idle(it.limiter);
    }

    @Test
    void atOnce() throws Exception {
        Limiter limiter = limiter(1);
        CompletableFuture<Permit> future = limiter.acquireAsync();
        if (store == Store.MEMORY) {
            assertTrue(future.isDone(), "no executor is needed for it");
        } else {
            Checks.eventually("the executor is asked", () -> !tasks.isEmpty());
            runTasks();
        }
        future.join().close();
    }

    @Test
    void theExecutorHasShutDown() throws Exception {
        var executor = java.util.concurrent.Executors.newSingleThreadExecutor();
        executor.shutdown();
        try (var other = io.fairq.Client.open(store.url(), ClientOptions.defaults().executor(executor))) {
            Limiter limiter = other.limiter(newName(), io.fairq.LimiterOptions.ofLimit(1));
            Permit held = limiter.acquire();
            CompletableFuture<Permit> future = limiter.acquireAsync(PATIENT);
            held.close();
            Checks.get(future).close();
            Checks.idle(limiter);
        }
    }

    @Test
    void stagesRunInTheExecutor() throws Exception {
        Situation it = new Situation();
        Thread[] ran = new Thread[2];
        it.future.thenAccept(permit -> ran[0] = Thread.currentThread());
        CompletableFuture<Void> last = it.future.thenAcceptAsync(permit -> {
            ran[1] = Thread.currentThread();
            permit.close();
        });
        it.grant();
        Checks.eventually("all ran", () -> {
            runTasks();
            return last.isDone();
        });
        assertSame(Thread.currentThread(), ran[0]);
        assertSame(Thread.currentThread(), ran[1]);
    }
}
