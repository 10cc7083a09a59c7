package io.fairq.spring.aop;

import java.lang.reflect.Method;
import org.springframework.util.ClassUtils;
import reactor.core.scheduler.Schedulers;

/** Threads that must not wait. */
final class EventLoops {
    private static final boolean ARE_THERE =
            ClassUtils.isPresent("reactor.core.scheduler.Schedulers", EventLoops.class.getClassLoader());

    private EventLoops() {}

    static void check(Method method) {
        if (ARE_THERE && Reactor.isNonBlocking()) {
            throw new IllegalStateException(method + " would keep an event loop waiting in line: let it return a Mono or a Flux, or "
                    + "call it in a thread that may block");
        }
    }

    private static final class Reactor {
        static boolean isNonBlocking() {
            return Schedulers.isInNonBlockingThread();
        }
    }
}
