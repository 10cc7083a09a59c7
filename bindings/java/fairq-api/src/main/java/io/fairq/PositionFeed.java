package io.fairq;

import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/**
 * One subscriber to positions. It is told the latest one when it has asked for one: what it was too slow for is gone. All it is
 * told, it is told in the executor, one after the other.
 */
final class PositionFeed implements Flow.Subscription {
    private static final System.Logger LOG = System.getLogger("io.fairq");

    private final Flow.Subscriber<? super Position> subscriber;
    private final Executor executor;
    private final Consumer<PositionFeed> whenCancelled;
    private final AtomicReference<Position> latest = new AtomicReference<>();
    private final AtomicLong demand = new AtomicLong();
    /** News since the last look; whoever makes it 1 has the work done, until it is 0 again. */
    private final AtomicInteger news = new AtomicInteger(1);
    private volatile boolean ended;
    private volatile boolean cancelled;
    private volatile Throwable error;

    PositionFeed(Flow.Subscriber<? super Position> subscriber, Executor executor, Consumer<PositionFeed> whenCancelled) {
        this.subscriber = subscriber;
        this.executor = executor;
        this.whenCancelled = whenCancelled;
    }

    /** Nothing else is told before the subscriber knows of its subscription. */
    void begin() {
        subscriber.onSubscribe(this);
        if (!news.compareAndSet(1, 0)) {
            Tasks.run(executor, this::work);
        }
    }

    void offer(Position position) {
        latest.set(position);
        look();
    }

    void end() {
        ended = true;
        look();
    }

    @Override
    public void request(long more) {
        if (more <= 0) {
            error = new IllegalArgumentException("a subscriber has to ask for more than " + more);
        } else {
            demand.accumulateAndGet(more, (had, plus) -> had + plus < 0 ? Long.MAX_VALUE : had + plus);
        }
        look();
    }

    @Override
    public void cancel() {
        cancelled = true;
        latest.set(null);
        whenCancelled.accept(this);
    }

    private void look() {
        if (news.getAndIncrement() == 0) {
            Tasks.run(executor, this::work);
        }
    }

    private void work() {
        int seen;
        do {
            seen = news.get();
            try {
                tell();
            } catch (RuntimeException failure) { // which the rules forbid
                LOG.log(System.Logger.Level.ERROR, "a subscriber to positions failed", failure);
                cancel();
            }
        } while (!news.compareAndSet(seen, 0));
    }

    private void tell() {
        if (cancelled) {
            return;
        }
        if (error != null) {
            cancel();
            subscriber.onError(error);
        } else if (ended) {
            cancel();
            subscriber.onComplete();
        } else if (demand.get() > 0) {
            Position position = latest.getAndSet(null);
            if (position != null) {
                demand.updateAndGet(had -> had == Long.MAX_VALUE ? had : had - 1);
                subscriber.onNext(position);
            }
        }
    }
}
