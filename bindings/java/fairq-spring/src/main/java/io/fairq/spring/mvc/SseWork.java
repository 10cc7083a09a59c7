package io.fairq.spring.mvc;

import io.fairq.Permit;

/** What is done under a permit; see {@link FairSse#sse}. */
@FunctionalInterface
public interface SseWork {
    /**
     * Sends the answer. It is complete when this returns.
     *
     * @param events where to; {@link FairSse#event} makes them
     * @param permit the permit, which is given back for you
     * @throws Exception what has gone wrong
     */
    void run(org.springframework.web.servlet.mvc.method.annotation.SseEmitter events, Permit permit) throws Exception;
}
