package gateway;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;

/** The gateway as a client meets it: one answer at once, two may wait. */
@SpringBootTest(
        webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
        properties = {
            "fairq.url=memory:gateway",
            "fairq.sse.keep-alive=200ms",
            "GATEWAY_LIMIT=1",
            "GATEWAY_MAX_QUEUE=2",
            "GATEWAY_MAX_WAIT=60",
            "GATEWAY_TOKENS_PER_SECOND=50"
        })
@Timeout(120)
class GatewayTest {
    @LocalServerPort
    private int port;

    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final ObjectMapper json = new ObjectMapper();

    private HttpRequest.Builder to(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
    }

    private String text(String path) throws Exception {
        HttpResponse<String> response = http.send(to(path).build(), HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as(path).isEqualTo(200);
        return response.body();
    }

    private JsonNode status() throws Exception {
        return json.readTree(text("/status"));
    }

    private void eventually(String what, int value) throws Exception {
        while (status().get(what).asInt() != value) { // until the test's time is over
            LockSupport.parkNanos(1_000_000);
        }
    }

    @AfterEach
    void idle() throws Exception {
        eventually("running", 0);
        eventually("waiting", 0);
    }

    /** A client that reads events. */
    private final class Asking implements AutoCloseable {
        final HttpResponse<InputStream> response;
        final BufferedReader lines;

        Asking(String question) throws Exception {
            HttpRequest request = to("/ask?q=" + question).header("Accept", "text/event-stream").build();
            response = http.send(request, HttpResponse.BodyHandlers.ofInputStream());
            lines = new BufferedReader(new InputStreamReader(response.body(), StandardCharsets.UTF_8));
        }

        /** The name of the next event; null at the end. */
        String next() throws IOException {
            String line = lines.readLine();
            while (line != null && !line.startsWith("event: ")) {
                line = lines.readLine();
            }
            return line == null ? null : line.substring("event: ".length());
        }

        JsonNode data() throws IOException {
            return json.readTree(lines.readLine().substring("data: ".length()));
        }

        /** All that come. */
        List<String> rest() throws IOException {
            List<String> names = new ArrayList<>();
            for (String name = next(); name != null; name = next()) {
                names.add(name);
            }
            return names;
        }

        @Override
        public void close() throws IOException {
            response.body().close();
        }
    }

    @Test
    void thePage() throws Exception {
        assertThat(text("/")).contains("Ask the fairq documents");
        assertThat(text("/static/page.js")).contains("position");
        assertThat(text("/static/page.css")).isNotEmpty();
    }

    @Test
    void anAnswer() throws Exception {
        try (Asking one = new Asking("crashes")) {
            assertThat(one.next()).isEqualTo("start");
            assertThat(one.data().get("fence").asLong()).isPositive();
            assertThat(one.next()).isEqualTo("sources");
            assertThat(one.data().get("passages").get(0).get("title").asText()).isEqualTo("Crashes");
            assertThat(one.rest()).contains("token").endsWith("done");
        }
    }

    /** The next in line sees its place, and begins when the one before has gone in the middle of its answer. */
    @Test
    void whoGoesFreesItsSlot() throws Exception {
        try (Asking one = new Asking("crashes"); Asking two = new Asking("order")) {
            assertThat(one.next()).isEqualTo("start");
            assertThat(two.next()).isEqualTo("position");
            assertThat(two.data().get("position").asInt()).isOne();
            one.close();
            List<String> rest = two.rest();
            assertThat(rest).contains("start", "token").endsWith("done");
        }
    }

    @Test
    void whoGoesLeavesTheLine() throws Exception {
        try (Asking one = new Asking("crashes"); Asking two = new Asking("order")) {
            assertThat(one.next()).isEqualTo("start");
            assertThat(two.next()).isEqualTo("position");
            two.close();
            assertThat(one.rest()).endsWith("done");
        }
    }

    @Test
    void aFullLine() throws Exception {
        HttpRequest more = to("/askers").POST(HttpRequest.BodyPublishers.noBody()).build();
        assertThat(http.send(more, HttpResponse.BodyHandlers.ofString()).body()).contains("askers");
        eventually("waiting", 2);
        try (Asking refused = new Asking("order")) {
            assertThat(refused.response.statusCode()).isEqualTo(429);
            assertThat(refused.response.headers().firstValue("Retry-After")).isPresent();
            assertThat(refused.next()).isEqualTo("rejected");
            assertThat(refused.data().get("error").asText()).isEqualTo("queue_full");
        }
    }
}
