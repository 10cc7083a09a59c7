package io.fairq.spring.mvc;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.springframework.web.filter.OncePerRequestFilter;

/**
 * Notices that nobody is there to write to. Servlet containers are to tell of that, and do not always: Tomcat forgets a response
 * whose writing failed in a thread of the program while one of its own saw the end of the connection, and other containers say
 * nothing at all. A permit that waited for their word would never come back.
 */
final class WatchedResponse extends HttpServletResponseWrapper {
    private static final String ATTRIBUTE = WatchedResponse.class.getName();

    private final CompletableFuture<Void> broken = new CompletableFuture<>();
    private ServletOutputStream out;

    private WatchedResponse(HttpServletResponse response) {
        super(response);
    }

    /** Calls back when writing has failed; by the thread that has tried, and never where the filter is not in the chain. */
    static void whenBroken(ServletRequest request, Runnable callback) {
        if (request.getAttribute(ATTRIBUTE) instanceof WatchedResponse response) {
            response.broken.thenRun(callback);
        }
    }

    /** Puts it before the response. */
    static final class Filter extends OncePerRequestFilter {
        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            WatchedResponse watched = new WatchedResponse(response);
            request.setAttribute(ATTRIBUTE, watched);
            chain.doFilter(request, watched);
        }
    }

    @Override
    public synchronized ServletOutputStream getOutputStream() throws IOException {
        if (out == null) {
            out = new Watched(super.getOutputStream());
        }
        return out;
    }

    @Override
    public void flushBuffer() throws IOException {
        watch(super::flushBuffer);
    }

    /** Something that writes. */
    private interface Writing {
        void write() throws IOException;
    }

    private void watch(Writing writing) throws IOException {
        try {
            writing.write();
        } catch (IOException error) {
            broken.complete(null);
            throw error;
        }
    }

    private final class Watched extends ServletOutputStream {
        private final ServletOutputStream out;

        Watched(ServletOutputStream out) {
            this.out = out;
        }

        @Override
        public boolean isReady() {
            return out.isReady();
        }

        @Override
        public void setWriteListener(WriteListener listener) {
            out.setWriteListener(listener);
        }

        @Override
        public void write(int one) throws IOException {
            watch(() -> out.write(one));
        }

        @Override
        public void write(byte[] bytes, int from, int length) throws IOException {
            watch(() -> out.write(bytes, from, length));
        }

        @Override
        public void flush() throws IOException {
            watch(out::flush);
        }

        @Override
        public void close() throws IOException {
            watch(out::close);
        }
    }
}
