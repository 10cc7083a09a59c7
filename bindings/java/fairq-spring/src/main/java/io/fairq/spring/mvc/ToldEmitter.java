package io.fairq.spring.mvc;

import io.fairq.PermitLostException;
import java.io.IOException;
import java.util.Set;
import org.springframework.http.server.ServerHttpResponse;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/** An emitter that knows whether it has sent anything, whether its client has gone, and whether it may go on. */
final class ToldEmitter extends SseEmitter {
    private volatile boolean told;
    private volatile boolean gone;
    private volatile boolean closing;
    private volatile PermitLostException lost;

    ToldEmitter() {
        super(0L); // the limiter has the limits; what the container has by default is meant for other requests
    }

    @Override
    protected void extendResponse(ServerHttpResponse response) {
        super.extendResponse(response);
        response.getHeaders().setCacheControl("no-cache");
        response.getHeaders().set("X-Accel-Buffering", "no"); // nginx would collect the events
    }

    /** A way of the class above to send something. */
    private interface Sending {
        void send() throws IOException;
    }

    // The two that all others come to.

    @Override
    public void send(SseEventBuilder event) throws IOException {
        watched(() -> super.send(event));
    }

    @Override
    public void send(Set<DataWithMediaType> items) throws IOException {
        watched(() -> super.send(items));
    }

    private void watched(Sending sending) throws IOException {
        if (lost != null) {
            throw lost;
        }
        try {
            sending.send();
            told = true;
        } catch (IOException error) {
            gone = true;
            throw error;
        }
    }

    @Override
    public void complete() {
        closing = true;
        super.complete();
    }

    @Override
    public void completeWithError(Throwable error) {
        closing = true;
        super.completeWithError(error);
    }

    /** Something was sent, and with it the status 200. */
    boolean told() {
        return told;
    }

    boolean gone() {
        return gone;
    }

    void markGone() {
        gone = true;
    }

    /** It was completed from this side. */
    boolean closing() {
        return closing;
    }

    /** From now on it takes no events. */
    void lose(PermitLostException why) {
        lost = why;
    }

    /** Takes events again, for a last word. */
    PermitLostException takeLost() {
        PermitLostException why = lost;
        lost = null;
        return why;
    }
}
