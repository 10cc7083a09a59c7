package io.fairq.spring.mvc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;

/** Where the servlet container says nothing. */
class WatchedResponseTest {
    private final MockHttpServletRequest request = new MockHttpServletRequest();
    private final AtomicInteger told = new AtomicInteger();

    private static final class Gone extends MockHttpServletResponse {
        @Override
        public ServletOutputStream getOutputStream() {
            return new ServletOutputStream() {
                @Override
                public boolean isReady() {
                    return true;
                }

                @Override
                public void setWriteListener(WriteListener listener) {}

                @Override
                public void write(int one) throws IOException {
                    throw new IOException("broken pipe");
                }

                @Override
                public void flush() throws IOException {
                    throw new IOException("broken pipe");
                }
            };
        }
    }

    private void serve(MockHttpServletResponse response, FilterChain chain) throws Exception {
        new WatchedResponse.Filter().doFilter(request, response, chain);
    }

    @Test
    void whoIsGoneIsNoticedByWhoeverWrites() throws Exception {
        serve(new Gone(), (request, response) -> {
            WatchedResponse.whenBroken(request, told::incrementAndGet);
            ServletOutputStream out = response.getOutputStream();
            assertThat(told).hasValue(0);
            assertThatThrownBy(() -> out.write(new byte[10])).hasMessage("broken pipe");
            assertThat(told).hasValue(1);
            assertThatThrownBy(out::flush).hasMessage("broken pipe");
            assertThat(told).as("once is enough").hasValue(1);
            WatchedResponse.whenBroken(request, told::incrementAndGet);
            assertThat(told).as("whoever asks later").hasValue(2);
        });
    }

    @Test
    void whatIsWrittenArrives() throws Exception {
        MockHttpServletResponse there = new MockHttpServletResponse();
        serve(there, (request, response) -> {
            WatchedResponse.whenBroken(request, told::incrementAndGet);
            response.getOutputStream().write('a');
            response.getOutputStream().print("bc");
            response.flushBuffer();
        });
        assertThat(there.getContentAsString()).isEqualTo("abc");
        assertThat(told).hasValue(0);
    }
}
