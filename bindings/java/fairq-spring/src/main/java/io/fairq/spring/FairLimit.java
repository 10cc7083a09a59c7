package io.fairq.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The method runs under a permit of a limiter, which is held until what it returns has come to its end:
 *
 * <table>
 *   <caption>How long the permit is held, and how it is waited for</caption>
 *   <tr><th>the method returns</th><th>held until</th><th>who waits in line</th></tr>
 *   <tr><td>a plain value, or nothing</td><td>the method returns</td><td>the thread</td></tr>
 *   <tr><td>{@code Stream}</td><td>it is closed, or has been read to its end</td><td>the thread</td></tr>
 *   <tr><td>{@code SseEmitter}, {@code ResponseBodyEmitter}</td><td>the response is complete, failed, timed out, or its client
 *       has gone</td><td>the thread</td></tr>
 *   <tr><td>{@code StreamingResponseBody}</td><td>it has been written</td><td>the thread</td></tr>
 *   <tr><td>{@code ResponseEntity} of these</td><td>the same</td><td>the thread</td></tr>
 *   <tr><td>{@code CompletionStage}, {@code CompletableFuture}</td><td>it completes, or is cancelled</td><td>no thread</td></tr>
 *   <tr><td>{@code Mono}, {@code Flux}, {@code Publisher}</td><td>it completes, fails or is cancelled</td><td>no thread; each
 *       subscription anew</td></tr>
 *   <tr><td>{@code ResponseEntity<Flux>}</td><td>its body completes, fails or is cancelled</td><td>no thread; the method runs
 *       first, and must do no work itself</td></tr>
 * </table>
 *
 * <p>Where no thread waits, the method is called by the thread that learns of the grant (see
 * {@link io.fairq.ClientOptions#executor}): what the caller's thread has in thread locals is not there. Other types that would
 * end later than the method ({@code Callable}, {@code DeferredResult}, a bare {@code Future}, …) are refused when the bean is made.
 *
 * <p>Who gets no permit is told by a {@link io.fairq.FairqException}; in web applications that becomes a status of 429 or 503, see
 * {@link Refusal}. Streams end with {@link io.fairq.PermitLostException} when their permit is lost. The running method finds its
 * permit in {@link CurrentPermit}.
 *
 * <p><b>Clients that go while they wait.</b> The Servlet API does not tell of that before something is written. A thread that waits
 * hence waits on, at most as long as {@link #maxWait}; a {@code CompletionStage} or {@code Mono} leaves the line when the
 * asynchronous request times out, or fails. To show clients their place, and to notice soon when they go, use
 * {@link io.fairq.spring.mvc.FairSse} or {@link io.fairq.spring.reactive.FairSseFlux}. WebFlux in Netty
 * does tell: there who goes leaves the line at once.
 *
 * <p>As with all annotations that work by proxies, calls within the bean are not limited. The limit is inside of method security (so
 * that nobody stands in line for a refusal) and outside of transactions (so that nobody waits with a connection).
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@Documented
public @interface FairLimit {
    /**
     * The name of the limiter: one of {@code fairq.limiters}, or one that others have declared.
     *
     * @return may have placeholders, as in <code>${app.limiter}</code>
     */
    String value();

    /**
     * How long to wait in line, such as {@code 15s}; {@code 0}: at once or not at all; or {@code forever}.
     *
     * @return empty: as long as the limiter says; may have placeholders
     */
    String maxWait() default "";

    /**
     * How much of the limit the permit takes.
     *
     * @return at least 1
     */
    long cost() default 1;

    /**
     * What operators see in the lists of holders and waiters: a text with SpEL in it, such as
     * {@code "tenant #{#tenant}"}, which knows the arguments by name (with {@code -parameters}), as {@code #a0}, and beans.
     *
     * @return cut off after 256 bytes; may have placeholders
     */
    String label() default "";
}
