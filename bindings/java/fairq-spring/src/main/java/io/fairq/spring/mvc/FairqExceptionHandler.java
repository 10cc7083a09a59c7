package io.fairq.spring.mvc;

import io.fairq.FairqException;
import io.fairq.spring.Refusal;
import io.fairq.spring.WebRefusal;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ControllerAdvice;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.context.request.WebRequest;

/**
 * Makes responses of refusals; see {@link Refusal}. Handlers in the controller itself, and advices with a lower order, come before
 * it.
 */
@ControllerAdvice
@Order(0)
public class FairqExceptionHandler {
    /** Made by Spring. */
    public FairqExceptionHandler() {}

    /**
     * Makes a response.
     *
     * @param error why there is no permit; a mistake in the program is thrown again
     * @param request whose client accepts JSON, or events
     * @return the response
     */
    @ExceptionHandler(FairqException.class)
    public ResponseEntity<byte[]> handle(FairqException error, WebRequest request) {
        Refusal refusal = Refusal.of(error).orElseThrow(() -> error);
        return WebRefusal.response(refusal, request.getHeader(HttpHeaders.ACCEPT));
    }
}
