package io.fairq.spring.mvc;

import io.fairq.Limiter;
import io.fairq.Request;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import org.springframework.core.task.VirtualThreadTaskExecutor;
import org.springframework.scheduling.concurrent.CustomizableThreadFactory;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/**
 * Event streams under a limit, for controllers of Spring MVC. While the client waits in line it is told its place, by the same
 * events as in the other languages; then the work runs, and sends its own.
 *
 * <pre>{@code
 * @GetMapping("/ask")
 * SseEmitter ask(@RequestParam String q) {
 *     return sse.sse(chat, Request.ofMaxWait(Duration.ofSeconds(15)), (events, permit) -> {
 *         for (String token : model.answer(q)) {
 *             events.send(FairSse.event("token", json(token)));
 *         }
 *     });
 * }
 * }</pre>
 *
 * <p><b>Refusals.</b> Before anything was sent they are exceptions of the request, and become a status of 429 or 503 (see
 * {@link FairqExceptionHandler}); after a place was told, the event {@code rejected}, with the same JSON as its data.
 *
 * <p><b>Clients that go.</b> The Servlet API tells of that only when something is written. So somebody who waits and goes leaves the
 * line with the next event, or the next but one (it takes one for the other side to say that nobody is there): each move in line
 * sends one, and {@code fairq.sse.keep-alive} a comment. While the work runs, its own events do that; it is interrupted then, and
 * also when its permit is lost, and its permit goes back when it ends.
 *
 * <p><b>Threads.</b> Nobody who waits has one. The work has one of its own, a virtual one on JDK 21 and later: never more than
 * there are permits.
 */
public final class FairSse implements AutoCloseable {
    private static final int WITH_VIRTUAL_THREADS = 21;
    private static final String PREFIX = "fairq-sse-";

    private final Duration keepAlive;
    private final Executor workers;
    private final ScheduledExecutorService clock;

    /**
     * Event streams.
     *
     * @param keepAlive after how long in line a comment is sent, and again
     */
    public FairSse(Duration keepAlive) {
        this.keepAlive = keepAlive;
        this.workers = Runtime.version().feature() >= WITH_VIRTUAL_THREADS
                ? new VirtualThreadTaskExecutor(PREFIX)
                : Executors.newCachedThreadPool(daemons(PREFIX));
        this.clock = Executors.newSingleThreadScheduledExecutor(daemons("fairq-sse-clock-"));
    }

    private static CustomizableThreadFactory daemons(String prefix) {
        CustomizableThreadFactory factory = new CustomizableThreadFactory(prefix);
        factory.setDaemon(true);
        return factory;
    }

    /**
     * An event stream for who waits for a permit, and works under it. Does not block.
     *
     * @param limiter the limiter
     * @param request what to ask it for; its listener for positions is replaced
     * @param work what to do with the permit
     * @return to be returned by the controller; no time limit but the limiter's
     */
    public SseEmitter sse(Limiter limiter, Request request, SseWork work) {
        SseExchange exchange = new SseExchange(workers, work);
        exchange.start(limiter, request, clock, keepAlive);
        return exchange.emitter();
    }

    /**
     * An event, written as the other languages write theirs: with a space after each colon, which the standard allows, Spring does
     * not write, and hasty clients expect.
     *
     * @param name its name
     * @param data its data; no line breaks
     * @return for {@link SseEmitter#send(SseEmitter.SseEventBuilder)}
     */
    public static SseEmitter.SseEventBuilder event(String name, String data) {
        return SseEmitter.event().name(" " + name).data(" " + data);
    }

    /** Ends its threads; work that is under way is interrupted. */
    @Override
    public void close() {
        clock.shutdownNow();
        if (workers instanceof ExecutorService pool) {
            pool.shutdownNow();
        }
    }
}
