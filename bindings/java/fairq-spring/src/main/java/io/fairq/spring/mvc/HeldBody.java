package io.fairq.spring.mvc;

import io.fairq.Permit;
import io.fairq.PermitLostException;
import io.fairq.PermitState;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.atomic.AtomicBoolean;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** Holds a permit until the body has been written, however that ends; or until it is sure that nobody will write it. */
final class HeldBody implements StreamingResponseBody {
    private final Permit permit;
    private final StreamingResponseBody body;
    private final AtomicBoolean begun = new AtomicBoolean();

    HeldBody(Permit permit, StreamingResponseBody body) {
        this.permit = permit;
        this.body = body;
    }

    @Override
    public void writeTo(OutputStream out) throws IOException {
        if (!begun.compareAndSet(false, true)) {
            throw new IllegalStateException("the request is over, and the permit given back");
        }
        try (permit) {
            body.writeTo(new Guarded(out, permit));
        }
    }

    /** The request is over. A body that is being written still holds its permit, since what it is written from still works. */
    void giveUp() {
        if (begun.compareAndSet(false, true)) {
            permit.close();
        }
    }

    /** Stops the body when the permit is lost. */
    private static final class Guarded extends FilterOutputStream {
        private final Permit permit;

        Guarded(OutputStream out, Permit permit) {
            super(out);
            this.permit = permit;
        }

        @Override
        public void write(int one) throws IOException {
            check();
            out.write(one);
        }

        @Override
        public void write(byte[] bytes, int from, int length) throws IOException {
            check();
            out.write(bytes, from, length);
        }

        private void check() {
            if (permit.state() == PermitState.LOST) {
                throw new PermitLostException("the permit was lost while the response was written", false, null);
            }
        }
    }
}
