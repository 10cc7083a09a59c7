package io.fairq.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.fairq.Permit;
import io.fairq.testing.Checks;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.web.embedded.netty.NettyReactiveWebServerFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** Spring WebFlux, in Netty. */
@SpringBootTest(
        webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
        properties = {
            "spring.main.web-application-type=reactive",
            "fairq.url=memory:webflux",
            "fairq.sse.keep-alive=1s",
            "fairq.limiters.one.limit=1",
            "fairq.limiters.one.max-queue=2",
            "fairq.limiters.one.max-wait=10m", // longer than any test: nobody leaves by himself
            "fairq.limiters.brief.limit=1",
            "fairq.limiters.brief.max-wait=1s",
        })
class WebFluxTest extends WebTest {
    @Configuration
    @EnableAutoConfiguration
    @Import(Endpoints.class)
    static class Application {
        /** There are others in the class path, which come before it. */
        @Bean
        NettyReactiveWebServerFactory netty() {
            return new NettyReactiveWebServerFactory();
        }

        @Bean
        Source source() {
            return new Source();
        }
    }

    @Override
    String[] values() {
        return new String[] {"/stage", "/mono"};
    }

    @Override
    String[] streams() {
        return new String[] {"/flux", "/entity-flux", "/sse-flux"};
    }

    @Override
    String[] events() {
        return new String[] {"/sse-flux"};
    }

    /** A thread that waits would keep all others of its event loop waiting. */
    @Test
    void anEventLoopIsNotKeptWaiting() throws Exception {
        assertThat(Checks.get(get("/plain", "*/*")).statusCode()).isEqualTo(500);
    }

    /** Netty tells of it before anything is written, and WebFlux not always. */
    @ParameterizedTest
    @MethodSource({"values", "streams"})
    void whoGoesBeforeAnythingWasSentLeavesTheLine(String path) throws Exception {
        try (Permit held = one.acquire()) {
            for (int round = 0; round < ROUNDS; round++) {
                try (Socket client = new Socket("localhost", port)) {
                    client.getOutputStream()
                            .write(("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
                    Checks.inLine(one, 1);
                }
                Checks.inLine(one, 0);
            }
            assertThat(held.isValid()).isTrue();
        }
    }
}
