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

    private final BlockingQueue<String> items = new LinkedBlockingQueue<>();
    final AtomicInteger readers = new AtomicInteger();
    final AtomicInteger interrupts = new AtomicInteger();

    void put(String item) {
        items.add(item);
    }

    void clear() {
        items.clear();
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

    Flux<String> flux() {
        return Flux.<String>generate(sink -> {
                    String item = take();
                    if (item == null) {
                        sink.complete();
                    } else {
                        sink.next(item);
                    }
                })
                .subscribeOn(Schedulers.boundedElastic())
                .limitRate(1)
                .doOnSubscribe(begun -> readers.incrementAndGet());
    }
}
