package io.fairq.spring.mvc;

import io.fairq.Permit;
import io.fairq.spring.aop.RequestEnd;
import io.fairq.spring.aop.ValueHolding;
import org.springframework.http.ResponseEntity;
import org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** Holds permits for responses that are written after the method has returned. */
final class ResponseHolding implements ValueHolding {
    private final RequestEnd end;

    ResponseHolding(RequestEnd end) {
        this.end = end;
    }

    @Override
    public Object hold(Permit permit, Object value) {
        if (value instanceof ResponseBodyEmitter emitter) {
            return held(permit, emitter);
        }
        if (value instanceof StreamingResponseBody body) {
            return held(permit, body);
        }
        if (value instanceof ResponseEntity<?> entity && entity.getBody() != null) {
            Object body = hold(permit, entity.getBody());
            return body == null ? null : new ResponseEntity<>(body, entity.getHeaders(), entity.getStatusCode());
        }
        return null;
    }

    private ResponseBodyEmitter held(Permit permit, ResponseBodyEmitter emitter) {
        permit.onLost(emitter::completeWithError);
        // Also after an error, a timeout, and when the client has gone.
        emitter.onCompletion(permit::close);
        end.whenOver(permit::close); // an emitter that is complete before Spring MVC has it tells nobody
        return emitter;
    }

    private StreamingResponseBody held(Permit permit, StreamingResponseBody body) {
        HeldBody held = new HeldBody(permit, body);
        end.whenOver(held::giveUp);
        return held;
    }
}
