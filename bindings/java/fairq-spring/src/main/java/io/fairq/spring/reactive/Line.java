package io.fairq.spring.reactive;

import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.Request;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import reactor.core.publisher.Mono;

/** The line as a publisher. */
final class Line {
    private Line() {}

    /** The permit, which is in the slot by then. Cancelled, it leaves the line. */
    static Mono<Permit> enter(Limiter limiter, Request request, Slot slot) {
        return Mono.create(sink -> {
            CompletableFuture<Permit> waiting = limiter.acquireAsync(request);
            sink.onCancel(() -> waiting.cancel(true));
            waiting.whenComplete((permit, error) -> {
                if (permit == null) {
                    sink.error(error instanceof CompletionException ? error.getCause() : error);
                } else if (slot.put(permit)) {
                    sink.success(permit);
                }
            });
        });
    }
}
