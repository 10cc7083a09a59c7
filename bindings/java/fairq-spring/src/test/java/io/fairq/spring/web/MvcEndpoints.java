package io.fairq.spring.web;

import io.fairq.Permit;
import io.fairq.PermitState;
import io.fairq.Request;
import io.fairq.spring.CurrentPermit;
import io.fairq.spring.FairLimit;
import io.fairq.spring.Limiters;
import io.fairq.spring.mvc.FairSse;
import io.fairq.testing.Checks;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** What works in Spring MVC only. */
@RestController
class MvcEndpoints {
    private final Source source;
    private final Limiters limiters;
    private final FairSse sse;

    MvcEndpoints(Source source, Limiters limiters, FairSse sse) {
        this.source = source;
        this.limiters = limiters;
        this.sse = sse;
    }

    @GetMapping("/emitter")
    @FairLimit("one")
    public SseEmitter emitter() {
        return sent(new SseEmitter(0L));
    }

    @GetMapping("/body-emitter")
    @FairLimit("one")
    public ResponseEntity<ResponseBodyEmitter> bodyEmitter() {
        return ResponseEntity.ok().header("X-Test", "yes").body(sent(new ResponseBodyEmitter(0L)));
    }

    /** A request that the container ends. */
    @GetMapping("/emitter-timeout")
    @FairLimit("one")
    public SseEmitter timeout() {
        return new SseEmitter(50L);
    }

    @GetMapping("/emitter-short")
    @FairLimit("short")
    public SseEmitter shortEmitter() {
        return new SseEmitter(0L);
    }

    @GetMapping("/body-short")
    @FairLimit("short")
    public StreamingResponseBody shortBody() {
        Permit permit = CurrentPermit.find().orElseThrow();
        return out -> {
            Checks.eventually("it is lost", () -> permit.state() == PermitState.LOST);
            out.write(1);
        };
    }

    @GetMapping("/body")
    @FairLimit("one")
    public StreamingResponseBody body() {
        return written();
    }

    @GetMapping("/entity-body")
    @FairLimit("one")
    public ResponseEntity<StreamingResponseBody> entityBody() {
        return ResponseEntity.ok().contentType(MediaType.TEXT_PLAIN).header("X-Test", "yes").body(written());
    }

    @GetMapping("/sse")
    public SseEmitter sse(@RequestParam(defaultValue = "one") String limiter) {
        return sse.sse(limiters.get(limiter), Request.ofDefaults(), (events, permit) -> {
            source.readers.incrementAndGet();
            Source.Reader reader = source.reader();
            for (String item = reader.take(); item != null; item = reader.take()) {
                events.send(FairSse.event("item", item));
            }
        });
    }

    private StreamingResponseBody written() {
        return out -> {
            Source.Reader reader = source.reader();
            for (String item = reader.take(); item != null; item = reader.take()) {
                out.write((item + "\n").getBytes(StandardCharsets.UTF_8));
                out.flush();
            }
        };
    }

    private <E extends ResponseBodyEmitter> E sent(E emitter) {
        new Thread(() -> {
                    try {
                        Source.Reader reader = source.reader();
                        for (String item = reader.take(); item != null; item = reader.take()) {
                            emitter.send(item + "\n");
                        }
                        emitter.complete();
                    } catch (IOException gone) {
                        // the container says so, too
                    } catch (RuntimeException error) {
                        emitter.completeWithError(error);
                    }
                })
                .start();
        return emitter;
    }
}
