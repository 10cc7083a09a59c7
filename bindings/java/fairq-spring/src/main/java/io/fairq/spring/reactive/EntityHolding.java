package io.fairq.spring.reactive;

import io.fairq.spring.aop.AsyncHolding;
import io.fairq.spring.aop.LimitedCall;
import org.reactivestreams.Publisher;
import org.springframework.core.ResolvableType;
import org.springframework.http.HttpEntity;
import org.springframework.http.ResponseEntity;
import org.springframework.util.ClassUtils;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Holds permits for the bodies of responses. Status and headers come from the method, which hence is called at once; the permit is for
 * the body, which is refused before the status has gone out.
 */
final class EntityHolding implements AsyncHolding {
    private static final boolean IS_THERE =
            ClassUtils.isPresent("org.springframework.http.HttpEntity", EntityHolding.class.getClassLoader());

    /** Whether it is a response with a publisher as its body. */
    static boolean isStreaming(ResolvableType type) {
        return IS_THERE
                && HttpEntity.class.isAssignableFrom(type.resolve(Object.class))
                && Publisher.class.isAssignableFrom(type.getGeneric(0).resolve(Object.class));
    }

    @Override
    public boolean accepts(ResolvableType returned) {
        Class<?> body = returned.getGeneric(0).resolve(Object.class);
        return isStreaming(returned)
                && returned.resolve() == ResponseEntity.class
                && (body == Flux.class || body == Mono.class || body == Publisher.class);
    }

    @Override
    public Object call(LimitedCall call) throws Exception {
        ResponseEntity<?> entity = (ResponseEntity<?>) call.proceed();
        if (entity == null || entity.getBody() == null) {
            return entity;
        }
        return new ResponseEntity<Object>(held(call, entity.getBody()), entity.getHeaders(), entity.getStatusCode());
    }

    private static Publisher<?> held(LimitedCall call, Object body) {
        return body instanceof Mono<?> mono
                ? PublisherHolding.mono(call, permit -> mono)
                : PublisherHolding.flux(call, permit -> (Publisher<?>) body);
    }
}
