package io.fairq.spring.web;

import io.fairq.testing.Checks;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Flux;
import reactor.core.scheduler.Schedulers;

/** What controllers stream: the test says when there is more, and when it ends. */
final class Source {
    static final String END = "end";
    static final String FAIL = "fail";

    private volatile BlockingQueue<String> items = new LinkedBlockingQueue<>();
    final AtomicInteger readers = new AtomicInteger();
    final AtomicInteger interrupts = new AtomicInteger();

    void put(String item) {
        items.add(item);
    }

    /** For the next test: who still reads comes to the end, and takes nothing from those who read then. */
    void clear() {
        BlockingQueue<String> before = items;
        items = new LinkedBlockingQueue<>();
        before.add(END);
    }

    Reader reader() {
        return new Reader(items);
    }

    /** Reads what is put during one test. */
    final class Reader {
        private final BlockingQueue<String> items;

        private Reader(BlockingQueue<String> items) {
            this.items = items;
        }

        /** The next item; null at the end. */
        String take() {
            try {
                String item = items.poll(Checks.PATIENCE.toSeconds(), TimeUnit.SECONDS);
                if (FAIL.equals(item)) {
                    throw new IllegalStateException("on purpose");
                }
                return END.equals(item) ? null : item;
            } catch (InterruptedException stopped) {
                interrupts.incrementAndGet();
                Thread.currentThread().interrupt();
                throw new IllegalStateException("stopped", stopped);
            }
        }
    }

    Flux<String> flux() {
        return Flux.<String, Reader>generate(this::reader, (reader, sink) -> {
                    String item = reader.take();
                    if (item == null) {
                        sink.complete();
                    } else {
                        sink.next(item);
                    }
                    return reader;
                })
                .subscribeOn(Schedulers.boundedElastic())
                .limitRate(1)
                .doOnSubscribe(begun -> readers.incrementAndGet());
    }
}
