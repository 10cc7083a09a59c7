package io.fairq.spring.aop;

import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.spring.Limiters;
import java.lang.reflect.Method;
import java.util.Optional;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.ObjectProvider;

/** Lets calls of limited methods through, one permit each. */
final class FairLimitInterceptor implements MethodInterceptor {
    private static final RequestEnd NO_REQUEST = callback -> {};

    private final LimitedMethods methods;
    private final ObjectProvider<Limiters> limiters;
    private final ObjectProvider<ValueHolding> values;
    private final ObjectProvider<RequestEnd> end;

    FairLimitInterceptor(
            LimitedMethods methods,
            ObjectProvider<Limiters> limiters,
            ObjectProvider<ValueHolding> values,
            ObjectProvider<RequestEnd> end) {
        this.methods = methods;
        this.limiters = limiters;
        this.values = values;
        this.end = end;
    }

    @Override
    public Object invoke(MethodInvocation invocation) throws Throwable {
        Object target = invocation.getThis();
        Class<?> type = target == null ? invocation.getMethod().getDeclaringClass() : AopUtils.getTargetClass(target);
        Optional<LimitedMethod> found = methods.find(invocation.getMethod(), type);
        if (found.isEmpty()) {
            return invocation.proceed();
        }
        LimitedMethod method = found.get();
        LimitedCall call = new LimitedCall(
                (ProxyMethodInvocation) invocation,
                limiters.getObject().get(method.limiter()),
                labelled(method, invocation, type),
                end.getIfAvailable(() -> NO_REQUEST),
                this::hold);
        return method.async() == null ? here(call) : method.async().call(call);
    }

    private Request labelled(LimitedMethod method, MethodInvocation invocation, Class<?> type) {
        if (method.label() == null) {
            return method.request();
        }
        Method specific = AopUtils.getMostSpecificMethod(invocation.getMethod(), type);
        return method.request()
                .label(methods.labels()
                        .evaluate(method.label(), invocation.getThis(), specific, invocation.getArguments()));
    }

    /** The thread waits; then the permit is held by the method, and perhaps by what it returns. */
    private static Object here(LimitedCall call) throws Exception {
        Permit permit = call.acquire();
        Optional<Object> held = Optional.empty();
        try {
            Object value = call.proceed(permit);
            held = call.hold(permit, value);
            return held.orElse(value);
        } finally {
            if (held.isEmpty()) {
                permit.close();
            }
        }
    }

    private Optional<Object> hold(Permit permit, Object value) {
        if (value == null) {
            return Optional.empty();
        }
        for (ValueHolding holding : values.orderedStream().toList()) {
            Object held = holding.hold(permit, value);
            if (held != null) {
                return Optional.of(held);
            }
        }
        LateEnds.check(value);
        return Optional.empty();
    }
}
