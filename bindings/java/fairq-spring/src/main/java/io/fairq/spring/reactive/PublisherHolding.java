package io.fairq.spring.reactive;

import io.fairq.Permit;
import io.fairq.spring.aop.AsyncHolding;
import io.fairq.spring.aop.LimitedCall;
import java.util.function.Function;
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
        return call.returned().resolve() == Mono.class
                ? mono(call, permit -> Mono.from(proceed(call, permit)))
                : flux(call, permit -> proceed(call, permit));
    }

    // To be called in the thread of the request.

    static Mono<?> mono(LimitedCall call, Function<Permit, Mono<?>> work) {
        return Trouble.ends(FairFlux.mono(call.limiter(), call.request(), work), Trouble.over(call.end())).singleOrEmpty();
    }

    static Flux<?> flux(LimitedCall call, Function<Permit, Publisher<?>> work) {
        return Trouble.ends(FairFlux.flux(call.limiter(), call.request(), work), Trouble.over(call.end()));
    }

    private static Publisher<?> proceed(LimitedCall call, Permit permit) {
        try {
            return (Publisher<?>) call.proceed(permit);
        } catch (Exception error) {
            return Mono.error(error);
        }
    }
}
