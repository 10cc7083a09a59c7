package io.fairq.spring.aop;

import io.fairq.Permit;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;

/**
 * Waits for a permit, then for the stage that a method returns under it. Cancelling it leaves the line, or cancels that stage; the
 * permit is held until the stage is complete.
 */
final class HeldFuture extends CompletableFuture<Object> {
    private final LimitedCall call;
    private volatile CompletableFuture<Permit> line;
    private volatile CompletionStage<?> work;

    HeldFuture(LimitedCall call) {
        this.call = call;
    }

    void start() {
        line = call.limiter().acquireAsync(call.request());
        line.whenComplete((permit, error) -> {
            if (permit == null) {
                completeExceptionally(unwrapped(error));
            } else {
                granted(permit);
            }
        });
        whenComplete((value, error) -> stop());
    }

    private void granted(Permit permit) {
        if (isDone()) {
            permit.close();
            return;
        }
        try {
            work = (CompletionStage<?>) call.proceed(permit);
        } catch (Throwable error) {
            permit.close();
            completeExceptionally(error);
            return;
        }
        if (work == null) {
            permit.close();
            completeExceptionally(new IllegalStateException("a method with @FairLimit has returned null, and no stage"));
            return;
        }
        work.whenComplete((value, error) -> ended(permit, value, error));
        if (isDone()) { // since we looked
            stop();
        }
    }

    /** The permit goes first, so that who sees the end sees that too. */
    private void ended(Permit permit, Object value, Throwable error) {
        if (error != null) {
            permit.close();
            completeExceptionally(unwrapped(error));
            return;
        }
        try {
            var held = call.hold(permit, value);
            if (held.isEmpty()) {
                permit.close();
            }
            if (!complete(held.orElse(value))) { // nobody gets what holds it
                permit.close();
            }
        } catch (RuntimeException wrong) {
            permit.close();
            completeExceptionally(wrong);
        }
    }

    /** Whoever has completed this: nobody waits for the permit, or the work, any more. */
    private void stop() {
        line.cancel(true);
        if (isCancelled() && work instanceof Future<?> future) {
            future.cancel(true);
        }
    }

    private static Throwable unwrapped(Throwable error) {
        return error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
    }
}
