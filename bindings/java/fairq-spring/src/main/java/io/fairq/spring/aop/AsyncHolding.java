package io.fairq.spring.aop;

import org.springframework.core.ResolvableType;

/** Holds permits for methods that return at once what ends later; it waits in line without a thread. */
public interface AsyncHolding {
    /**
     * Whether it is for methods that are declared to return this.
     *
     * @param returned the declared type
     * @return true if so
     */
    boolean accepts(ResolvableType returned);

    /**
     * Makes the call.
     *
     * @param call a call of such a method
     * @return what its caller gets
     * @throws Throwable what its caller gets instead
     */
    Object call(LimitedCall call) throws Throwable;
}
