package io.fairq.spring.reactive;

import io.fairq.FairqException;
import io.fairq.spring.Refusal;
import io.fairq.spring.WebRefusal;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ControllerAdvice;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.server.ServerWebExchange;

/**
 * Makes responses of refusals; see {@link Refusal}. Handlers in the controller itself, and advices with a lower order, come before
 * it.
 */
@ControllerAdvice
@Order(0)
public class FairqReactiveExceptionHandler {
    /** Made by Spring. */
    public FairqReactiveExceptionHandler() {}

    /**
     * Makes a response.
     *
     * @param error why there is no permit; a mistake in the program is thrown again
     * @param exchange whose client accepts JSON, or events
     * @return the response
     */
    @ExceptionHandler(FairqException.class)
    public ResponseEntity<byte[]> handle(FairqException error, ServerWebExchange exchange) {
        Refusal refusal = Refusal.of(error).orElseThrow(() -> error);
        String accept = String.join(",", exchange.getRequest().getHeaders().getOrEmpty(HttpHeaders.ACCEPT));
        return WebRefusal.response(refusal, accept);
    }
}
