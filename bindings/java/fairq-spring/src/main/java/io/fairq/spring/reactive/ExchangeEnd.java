package io.fairq.spring.reactive;

import java.util.concurrent.CompletableFuture;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;

/**
 * Tells the streams of an exchange when that is over. WebFlux does not cancel a body whose writing could not begin, as when the
 * client has gone just then: it would wait in line, and hold a permit, for nobody.
 */
final class ExchangeEnd implements WebFilter {
    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        return Mono.defer(() -> {
            CompletableFuture<Throwable> over = new CompletableFuture<>();
            return chain.filter(exchange)
                    .doFinally(signal -> over.complete(Trouble.overBeforeAnAnswer()))
                    .contextWrite(context -> Trouble.over(context, over));
        });
    }
}
