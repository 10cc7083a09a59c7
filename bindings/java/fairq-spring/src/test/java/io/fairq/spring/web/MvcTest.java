package io.fairq.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.fairq.Permit;
import io.fairq.testing.Checks;
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
            "fairq.limiters.one.max-wait=10m", // longer than any test: nobody leaves by himself
            "fairq.limiters.brief.limit=1",
            "fairq.limiters.brief.max-wait=1s",
            "fairq.limiters.short.limit=1",
            "fairq.limiters.short.max-hold=300ms",
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

    /** It is interrupted, wherever it waits, and its client is told. */
    @Test
    void workThatHasLostItsPermit() throws Exception {
        int interrupts = source.interrupts.get();
        var response = get("/sse?limiter=short", EVENTS);
        source.put("first");
        try (var lines = lines(Checks.get(response))) {
            lineWith(lines, "event: item");
            lineWith(lines, "event: rejected");
            assertThat(lines.readLine()).startsWith("data: {\"error\": \"permit_lost\"");
            while (lines.readLine() != null) {}
        }
        assertThat(source.interrupts.get()).isGreaterThan(interrupts);
        Checks.idle(limiters.get("short"));
    }

    /** The emitter takes nothing more, and its response ends. */
    @Test
    void anEmitterThatHasLostItsPermit() throws Exception {
        var response = get("/emitter-short", "*/*");
        assertThat(Checks.get(response).statusCode()).isEqualTo(503);
    }

    /** Its stream fails with the next write. */
    @Test
    void aBodyThatHasLostItsPermit() throws Exception {
        var response = get("/body-short", "*/*");
        assertThat(Checks.get(response).statusCode()).isEqualTo(503);
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
