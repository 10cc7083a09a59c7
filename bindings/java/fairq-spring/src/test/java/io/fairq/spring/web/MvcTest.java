package io.fairq.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.fairq.Permit;
import io.fairq.spring.Checks;
import java.io.InputStream;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** Spring MVC, in Tomcat. */
@SpringBootTest(
        webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
        properties = {
            "spring.main.web-application-type=servlet",
            "fairq.url=memory:mvc",
            "fairq.sse.keep-alive=1s",
            "fairq.limiters.one.limit=1",
            "fairq.limiters.one.max-queue=2",
            "fairq.limiters.one.max-wait=60s",
            "fairq.limiters.brief.limit=1",
            "fairq.limiters.brief.max-wait=1s",
            "spring.mvc.async.request-timeout=60s",
        })
class MvcTest extends WebTest {
    @Configuration
    @EnableAutoConfiguration
    @Import({Endpoints.class, MvcEndpoints.class})
    static class Application {
        @Bean
        Source source() {
            return new Source();
        }
    }

    @Override
    String[] values() {
        return new String[] {"/plain", "/stage", "/mono"};
    }

    @Override
    String[] streams() {
        return new String[] {
            "/flux", "/entity-flux", "/sse-flux", "/emitter", "/body-emitter", "/body", "/entity-body", "/sse"
        };
    }

    @Override
    String[] events() {
        return new String[] {"/sse", "/sse-flux"};
    }

    @Test
    void anEmitterThatTimesOut() throws Exception {
        var response = get("/emitter-timeout", "*/*");
        Checks.used(one, 1);
        Checks.used(one, 0);
        response.handle((answer, error) -> null).join();
    }

    @Test
    void headersOfAnEventStream() throws Exception {
        try (Permit held = one.acquire()) {
            HttpResponse<InputStream> response = Checks.get(get("/sse", EVENTS));
            assertThat(response.headers().firstValue("X-Accel-Buffering")).contains("no");
            assertThat(response.headers().firstValue("Cache-Control")).contains("no-cache");
            assertThat(response.headers().firstValue("Content-Type").orElseThrow()).startsWith(EVENTS);
            response.body().close();
            assertThat(held.isValid()).isTrue();
            Checks.inLine(one, 0);
        }
    }
}
