package io.fairq;

import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.function.Consumer;

/** The positions of one request, for any number of subscribers; each has the latest when it comes, and at its own pace. */
final class Positions implements Flow.Publisher<Position> {
    private final Executor executor;
    /** One may leave while it is told, in an executor that runs things at once. */
    private final List<PositionFeed> feeds = new CopyOnWriteArrayList<>();
    private Position latest;
    private boolean ended;

    Positions(Executor executor) {
        this.executor = executor;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Position> subscriber) {
        PositionFeed feed = new PositionFeed(Objects.requireNonNull(subscriber, "subscriber"), executor, this::remove);
        feed.begin();
        synchronized (this) {
            if (latest != null) {
                feed.offer(latest);
            }
            if (ended) {
                feed.end();
            } else {
                feeds.add(feed);
            }
        }
    }

    /** One that takes all. */
    void tell(Consumer<Position> listener) {
        subscribe(new Listener(listener));
    }

    private synchronized void remove(PositionFeed feed) {
        feeds.remove(feed);
    }

    synchronized void offer(Position position) {
        if (!ended) {
            latest = position;
            feeds.forEach(feed -> feed.offer(position));
        }
    }

    /** The request waits no more. */
    synchronized void end() {
        ended = true;
        latest = null;
        feeds.forEach(PositionFeed::end);
        feeds.clear();
    }

    private record Listener(Consumer<Position> listener) implements Flow.Subscriber<Position> {
        private static final System.Logger LOG = System.getLogger("io.fairq");

        @Override
        public void onSubscribe(Flow.Subscription subscription) {
            subscription.request(Long.MAX_VALUE);
        }

        @Override
        public void onNext(Position position) {
            try {
                listener.accept(position);
            } catch (RuntimeException error) {
                LOG.log(System.Logger.Level.ERROR, "a listener for positions failed", error);
            }
        }

        @Override
        public void onError(Throwable error) {}

        @Override
        public void onComplete() {}
    }
}
