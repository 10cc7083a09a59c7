package io.fairq.spring.reactive;

import io.fairq.CancelledException;
import io.fairq.Permit;
import io.fairq.spring.aop.AsyncHolding;
import io.fairq.spring.aop.LimitedCall;
import java.util.concurrent.CompletableFuture;
import org.reactivestreams.Publisher;
import org.springframework.core.ResolvableType;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Holds permits for publishers: the method is called for each subscription, when there is a permit. */
final class PublisherHolding implements AsyncHolding {
    @Override
    public boolean accepts(ResolvableType returned) {
        Class<?> type = returned.resolve(Object.class);
        boolean isOurs = type == Mono.class || type == Flux.class || type == Publisher.class;
        return isOurs && !EntityHolding.isStreaming(returned.getGeneric(0));
    }

    @Override
    public Object call(LimitedCall call) {
        // Here, in the thread of the request.
        CompletableFuture<Object> over = new CompletableFuture<>();
        call.end().whenOver(() -> over.completeExceptionally(
                new CancelledException("the request is over, before there was an answer", false, null)));
        Mono<Object> end = Mono.fromFuture(over, true);
        if (call.returned().resolve() == Mono.class) {
            return FairFlux.mono(call.limiter(), call.request(), permit -> Mono.from(proceed(call, permit)))
                    .takeUntilOther(end);
        }
        return FairFlux.flux(call.limiter(), call.request(), permit -> proceed(call, permit)).takeUntilOther(end);
    }

    private static Publisher<?> proceed(LimitedCall call, Permit permit) {
        try {
            return (Publisher<?>) call.proceed(permit);
        } catch (Exception error) {
            return Mono.error(error);
        }
    }
}
