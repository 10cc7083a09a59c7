package io.fairq.spring.reactive;

import io.fairq.CancelledException;
import io.fairq.Permit;
import io.fairq.spring.aop.RequestEnd;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;
import reactor.util.context.ContextView;

/**
 * What ends work before its time. It comes as a value: {@code takeUntilOther} cancels the work for a value, but not for an error,
 * after which the work would go on, and keep what it holds, with nobody to tell it.
 */
final class Trouble {
    private static final Object OVER = Trouble.class;

    private Trouble() {}

    /** The work, until there is trouble: then it is cancelled, and the stream fails with that. */
    static <T> Flux<T> ends(Publisher<? extends T> work, Mono<? extends Throwable> trouble) {
        return Flux.defer(() -> {
            AtomicReference<Throwable> why = new AtomicReference<>();
            return Flux.<T>from(work)
                    .takeUntilOther(trouble.doOnNext(why::set))
                    .concatWith(Mono.defer(() -> why.get() == null ? Mono.empty() : Mono.error(why.get())));
        });
    }

    /** The permit is lost; else nothing comes of it. */
    static Mono<Throwable> lost(Permit permit) {
        return Mono.create(sink -> permit.onLost(sink::success));
    }

    /** The web request that this thread works for is over; nothing comes of it where there is none. */
    static Mono<Throwable> over(RequestEnd end) {
        CompletableFuture<Throwable> over = new CompletableFuture<>();
        end.whenOver(() -> over.complete(overBeforeAnAnswer()));
        return Mono.fromFuture(over, true);
    }

    /** The exchange that the subscriber belongs to is over; nothing comes of it where there is none. */
    static Mono<Throwable> over(ContextView context) {
        return context.<CompletableFuture<Throwable>>getOrEmpty(OVER)
                .map(over -> Mono.fromFuture(over, true))
                .orElse(Mono.never());
    }

    /** A context of subscribers for which the exchange will be over then. */
    static Context over(Context context, CompletableFuture<Throwable> over) {
        return context.put(OVER, over);
    }

    static Throwable overBeforeAnAnswer() {
        return new CancelledException("the request is over, before there was an answer", false, null);
    }
}
