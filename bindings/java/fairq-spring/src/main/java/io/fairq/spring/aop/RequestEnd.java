package io.fairq.spring.aop;

/** Tells of the end of the web request that the current thread works for. */
@FunctionalInterface
public interface RequestEnd {
    /**
     * Calls back when the request is over for whatever reason: complete, failed, timed out. Never, where there is none.
     *
     * @param callback what to do; may be called more than once
     */
    void whenOver(Runnable callback);
}
