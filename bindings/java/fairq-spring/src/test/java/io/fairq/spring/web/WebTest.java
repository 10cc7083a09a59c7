package io.fairq.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.spring.Limiters;
import io.fairq.testing.Checks;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.web.server.LocalServerPort;

/** What holds for Spring MVC and WebFlux alike. A limiter of one, a line of two. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Timeout(120)
abstract class WebTest {
    static final String EVENTS = "text/event-stream";
    /** Clients that go meet the server in the middle of something, but not each time. */
    static final int ROUNDS = 30;

    @LocalServerPort
    int port;

    @Autowired
    Limiters limiters;

    @Autowired
    Source source;

    final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    Limiter one;

    /** Paths whose response is one value, and paths that stream. */
    abstract String[] values();

    abstract String[] streams();

    @BeforeEach
    void clear() {
        source.clear();
        one = limiters.get("one");
    }

    @AfterEach
    void nobodyIsLeft() throws Exception {
        one.acquire(Request.ofMaxWait(Checks.PATIENCE)).close(); // so that it exists
        Checks.idle(one);
    }

    CompletableFuture<HttpResponse<InputStream>> get(String path, String accept) {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + path))
                .header("Accept", accept)
                .build();
        return http.sendAsync(request, HttpResponse.BodyHandlers.ofInputStream());
    }

    static String text(HttpResponse<InputStream> response) throws Exception {
        try (InputStream body = response.body()) {
            return new String(body.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    static BufferedReader lines(HttpResponse<InputStream> response) {
        return new BufferedReader(new InputStreamReader(response.body(), StandardCharsets.UTF_8));
    }

    static String lineWith(BufferedReader lines, String what) throws Exception {
        String line = lines.readLine();
        while (line != null && !line.contains(what)) {
            line = lines.readLine();
        }
        assertThat(line).as("a line with " + what).isNotNull();
        return line;
    }

    // --- held until the end

    @ParameterizedTest
    @MethodSource("values")
    void aValueHoldsUntilItIsThere(String path) throws Exception {
        var response = get(path, "*/*");
        Checks.used(one, 1);
        assertThat(response).isNotDone();
        source.put("value");
        assertThat(Checks.get(response).statusCode()).isEqualTo(200);
        assertThat(text(response.join())).contains("value");
        Checks.used(one, 0);
    }

    @ParameterizedTest
    @MethodSource("streams")
    void aStreamHoldsUntilItsEnd(String path) throws Exception {
        var response = get(path, "*/*");
        Checks.used(one, 1);
        source.put("first");
        try (BufferedReader lines = lines(Checks.get(response))) {
            lineWith(lines, "first");
            assertThat(one.status().used()).as("after the first bytes").isOne();
            source.put("second");
            lineWith(lines, "second");
            assertThat(one.status().used()).isOne();
            source.put(Source.END);
            while (lines.readLine() != null) {}
        }
        assertThat(response.join().statusCode()).isEqualTo(200);
        if (path.contains("entity")) {
            assertThat(response.join().headers().firstValue("X-Test")).contains("yes");
        }
        Checks.used(one, 0);
    }

    @ParameterizedTest
    @MethodSource({"values", "streams"})
    void aFailureGivesBack(String path) throws Exception {
        var response = get(path, "*/*");
        Checks.used(one, 1);
        source.put(Source.FAIL);
        response.handle((answer, error) -> null).join();
        Checks.used(one, 0);
    }

    /** The client goes in the middle; the server notices with what it sends then. */
    @ParameterizedTest
    @MethodSource("streams")
    void aClientThatGoesGivesBack(String path) throws Exception {
        for (int round = 0; round < ROUNDS; round++) {
            var response = get(path, "*/*");
            source.put("first");
            try (BufferedReader lines = lines(Checks.get(response))) {
                lineWith(lines, "first");
                assertThat(one.status().used()).isOne();
            }
            Checks.eventually("it is given back", () -> {
                source.put("more");
                return one.status().used() == 0;
            });
            source.clear();
        }
    }

    @ParameterizedTest
    @MethodSource({"values", "streams"})
    void whoWaitsIsNext(String path) throws Exception {
        Permit held = one.acquire();
        var response = get(path, "*/*");
        Checks.inLine(one, 1);
        held.close();
        Checks.used(one, 1);
        source.put("value");
        source.put(Source.END);
        assertThat(Checks.get(response).statusCode()).isEqualTo(200);
        assertThat(text(response.join())).contains("value");
    }

    // --- refused

    /** One holds, two wait: the line is full. */
    private final class Full implements AutoCloseable {
        private final List<CompletableFuture<Permit>> all;

        Full() {
            all = List.of(one.acquireAsync(), one.acquireAsync(), one.acquireAsync());
            Checks.inLine(one, 2);
        }

        @Override
        public void close() {
            all.forEach(request -> request.cancel(true));
        }
    }

    @ParameterizedTest
    @MethodSource({"values", "streams"})
    void aFullLine(String path) throws Exception {
        try (Full full = new Full()) {
            HttpResponse<InputStream> json = Checks.get(get(path, "*/*"));
            refused(json, 429, "queue_full");
            assertThat(json.headers().firstValue("Content-Type")).contains("application/json");
            HttpResponse<InputStream> events = Checks.get(get(path, EVENTS));
            assertThat(events.statusCode()).isEqualTo(429);
            assertThat(events.headers().firstValue("Content-Type").orElseThrow()).startsWith(EVENTS);
            assertThat(text(events)).contains("retry: ", "event: rejected\n", "data: {\"error\": \"queue_full\"");
            assertThat(full.all).isNotEmpty();
        }
    }

    @ParameterizedTest
    @CsvSource({"/impossible, 400, impossible, false", "/undeclared, 503, no_such_limiter, true"})
    void otherRefusals(String path, int status, String error, boolean again) throws Exception {
        HttpResponse<InputStream> response = Checks.get(get(path, "*/*"));
        assertThat(response.headers().firstValue("Retry-After").isPresent()).isEqualTo(again);
        refused(response, status, error);
    }

    @Test
    void aMistakeOfTheProgramIsNoRefusal() throws Exception {
        assertThat(Checks.get(get("/mistake", "*/*")).statusCode()).isEqualTo(500);
    }

    static void refused(HttpResponse<InputStream> response, int status, String error) throws Exception {
        assertThat(response.statusCode()).isEqualTo(status);
        Map<?, ?> body = new ObjectMapper().readValue(text(response), Map.class);
        assertThat(body.keySet()).hasToString("[error, message, retry_after]");
        assertThat(body.get("error")).isEqualTo(error);
        String after = response.headers().firstValue("Retry-After").orElse("null");
        assertThat(String.valueOf(body.get("retry_after"))).isEqualTo(after);
    }

    // --- in line, with events

    /** Which endpoints show the place. */
    abstract String[] events();

    @ParameterizedTest
    @MethodSource("events")
    void whoWaitsSeesItsPlace(String path) throws Exception {
        Permit held = one.acquire();
        var first = one.acquireAsync();
        Checks.inLine(one, 1);
        HttpResponse<InputStream> response = Checks.get(get(path, EVENTS));
        try (held; BufferedReader lines = lines(response)) {
            assertThat(lineWith(lines, "event:")).isEqualTo("event: position");
            assertThat(lines.readLine()).startsWith("data: {\"position\": 2, \"estimate\": ");
            held.close();
            assertThat(lineWith(lines, "event:")).isEqualTo("event: position");
            assertThat(lines.readLine()).startsWith("data: {\"position\": 1, ");
            Checks.get(first).close();
            source.put("answer");
            source.put(Source.END);
            assertThat(lineWith(lines, "event:")).isEqualTo("event: item");
            assertThat(lines.readLine()).isEqualTo("data: answer");
            while (lines.readLine() != null) {}
        }
    }

    @ParameterizedTest
    @MethodSource("events")
    void whoHasWaitedIsRejectedByAnEvent(String path) throws Exception {
        Limiter brief = limiters.get("brief");
        try (Permit held = brief.acquire()) {
            HttpResponse<InputStream> response = Checks.get(get(path + "?limiter=brief", EVENTS));
            assertThat(response.statusCode()).isEqualTo(200);
            try (BufferedReader lines = lines(response)) {
                lineWith(lines, "event: position");
                lineWith(lines, "event: rejected");
                assertThat(lineWith(lines, "data:")).startsWith("data: {\"error\": \"timed_out\"");
            }
            assertThat(held.isValid()).isTrue();
        }
    }

    @ParameterizedTest
    @MethodSource("events")
    void whoWaitsAndGoesLeavesTheLine(String path) throws Exception {
        try (Permit held = one.acquire()) {
            HttpResponse<InputStream> response = Checks.get(get(path, EVENTS));
            Checks.inLine(one, 1);
            int readers = source.readers.get();
            response.body().close();
            Checks.inLine(one, 0);
            assertThat(source.readers.get()).as("the work never began").isEqualTo(readers);
            assertThat(held.isValid()).isTrue();
        }
    }

    @ParameterizedTest
    @MethodSource("events")
    void workThatFails(String path) throws Exception {
        Permit held = one.acquire();
        HttpResponse<InputStream> response = Checks.get(get(path, EVENTS));
        try (held; BufferedReader lines = lines(response)) {
            lineWith(lines, "event: position");
            held.close();
            source.put(Source.FAIL);
            lineWith(lines, "event: failed");
            assertThat(lines.readLine())
                    .isEqualTo("data: {\"error\": \"failed\", \"status\": 500, \"message\": \"The service has failed.\"}");
            while (lines.readLine() != null) {}
        }
        source.put(Source.FAIL);
        assertThat(Checks.get(get(path, EVENTS)).statusCode()).as("nothing was sent before").isEqualTo(500);
    }
}
