package io.fairq.spring.web;

import io.fairq.Request;
import io.fairq.spring.FairLimit;
import io.fairq.spring.Limiters;
import io.fairq.spring.reactive.FairSseFlux;
import java.util.concurrent.CompletableFuture;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.http.codec.ServerSentEvent;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What works in Spring MVC and in WebFlux. */
@RestController
class Endpoints {
    private final Source source;
    private final Limiters limiters;
    private final FairSseFlux events;

    Endpoints(Source source, Limiters limiters, FairSseFlux events) {
        this.source = source;
        this.limiters = limiters;
        this.events = events;
    }

    @GetMapping("/plain")
    @FairLimit(value = "one", label = "plain #{#who}")
    public String plain(@RequestParam(defaultValue = "me") String who) {
        return source.reader().take();
    }

    @GetMapping("/stage")
    @FairLimit("one")
    public CompletableFuture<String> stage() {
        return CompletableFuture.supplyAsync(source.reader()::take, task -> new Thread(task).start());
    }

    @GetMapping("/mono")
    @FairLimit("one")
    public Mono<String> mono() {
        return source.flux().takeUntil(item -> true).last();
    }

    @GetMapping(value = "/flux", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
    @FairLimit("one")
    public Flux<String> flux() {
        return source.flux();
    }

    @GetMapping("/entity-flux")
    @FairLimit("one")
    public ResponseEntity<Flux<String>> entity() {
        return ResponseEntity.ok().contentType(MediaType.TEXT_EVENT_STREAM).header("X-Test", "yes").body(source.flux());
    }

    @GetMapping(value = "/sse-flux", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
    public Flux<ServerSentEvent<String>> sse(@RequestParam(defaultValue = "one") String limiter) {
        return events.sse(limiters.get(limiter), Request.ofDefaults(), permit -> source.flux()
                .map(item -> FairSseFlux.event("item", item)));
    }

    @GetMapping("/mistake")
    public String mistake() {
        Request.ofDefaults().cost(0);
        return "";
    }

    @GetMapping("/impossible")
    @FairLimit(value = "one", cost = 7)
    public Mono<String> impossible() {
        return Mono.just("");
    }

    @GetMapping("/undeclared")
    @FairLimit("nobody:declared")
    public Mono<String> undeclared() {
        return Mono.just("");
    }
}
