package io.fairq.spring.aop;

import io.fairq.Permit;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.function.Consumer;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/** Holds permits for streams: until they are closed, or have been read to their end. */
final class StreamHolding implements ValueHolding {
    @Override
    public Object hold(Permit permit, Object value) {
        return value instanceof Stream<?> stream ? held(permit, stream) : null;
    }

    private static <T> Stream<T> held(Permit permit, Stream<T> stream) {
        return StreamSupport.stream(() -> new Held<>(permit, stream), 0, false).onClose(() -> {
            try (permit) {
                stream.close();
            }
        });
    }

    /** Sees the end. It does not split: the order is kept, and one reader reads. */
    private static final class Held<T> extends Spliterators.AbstractSpliterator<T> {
        private final Permit permit;
        private final Spliterator<T> items;

        Held(Permit permit, Stream<T> stream) {
            super(Long.MAX_VALUE, 0);
            this.permit = permit;
            this.items = stream.spliterator();
        }

        @Override
        public boolean tryAdvance(Consumer<? super T> action) {
            boolean more = false;
            try {
                more = items.tryAdvance(action);
                return more;
            } finally {
                if (!more) { // or it has thrown
                    permit.close();
                }
            }
        }
    }
}
