package io.fairq.spring.mvc;

import io.fairq.FairqException;
import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.PermitLostException;
import io.fairq.Position;
import io.fairq.Request;
import io.fairq.spring.CurrentPermit;
import io.fairq.spring.Refusal;
import io.fairq.spring.Wire;
import java.io.IOException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/**
 * One event stream, from the line to its end. What is sent is sent in {@link #tasks}, one thing after the other; the work is the
 * last of these.
 */
final class SseExchange {
    private static final Log LOG = LogFactory.getLog(SseExchange.class);

    private final ToldEmitter emitter = new ToldEmitter();
    private final SerialTasks tasks;
    private final SseWork work;
    private final AtomicReference<Position> unsent = new AtomicReference<>();
    private volatile CompletableFuture<Permit> line;
    private volatile Future<?> keepAlive;

    // Under the lock of this:
    private boolean over;
    private Thread worker;

    SseExchange(Executor workers, SseWork work) {
        this.tasks = new SerialTasks(workers);
        this.work = work;
    }

    ToldEmitter emitter() {
        return emitter;
    }

    void start(Limiter limiter, Request request, ScheduledExecutorService clock, Duration pause) {
        emitter.onCompletion(this::over);
        line = limiter.acquireAsync(request.onPosition(this::moved));
        long nanos = pause.toNanos();
        keepAlive = clock.scheduleWithFixedDelay(() -> tasks.add(this::remind), nanos, nanos, TimeUnit.NANOSECONDS);
        line.whenComplete((permit, error) -> {
            keepAlive.cancel(false);
            if (permit == null) {
                tasks.add(() -> refuse(error instanceof CompletionException ? error.getCause() : error));
            } else if (!tasks.add(() -> run(permit))) {
                permit.close();
            }
        });
    }

    // --- in line

    /** Told where its sending has not begun yet, the later place replaces the earlier. */
    private void moved(Position position) {
        if (unsent.getAndSet(position) == null) {
            tasks.add(this::tellPosition);
        }
    }

    private boolean isInLine() {
        CompletableFuture<Permit> known = line;
        return known == null || !known.isDone(); // a place may be told before there is a future
    }

    private void tellPosition() {
        Position position = unsent.getAndSet(null);
        if (isInLine()) {
            sendInLine(FairSse.event(Wire.POSITION, Wire.position(position)));
        }
    }

    private void remind() {
        if (isInLine()) {
            sendInLine(SseEmitter.event().comment(" keep-alive"));
        }
    }

    private void sendInLine(SseEmitter.SseEventBuilder event) {
        if (!send(event)) {
            over();
        }
    }

    /** Whether somebody may read it. */
    private boolean send(SseEmitter.SseEventBuilder event) {
        try {
            emitter.send(event);
            return true;
        } catch (IOException | IllegalStateException gone) { // or complete, from the container's side
            LOG.debug("the client has gone", gone);
            emitter.markGone();
            return false;
        }
    }

    private void refuse(Throwable error) {
        if (error instanceof CancellationException) {
            return; // the request was over, and nobody reads it
        }
        if (!emitter.told()) {
            emitter.completeWithError(error);
            return;
        }
        Optional<Refusal> refusal = error instanceof FairqException known ? Refusal.of(known) : Optional.empty();
        refusal.ifPresentOrElse(this::reject, () -> fail(error));
    }

    private void reject(Refusal refusal) {
        SseEmitter.SseEventBuilder event = SseEmitter.event();
        refusal.retryAfter().ifPresent(seconds -> event.reconnectTime(Duration.ofSeconds(seconds).toMillis()));
        send(event.name(" " + Wire.REJECTED).data(" " + refusal.json()));
        emitter.complete();
    }

    private void fail(Throwable error) {
        LOG.error("an event stream has failed", error);
        send(FairSse.event(Wire.FAILED, Wire.failed()));
        emitter.complete();
    }

    // --- at work

    private void run(Permit permit) {
        Throwable error = null;
        try (permit) {
            if (!begin()) {
                return;
            }
            permit.onLost(this::lost);
            CurrentPermit.with(permit, () -> {
                work.run(emitter, permit);
                return null;
            });
        } catch (Exception | Error thrown) {
            error = thrown;
        } finally {
            end();
        }
        finish(error);
    }

    private void finish(Throwable error) {
        PermitLostException lost = emitter.takeLost();
        if (emitter.gone() || emitter.closing()) {
            return; // the container has ended it, or the work
        }
        if (lost != null) {
            refuse(lost);
        } else if (error == null) {
            emitter.complete();
        } else if (emitter.told()) {
            fail(error);
        } else {
            emitter.completeWithError(error);
        }
    }

    private synchronized boolean begin() {
        worker = over ? null : Thread.currentThread();
        return !over;
    }

    /** From here on nobody interrupts this thread for us; what came just now is not for who has it next. */
    private synchronized void end() {
        if (worker != null) {
            worker = null;
            Thread.interrupted();
        }
    }

    private synchronized void lost(PermitLostException why) {
        emitter.lose(why);
        interrupt();
    }

    /** The request is over: by us, or because the client has gone. */
    private void over() {
        keepAlive.cancel(false);
        line.cancel(true);
        synchronized (this) {
            over = true;
            if (!emitter.closing()) {
                emitter.markGone();
                interrupt();
            }
        }
    }

    private void interrupt() {
        if (worker != null) {
            worker.interrupt();
        }
    }
}
