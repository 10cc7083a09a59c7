package io.fairq.spring.reactive;

import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.Request;
import java.util.function.Function;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Streams under a limit. Each subscription waits in line for a permit of its own, without a thread; then the work is subscribed to,
 * and holds the permit until it completes, fails or is cancelled. Who cancels while waiting leaves the line.
 *
 * <p>The work is made and subscribed to by the thread that learns of the grant; see {@link io.fairq.ClientOptions#executor}. Work
 * that blocks belongs elsewhere ({@code subscribeOn}). When the permit is lost the work is cancelled, and the stream ends with
 * {@link io.fairq.PermitLostException}.
 */
public final class FairFlux {
    private FairFlux() {}

    /**
     * A stream of many.
     *
     * @param limiter the limiter
     * @param request what to ask it for
     * @param work what to do with the permit, which is given back for you
     * @param <T> what comes of it
     * @return the stream; it fails with a {@link io.fairq.FairqException} where there is no permit
     */
    public static <T> Flux<T> flux(
            Limiter limiter, Request request, Function<? super Permit, ? extends Publisher<? extends T>> work) {
        return Flux.deferContextual(context -> {
            Slot slot = new Slot();
            Flux<T> all = Line.enter(limiter, request, slot).flatMapMany(permit -> under(permit, work));
            return Trouble.ends(all, Trouble.over(context)).doFinally(signal -> slot.end());
        });
    }

    /**
     * A stream of at most one.
     *
     * @param limiter the limiter
     * @param request what to ask it for
     * @param work what to do with the permit, which is given back for you
     * @param <T> what comes of it
     * @return the stream; it fails with a {@link io.fairq.FairqException} where there is no permit
     */
    public static <T> Mono<T> mono(
            Limiter limiter, Request request, Function<? super Permit, ? extends Mono<? extends T>> work) {
        return FairFlux.<T>flux(limiter, request, work).singleOrEmpty();
    }

    static <T> Flux<T> under(Permit permit, Function<? super Permit, ? extends Publisher<? extends T>> work) {
        return Trouble.ends(work.apply(permit), Trouble.lost(permit));
    }
}
