package io.fairq.spring.aop;

import java.lang.reflect.Method;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.springframework.core.ResolvableType;

/** What ends later than the method that returned it, and cannot be followed to its end: better no permit than one given back early. */
final class LateEnds {
    private static final String[] BY_NAME = {
        "org.reactivestreams.Publisher",
        "java.util.concurrent.Flow$Publisher",
        "org.springframework.web.context.request.async.DeferredResult",
        "org.springframework.web.context.request.async.WebAsyncTask",
        "io.reactivex.rxjava3.core.SingleSource",
        "kotlinx.coroutines.flow.Flow",
    };
    private static final String CONTINUATION = "kotlin.coroutines.Continuation";

    private LateEnds() {}

    /** Why no method with this signature can be limited. */
    static Optional<String> refusal(Method method, ResolvableType returned) {
        Class<?>[] parameters = method.getParameterTypes();
        if (parameters.length > 0 && parameters[parameters.length - 1].getName().equals(CONTINUATION)) {
            return Optional.of("it suspends, and its end cannot be followed");
        }
        return Stream.of(returned, returned.getGeneric(0))
                .map(ResolvableType::resolve)
                .filter(type -> type != null && isLate(type))
                .findFirst()
                .map(type -> "the end of what it returns, a " + type.getName() + ", cannot be followed");
    }

    /** For what a method has returned that was not declared so. */
    static void check(Object value) {
        if (value != null && isLate(value.getClass())) {
            throw new IllegalStateException("a method with @FairLimit has returned a " + value.getClass().getName()
                    + ", which ends later: declare it as its return type");
        }
    }

    private static boolean isLate(Class<?> type) {
        return Future.class.isAssignableFrom(type) || Callable.class.isAssignableFrom(type) || isNamed(type);
    }

    /** Whether it is one of those, which need not be in the class path. */
    private static boolean isNamed(Class<?> type) {
        if (type == null) {
            return false;
        }
        for (String name : BY_NAME) {
            if (type.getName().equals(name)) {
                return true;
            }
        }
        return isNamed(type.getSuperclass()) || Stream.of(type.getInterfaces()).anyMatch(LateEnds::isNamed);
    }
}
