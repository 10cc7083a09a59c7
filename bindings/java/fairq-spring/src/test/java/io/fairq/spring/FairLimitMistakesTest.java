package io.fairq.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.Future;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Annotations that mean nothing, and methods whose end cannot be followed: found when the bean is made. */
class FairLimitMistakesTest {
    static class OfFuture {
        @FairLimit("one")
        public Future<String> wrong() {
            return null;
        }
    }

    static class OfDeferred {
        @FairLimit("one")
        public org.springframework.web.context.request.async.DeferredResult<String> wrong() {
            return null;
        }
    }

    static class OfMonoOfEntity {
        @FairLimit("one")
        public Mono<org.springframework.http.ResponseEntity<Flux<String>>> wrong() {
            return null;
        }
    }

    static class OfWait {
        @FairLimit(value = "one", maxWait = "soon")
        public void wrong() {}
    }

    static class OfCost {
        @FairLimit(value = "one", cost = 0)
        public void wrong() {}
    }

    static class OfLabel {
        @FairLimit(value = "one", label = "#{1 +}")
        public void wrong() {}
    }

    static class OfPlaceholder {
        @FairLimit("${missing}")
        public void wrong() {}
    }

    static class OfBrackets {
        @FairLimit("o:ne")
        public void wrong() {}
    }

    @ParameterizedTest
    @ValueSource(classes = {
        OfFuture.class,
        OfDeferred.class,
        OfMonoOfEntity.class,
        OfWait.class,
        OfCost.class,
        OfLabel.class,
        OfPlaceholder.class,
        OfBrackets.class
    })
    void mistakesKeepTheApplicationFromStarting(Class<?> type) {
        new ApplicationContextRunner()
                .withConfiguration(FairLimitTest.AUTO)
                .withBean(type)
                .withPropertyValues("fairq.limiters.one.limit=1")
                .run(context -> assertThat(new SetupFailureAnalyzer().analyze(context.getStartupFailure()))
                        .isNotNull());
    }
}
