package io.fairq;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The future of {@link Limiter#acquireAsync}. A permit must not stay in it with nobody to take it:
 *
 * <ul>
 *   <li>completed by anybody but us (cancelled, or by {@code orTimeout}), it cancels the request, and a permit that comes still
 *       goes back;
 *   <li>cancelled after a permit came which nobody has taken, it gives that back. Taken is what was got or joined, and what a
 *       dependent stage was there for;
 *   <li>when a dependent stage is cancelled before there is a permit, so is this.
 * </ul>
 */
final class PermitFuture extends CompletableFuture<Permit> {
    private static final int OPEN = 0;
    private static final int TAKEN = 1;
    private static final int DROPPED = 2;

    private final Limiter limiter;
    private final Executor executor;
    private final AtomicInteger permit = new AtomicInteger(OPEN);
    /** Who starts the request: until that is done nobody else has the future, and what is there already needs no executor. */
    private volatile Thread starter = Thread.currentThread();
    private volatile Booking booking;
    /** Under the lock of this: a stage of our own is being made, which takes no permit. */
    private boolean plumbing;

    private PermitFuture(Limiter limiter, Executor executor) {
        this.limiter = limiter;
        this.executor = executor;
    }

    static PermitFuture start(Limiter limiter, Mailbox mailbox, Request request, Ticket ticket) {
        PermitFuture future = new PermitFuture(limiter, mailbox.executor());
        try {
            future.booking = mailbox.book(limiter, request, ticket, future);
        } catch (FairqException error) {
            future.fail(error);
        }
        future.starter = null;
        return future;
    }

    // --- its end

    /** The request has ended. Called once, by any thread, perhaps before the one that starts it is done; does not block. */
    void settled(Booking ended) {
        if (Thread.currentThread() == starter) {
            deliver(ended);
        } else {
            Tasks.run(executor, () -> deliver(ended));
        }
    }

    private void deliver(Booking ended) {
        Failure failure = ended.failure();
        if (failure != null) {
            fail(failure.exception());
        } else if (isDone()) {
            ended.giveBack();
        } else {
            keep(new Permit(limiter, ended));
        }
    }

    private void keep(Permit granted) {
        if (!super.complete(granted)) {
            granted.close();
        }
    }

    private void fail(FairqException error) {
        super.completeExceptionally(error);
    }

    // --- completed by others

    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        if (super.cancel(mayInterruptIfRunning)) {
            abandon();
            return true;
        }
        return dropUntaken() || isCancelled();
    }

    @Override
    public boolean complete(Permit other) {
        boolean first = super.complete(other);
        if (first) {
            abandon();
        }
        return first;
    }

    @Override
    public boolean completeExceptionally(Throwable error) {
        boolean first = super.completeExceptionally(error);
        if (first) {
            abandon();
        }
        return first;
    }

    private void abandon() {
        Booking known = booking;
        if (known != null) {
            known.abandon();
        }
    }

    private boolean dropUntaken() {
        Booking known = booking;
        if (known == null || isCompletedExceptionally() || !permit.compareAndSet(OPEN, DROPPED)) {
            return false;
        }
        known.giveBack();
        obtrudeException(new CancellationException());
        return true;
    }

    // --- who takes the permit

    private Permit taken(Permit value) {
        if (!permit.compareAndSet(OPEN, TAKEN) && permit.get() == DROPPED) {
            throw new CancellationException();
        }
        return value;
    }

    @Override
    public Permit get() throws InterruptedException, ExecutionException {
        return taken(super.get());
    }

    @Override
    public Permit get(long timeout, TimeUnit unit) throws InterruptedException, ExecutionException, TimeoutException {
        return taken(super.get(timeout, unit));
    }

    @Override
    public Permit join() {
        return taken(super.join());
    }

    @Override
    public Permit getNow(Permit absent) {
        return isDone() ? taken(super.getNow(absent)) : absent;
    }

    /**
     * As of JDK 19.
     *
     * @return the permit
     */
    public Permit resultNow() {
        if (!isDone() || isCompletedExceptionally()) {
            throw new IllegalStateException("there is no permit");
        }
        return join();
    }

    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
        if (!(Thread.holdsLock(this) && plumbing)) {
            permit.compareAndSet(OPEN, TAKEN);
        }
        return new Dependent<>(this);
    }

    /** A stage takes a permit that comes later, too; until it comes, it is a cancel that ends the request. */
    private void dependentCancelled() {
        if (super.cancel(false)) {
            abandon();
        }
    }

    @Override
    public CompletableFuture<Permit> orTimeout(long timeout, TimeUnit unit) {
        return plumb(() -> super.orTimeout(timeout, unit));
    }

    @Override
    public CompletableFuture<Permit> completeOnTimeout(Permit value, long timeout, TimeUnit unit) {
        return plumb(() -> super.completeOnTimeout(value, timeout, unit));
    }

    private synchronized CompletableFuture<Permit> plumb(Runnable call) {
        plumbing = true;
        try {
            call.run();
        } finally {
            plumbing = false;
        }
        return this;
    }

    @Override
    public Executor defaultExecutor() {
        return executor;
    }

    /** A stage that comes of the future, or of another such. */
    private static final class Dependent<T> extends CompletableFuture<T> {
        private final PermitFuture root;

        Dependent(PermitFuture root) {
            this.root = root;
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            boolean first = super.cancel(mayInterruptIfRunning);
            if (first) {
                root.dependentCancelled();
            }
            return first || isCancelled();
        }

        @Override
        public <U> CompletableFuture<U> newIncompleteFuture() {
            return new Dependent<>(root);
        }

        @Override
        public Executor defaultExecutor() {
            return root.defaultExecutor();
        }
    }
}
