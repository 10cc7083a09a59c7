package io.fairq.spring.reactive;

import static org.assertj.core.api.Assertions.assertThat;

import io.fairq.Client;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.testing.Checks;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.springframework.http.codec.ServerSentEvent;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.test.StepVerifier;

/** The stream of events for itself. */
class FairSseFluxTest {
    private final FairSseFlux events = new FairSseFlux(Duration.ofHours(1));

    /** At any moment, also while the first place is told. */
    @Test
    void whoeverCancelsLeavesTheLine() throws Exception {
        try (Client client = Client.open("memory:")) {
            Limiter limiter = client.limiter("cancelled", LimiterOptions.ofLimit(1));
            try (Permit held = limiter.acquire()) {
                for (int round = 0; round < 300; round++) {
                    CountDownLatch told = new CountDownLatch(1);
                    var waiting = events.sse(limiter, Request.waitForever(), permit -> Flux.never())
                            .subscribe(event -> told.countDown());
                    if (round % 3 == 0) {
                        told.await();
                    } else if (round % 3 == 1) {
                        Checks.inLine(limiter, 1);
                    }
                    waiting.dispose();
                    Checks.inLine(limiter, 0);
                }
                assertThat(held.isValid()).isTrue();
            }
        }
    }

    /** Operators would drop it. */
    @Test
    void aPermitThatComesAfterTheEnd() throws Exception {
        try (Client client = Client.open("memory:")) {
            Permit late = client.limiter("late", LimiterOptions.ofLimit(1)).acquire();
            Slot slot = new Slot();
            slot.end();
            assertThat(slot.put(late)).isFalse();
            assertThat(late.isValid()).isFalse();
        }
    }

    @Test
    void aCommentWhenNothingElseIsThere() throws Exception {
        try (Client client = Client.open("memory:")) {
            Limiter limiter = client.limiter("quiet", LimiterOptions.ofLimit(1));
            Permit held = limiter.acquire();
            StepVerifier.create(new FairSseFlux(Duration.ofMillis(1))
                            .sse(limiter, Request.waitForever(), permit -> Mono.just(FairSseFlux.event("item", "x")))
                            .filter(event -> event.event() == null || !event.event().contains("position")))
                    .expectNextMatches(event -> " keep-alive".equals(event.comment()))
                    .then(held::close)
                    .thenConsumeWhile(event -> event.comment() != null)
                    .assertNext(event -> assertThat(event.data()).isEqualTo(" x"))
                    .thenConsumeWhile(event -> event.comment() != null)
                    .verifyComplete();
            Checks.used(limiter, 0);
        }
    }

    /** Who reads slowly has the latest place, and then the answer. */
    @Test
    void placesThatNobodyTakesArePassedOver() throws Exception {
        try (Client client = Client.open("memory:")) {
            Limiter limiter = client.limiter("slow", LimiterOptions.ofLimit(1));
            Permit held = limiter.acquire();
            StepVerifier.create(
                            events.sse(limiter, Request.waitForever(), permit -> Mono.just(FairSseFlux.event("item", "x")))
                                    .filter(event -> event.data() != null),
                            0)
                    .then(() -> Checks.inLine(limiter, 1))
                    .then(held::close)
                    .then(() -> Checks.used(limiter, 1))
                    .thenRequest(Long.MAX_VALUE)
                    .thenConsumeWhile(event -> event.event().contains("position"))
                    .assertNext(event -> assertThat(event).isInstanceOf(ServerSentEvent.class))
                    .verifyComplete();
            Checks.used(limiter, 0);
        }
    }
}
