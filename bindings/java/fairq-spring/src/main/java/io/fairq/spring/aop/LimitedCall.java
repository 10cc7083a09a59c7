package io.fairq.spring.aop;

import io.fairq.CancelledException;
import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.spring.CurrentPermit;
import java.lang.reflect.UndeclaredThrowableException;
import java.util.Optional;
import java.util.function.BiFunction;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.core.ResolvableType;

/** One call of a limited method, which may be made now or later, or, by each who subscribes, several times. */
public final class LimitedCall {
    private final ProxyMethodInvocation invocation;
    private final Limiter limiter;
    private final Request request;
    private final RequestEnd end;
    private final BiFunction<Permit, Object, Optional<Object>> values;

    LimitedCall(
            ProxyMethodInvocation invocation,
            Limiter limiter,
            Request request,
            RequestEnd end,
            BiFunction<Permit, Object, Optional<Object>> values) {
        this.invocation = invocation;
        this.limiter = limiter;
        this.request = request;
        this.end = end;
        this.values = values;
    }

    /**
     * The limiter.
     *
     * @return the one of the annotation
     */
    public Limiter limiter() {
        return limiter;
    }

    /**
     * What to ask it for.
     *
     * @return the request
     */
    public Request request() {
        return request;
    }

    /**
     * The web request that it is called for, if any.
     *
     * @return tells of its end
     */
    public RequestEnd end() {
        return end;
    }

    /**
     * What the method is declared to return.
     *
     * @return the type
     */
    public ResolvableType returned() {
        Object target = invocation.getThis();
        return target == null
                ? ResolvableType.forMethodReturnType(invocation.getMethod())
                : ResolvableType.forMethodReturnType(invocation.getMethod(), target.getClass());
    }

    /** Waits in line, in this thread. */
    Permit acquire() {
        EventLoops.check(invocation.getMethod());
        try {
            return limiter.acquire(request);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new CancelledException(interrupted.getMessage(), false, null);
        }
    }

    /**
     * Calls the method, with its permit as the current one.
     *
     * @param permit the permit; it stays the caller's
     * @return what the method returns
     * @throws Exception what it throws
     */
    public Object proceed(Permit permit) throws Exception {
        return CurrentPermit.with(permit, this::proceed);
    }

    /**
     * Calls the method.
     *
     * @return what the method returns
     * @throws Exception what it throws
     */
    public Object proceed() throws Exception {
        try {
            return invocation.invocableClone().proceed(); // an invocation proceeds only once
        } catch (Exception | Error error) {
            throw error;
        } catch (Throwable other) {
            throw new UndeclaredThrowableException(other);
        }
    }

    /**
     * Has the permit held by what the method returned, if that ends later.
     *
     * @param permit the permit
     * @param value what the method returned
     * @return what to return instead; empty: it is over, and the permit still the caller's
     */
    Optional<Object> hold(Permit permit, Object value) {
        return values.apply(permit, value);
    }
}
