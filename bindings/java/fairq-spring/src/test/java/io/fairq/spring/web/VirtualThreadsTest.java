package io.fairq.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.spring.FairLimit;
import io.fairq.spring.Limiters;
import io.fairq.spring.mvc.FairSse;
import io.fairq.testing.Checks;
import java.io.File;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/** Spring MVC with a virtual thread for each request: many may wait in line, and no other threads come of it. */
@SpringBootTest(
        webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
        properties = {
            "spring.main.web-application-type=servlet",
            "spring.threads.virtual.enabled=true",
            "fairq.url=memory:virtual",
            "fairq.limiters.few.limit=3",
            "fairq.limiters.few.max-queue=400",
            "fairq.limiters.few.max-wait=forever",
        })
@EnabledForJreRange(min = JRE.JAVA_21)
@Timeout(120)
class VirtualThreadsTest {
    private static final int QUEUE = 400;
    private static final int REFUSED = 50;

    @Configuration
    @EnableAutoConfiguration
    @Import(Work.class)
    static class Application {}

    @RestController
    static class Work {
        private final Limiters limiters;
        private final FairSse sse;
        private final AtomicInteger running = new AtomicInteger();
        private final AtomicInteger most = new AtomicInteger();

        Work(Limiters limiters, FairSse sse) {
            this.limiters = limiters;
            this.sse = sse;
        }

        @GetMapping("/plain")
        @FairLimit("few")
        public String plain() {
            most.accumulateAndGet(running.incrementAndGet(), Math::max);
            running.decrementAndGet();
            return "done in " + Thread.currentThread();
        }

        public int most() {
            return most.get();
        }

        @GetMapping("/sse")
        public SseEmitter stream() {
            return sse.sse(limiters.get("few"), Request.ofDefaults(), (events, permit) -> {
                events.send(FairSse.event("end", plain()));
            });
        }
    }

    @LocalServerPort
    private int port;

    @Autowired
    private Limiters limiters;

    @Autowired
    private Work work;

    private final ExecutorService clients = Executors.newFixedThreadPool(2); // which are counted, too
    private final HttpClient http =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).executor(clients).build();
    private Limiter few;
    private List<Permit> held;

    /** Nobody is admitted until these go. */
    @BeforeEach
    void hold() throws Exception {
        few = limiters.get("few");
        held = new ArrayList<>();
        for (int at = 0; at < 3; at++) {
            held.add(few.acquire());
        }
    }

    @AfterEach
    void nobodyIsLeft() {
        held.forEach(Permit::close);
        Checks.idle(few);
        clients.shutdown();
    }

    private CompletableFuture<HttpResponse<String>> get(String path) {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + path)).build();
        return http.sendAsync(request, HttpResponse.BodyHandlers.ofString());
    }

    private static int threads() {
        return new File("/proc/self/task").list().length;
    }

    private void crowd(String path) throws Exception {
        int before = threads();
        List<CompletableFuture<HttpResponse<String>>> waiting = new ArrayList<>();
        for (int at = 0; at < QUEUE; at++) {
            waiting.add(get(path));
        }
        Checks.inLine(few, QUEUE);
        assertThat(threads() - before).as("more threads").isLessThan(20);
        for (int at = 0; at < REFUSED; at++) {
            assertThat(Checks.get(get(path)).statusCode()).isEqualTo(429);
        }
        held.forEach(Permit::close);
        for (CompletableFuture<HttpResponse<String>> one : waiting) {
            assertThat(Checks.get(one).statusCode()).isEqualTo(200);
            assertThat(one.join().body()).contains("done in VirtualThread");
        }
        assertThat(work.most()).isBetween(1, 3);
    }

    @Test
    void threadsThatWait() throws Exception {
        crowd("/plain");
    }

    @Test
    void eventStreams() throws Exception {
        crowd("/sse");
    }
}
