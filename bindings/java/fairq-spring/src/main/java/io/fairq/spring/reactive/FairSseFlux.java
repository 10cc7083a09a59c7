package io.fairq.spring.reactive;

import io.fairq.FairqException;
import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.Position;
import io.fairq.Request;
import io.fairq.spring.Refusal;
import io.fairq.spring.Wire;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.reactivestreams.Publisher;
import org.springframework.http.codec.ServerSentEvent;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxSink;
import reactor.core.publisher.Mono;

/**
 * Event streams under a limit, for controllers that return a {@code Flux}. While the client waits in line it is told its place, by
 * the same events as in the other languages; then the work's events follow.
 *
 * <p>Before anything was sent, refusals are errors of the stream, and become a status of 429 or 503; after a place was told, the
 * event {@code rejected}, with the same JSON as its data. Work that fails after something was sent ends in the event {@code failed}.
 * Who goes while waiting leaves the line: in Netty mostly at once; otherwise, as in servlet containers, with the next event or
 * comment, or the next but one.
 */
public final class FairSseFlux {
    private static final Log LOG = LogFactory.getLog(FairSseFlux.class);

    private final Duration keepAlive;

    /**
     * Event streams.
     *
     * @param keepAlive after how long in line a comment is sent, and again
     */
    public FairSseFlux(Duration keepAlive) {
        this.keepAlive = keepAlive;
    }

    /**
     * An event stream for who waits for a permit, and works under it.
     *
     * @param limiter the limiter
     * @param request what to ask it for; its listener for positions is replaced
     * @param work what to do with the permit, which is given back for you; {@link #event} makes events
     * @return to be returned by the controller
     */
    public Flux<ServerSentEvent<String>> sse(
            Limiter limiter, Request request, Function<? super Permit, ? extends Publisher<ServerSentEvent<String>>> work) {
        return Flux.deferContextual(context -> {
            Slot slot = new Slot();
            AtomicBoolean told = new AtomicBoolean();
            Flux<ServerSentEvent<String>> all = Flux.<Object>create(
                            sink -> wait(sink, limiter, request, slot), FluxSink.OverflowStrategy.LATEST)
                    .publish(line -> Flux.merge(line, comments(line)))
                    .concatMap(next -> next instanceof Permit permit ? FairFlux.under(permit, work) : Mono.just(inLine(next)), 1);
            return Trouble.ends(all, Trouble.over(context))
                    .doOnNext(event -> told.set(true))
                    .onErrorResume(error -> told.get() ? Mono.just(lastWord(error)) : Mono.error(error))
                    .doFinally(signal -> slot.end());
        });
    }

    /** Brings each {@link Position}, then the {@link Permit}; what is not taken in time is replaced by what is later. */
    private static void wait(FluxSink<Object> sink, Limiter limiter, Request request, Slot slot) {
        var waiting = Line.enter(limiter, request.onPosition(sink::next), slot).subscribe(sink::next, sink::error, sink::complete);
        sink.onDispose(waiting);
    }

    private Flux<Object> comments(Flux<Object> line) {
        return Flux.interval(keepAlive)
                .onBackpressureDrop()
                .<Object>map(tick -> ServerSentEvent.<String>builder().comment(" keep-alive").build())
                .takeUntilOther(line.ignoreElements().onErrorComplete());
    }

    @SuppressWarnings("unchecked")
    private static ServerSentEvent<String> inLine(Object next) {
        return next instanceof Position place
                ? event(Wire.POSITION, Wire.position(place))
                : (ServerSentEvent<String>) next;
    }

    /** The status 200 has gone out. */
    private static ServerSentEvent<String> lastWord(Throwable error) {
        return (error instanceof FairqException known ? Refusal.of(known) : java.util.Optional.<Refusal>empty())
                .map(FairSseFlux::rejected)
                .orElseGet(() -> {
                    LOG.error("an event stream has failed", error);
                    return event(Wire.FAILED, Wire.failed());
                });
    }

    private static ServerSentEvent<String> rejected(Refusal refusal) {
        var event = ServerSentEvent.builder(" " + refusal.json()).event(" " + Wire.REJECTED);
        refusal.retryAfter().ifPresent(seconds -> event.retry(Duration.ofSeconds(seconds)));
        return event.build();
    }

    /**
     * An event, written as the other languages write theirs: with a space after each colon, which the standard allows, Spring does
     * not write, and hasty clients expect.
     *
     * @param name its name
     * @param data its data; no line breaks
     * @return the event
     */
    public static ServerSentEvent<String> event(String name, String data) {
        return ServerSentEvent.builder(" " + data).event(" " + name).build();
    }
}
