package io.fairq.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.fairq.CancelledException;
import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.PermitLostException;
import io.fairq.QueueFullException;
import io.fairq.TimedOutException;
import io.fairq.spring.aop.FairLimitAutoConfiguration;
import io.fairq.spring.aop.RequestEnd;
import io.fairq.spring.reactive.FairFluxAutoConfiguration;
import io.fairq.testing.Checks;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Publisher;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.util.TestPropertyValues;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;
import reactor.test.StepVerifier;

/** The annotation on beans, without any web. */
class FairLimitTest {
    static final AutoConfigurations AUTO = AutoConfigurations.of(
            AopAutoConfiguration.class,
            FairqAutoConfiguration.class,
            FairLimitAutoConfiguration.class,
            FairFluxAutoConfiguration.class);

    /** Methods of all kinds; {@code what} is what the test lets them return. */
    static class Work {
        Object what;
        Permit seen;

        @FairLimit("one")
        public String plain() {
            seen = CurrentPermit.find().orElseThrow();
            what = seen.isValid();
            return "done";
        }

        @FairLimit(value = "one", maxWait = "${wait}")
        public void impatient() {}

        @FairLimit("${the.name}")
        public void fails() {
            throw new IllegalArgumentException("on purpose");
        }

        @FairLimit("one")
        public Object undeclared() {
            return what;
        }

        @FairLimit("one")
        @SuppressWarnings("unchecked")
        public Stream<String> stream() {
            return (Stream<String>) what;
        }

        @FairLimit("one")
        @SuppressWarnings("unchecked")
        public CompletionStage<String> stage() {
            return (CompletionStage<String>) what;
        }

        @FairLimit("one")
        @SuppressWarnings("unchecked")
        public CompletableFuture<Stream<String>> futureStream() {
            return (CompletableFuture<Stream<String>>) what;
        }

        @FairLimit("one")
        @SuppressWarnings("unchecked")
        public Flux<String> flux() {
            seen = CurrentPermit.find().orElseThrow();
            return (Flux<String>) what;
        }

        @FairLimit("one")
        @SuppressWarnings("unchecked")
        public Mono<String> mono() {
            return (Mono<String>) what;
        }
    }

    /** Its permits are lost soon. */
    static class Short {
        final AtomicInteger cancelled = new AtomicInteger();

        @FairLimit("short")
        public Flux<String> flux() {
            return Flux.<String>never().doOnCancel(cancelled::incrementAndGet);
        }

        @FairLimit("short")
        public Mono<String> mono() {
            return Mono.<String>never().doOnCancel(cancelled::incrementAndGet);
        }
    }

    private AnnotationConfigApplicationContext context;
    private Work work;
    private Work target;
    private final Short lost = new Short();
    private final List<Runnable> over = new ArrayList<>();
    private Limiter one;

    @BeforeEach
    void open() throws Exception {
        context = new AnnotationConfigApplicationContext();
        TestPropertyValues.of(
                        "fairq.url=memory:" + getClass().getSimpleName() + System.nanoTime(),
                        "fairq.limiters.one.limit=1",
                        "fairq.limiters.one.max-wait=60s",
                        "fairq.limiters.one.max-queue=1",
                        "fairq.limiters.short.limit=1",
                        "fairq.limiters.short.max-hold=50ms",
                        "wait=10ms",
                        "the.name=one")
                .applyTo(context);
        target = new Work();
        context.registerBean("work", Work.class, () -> target);
        context.registerBean(Short.class, () -> lost);
        context.registerBean(RequestEnd.class, () -> over::add);
        for (Class<?> type : org.springframework.boot.context.annotation.Configurations.getClasses(AUTO)) {
            context.register(type);
        }
        context.refresh();
        work = context.getBean(Work.class);
        one = context.getBean(Limiters.class).get("one");
    }

    @AfterEach
    void close() {
        Checks.used(one, 0);
        context.close();
    }

    @Test
    void aPlainValue() throws Exception {
        assertThat(work.plain()).isEqualTo("done");
        assertThat(target.seen.fence()).isPositive();
        assertThat(target.what).as("it was valid in the method").isEqualTo(true);
        assertThat(CurrentPermit.find()).isEmpty();
        Checks.idle(one);
        assertThat(target.seen.isValid()).isFalse();
    }

    @Test
    void anException() {
        assertThatThrownBy(work::fails).hasMessage("on purpose");
    }

    @Test
    void refusals() throws Exception {
        try (Permit held = one.acquire()) {
            assertThatThrownBy(work::impatient).isInstanceOf(TimedOutException.class);
            var next = one.acquireAsync();
            Checks.inLine(one, 1);
            assertThatThrownBy(work::plain).isInstanceOf(QueueFullException.class);
            StepVerifier.create(work.flux()).verifyError(QueueFullException.class);
            StepVerifier.create(work.mono()).verifyError(QueueFullException.class);
            assertThat(Checks.failure(work.stage().toCompletableFuture()))
                    .isInstanceOf(QueueFullException.class);
            next.cancel(true);
            assertThat(held.isValid()).isTrue();
        }
    }

    @Test
    void anInterrupt() throws Exception {
        try (Permit held = one.acquire()) {
            FutureTask<String> call = new FutureTask<>(work::plain);
            Thread thread = new Thread(() -> {
                call.run();
                target.what = Thread.currentThread().isInterrupted();
            });
            thread.start();
            Checks.inLine(one, 1);
            thread.interrupt();
            assertThatThrownBy(() -> Checks.get(call)).hasCauseInstanceOf(CancelledException.class);
            thread.join();
            assertThat(target.what).isEqualTo(true);
            assertThat(held.isValid()).isTrue();
        }
    }

    @Test
    void aStreamThatIsRead() {
        target.what = Stream.of("a", "b");
        var read = work.stream().iterator();
        assertThat(read.next()).isEqualTo("a");
        assertThat(Checks.usedNow(one)).isOne();
        assertThat(read.next()).isEqualTo("b");
        assertThat(read.hasNext()).isFalse();
    }

    @Test
    void aStreamThatIsClosed() {
        var closed = new AtomicBoolean();
        target.what = Stream.of("a", "b").onClose(() -> closed.set(true));
        try (Stream<String> stream = work.stream()) {
            assertThat(stream.findFirst()).contains("a");
            assertThat(Checks.usedNow(one)).isOne();
        }
        assertThat(closed).isTrue();
    }

    @Test
    void aStreamThatFails() {
        target.what = Stream.of("a").peek(item -> {
            throw new IllegalStateException("on purpose");
        });
        Stream<String> stream = work.stream();
        assertThat(Checks.usedNow(one)).isOne();
        assertThatThrownBy(stream::toList).hasMessage("on purpose");
    }

    @Test
    void aStage() throws Exception {
        CompletableFuture<String> inner = new CompletableFuture<>();
        target.what = inner;
        CompletableFuture<String> stage = work.stage().toCompletableFuture();
        Checks.used(one, 1);
        assertThat(stage.isDone()).isFalse();
        inner.complete("late");
        assertThat(Checks.get(stage)).isEqualTo("late");
    }

    @Test
    void aStageThatFails() throws Exception {
        target.what = CompletableFuture.failedFuture(new IllegalStateException("on purpose"));
        assertThatThrownBy(() -> Checks.get(work.stage().toCompletableFuture())).hasRootCauseMessage("on purpose");
        target.what = null;
        assertThatThrownBy(() -> Checks.get(work.stage().toCompletableFuture())).hasMessageContaining("null");
    }

    @Test
    void aStageIsCancelledInLine() throws Exception {
        try (Permit held = one.acquire()) {
            var stage = work.stage().toCompletableFuture();
            Checks.inLine(one, 1);
            stage.cancel(true);
            Checks.inLine(one, 0);
            assertThat(held.isValid()).isTrue();
        }
    }

    @Test
    void aStageIsCancelledAtWork() {
        CompletableFuture<String> inner = new CompletableFuture<>();
        target.what = inner;
        var stage = work.stage().toCompletableFuture();
        Checks.used(one, 1);
        stage.cancel(true);
        assertThat(inner).isCancelled();
    }

    @Test
    void aStreamInAFuture() throws Exception {
        target.what = CompletableFuture.completedFuture(Stream.of("a"));
        try (Stream<String> stream = Checks.get(work.futureStream())) {
            assertThat(Checks.usedNow(one)).isOne();
            assertThat(stream.count()).isOne();
        }
    }

    @Test
    void aFlux() {
        Sinks.Many<String> source = Sinks.many().unicast().onBackpressureBuffer();
        target.what = source.asFlux();
        Flux<String> flux = work.flux();
        assertThat(target.seen).as("nothing happens before somebody subscribes").isNull();
        StepVerifier.create(flux)
                .then(() -> source.tryEmitNext("a"))
                .expectNext("a")
                .then(() -> assertThat(Checks.usedNow(one)).isOne())
                .then(source::tryEmitComplete)
                .verifyComplete();
        assertThat(target.seen.fence()).isPositive();
        Checks.used(one, 0);
        target.what = Flux.just("again");
        StepVerifier.create(flux).expectNext("again").verifyComplete();
    }

    @Test
    void aFluxIsCancelled() throws Exception {
        target.what = Flux.never();
        var running = work.flux().subscribe();
        Checks.used(one, 1);
        var waiting = work.flux().subscribe();
        Checks.inLine(one, 1);
        waiting.dispose();
        Checks.inLine(one, 0);
        assertThat(Checks.usedNow(one)).isOne();
        running.dispose();
    }

    /** A grant and a cancel at once: whoever is later sees to the permit. */
    @Test
    void aFluxIsCancelledWithItsGrant() throws Exception {
        target.what = Flux.never();
        for (int round = 0; round < 300; round++) {
            Permit held = one.acquire();
            var waiting = work.flux().subscribe();
            Thread other = new Thread(held::close);
            other.start();
            waiting.dispose();
            other.join();
            Checks.used(one, 0);
        }
    }

    @Test
    void aMono() {
        Sinks.One<String> source = Sinks.one();
        target.what = source.asMono();
        StepVerifier.create(work.mono())
                .then(() -> Checks.used(one, 1))
                .then(() -> source.tryEmitValue("a"))
                .expectNext("a")
                .verifyComplete();
        Checks.used(one, 0);
        target.what = Mono.error(new IllegalStateException("on purpose"));
        StepVerifier.create(work.mono()).verifyErrorMessage("on purpose");
    }

    @Test
    void whatHasLostItsPermitEnds() {
        Short proxy = context.getBean(Short.class);
        StepVerifier.create(proxy.flux()).verifyError(PermitLostException.class);
        StepVerifier.create(proxy.mono()).verifyError(PermitLostException.class);
        assertThat(lost.cancelled).as("works that were told").hasValue(2);
    }

    /** The web server may know before anything is written, and who subscribed may hear of it as of any other failure. */
    @Test
    void aRequestThatIsOver() {
        for (Supplier<Publisher<String>> method : List.<Supplier<Publisher<String>>>of(work::flux, work::mono)) {
            AtomicBoolean cancelled = new AtomicBoolean();
            Flux<String> endless = Flux.<String>never().doOnCancel(() -> cancelled.set(true));
            target.what = method.get() instanceof Mono ? endless.next() : endless;
            StepVerifier.create(method.get())
                    .then(() -> Checks.used(one, 1))
                    .then(() -> over.forEach(Runnable::run))
                    .verifyError(CancelledException.class);
            assertThat(cancelled).isTrue();
            Checks.used(one, 0);
        }
    }

    @Test
    void anEventLoopIsNotKeptWaiting() {
        StepVerifier.create(Mono.fromCallable(work::plain).subscribeOn(Schedulers.parallel()))
                .verifyErrorMatches(error -> error.getMessage().contains("event loop"));
    }

    /** It would be given back too early. */
    @Test
    void whatEndsLaterAndWasNotDeclared() {
        for (Object late : new Object[] {new CompletableFuture<>(), Flux.just(1), (Callable<String>) () -> ""}) {
            target.what = late;
            assertThatThrownBy(work::undeclared).hasMessageContaining("ends later");
            Checks.used(one, 0);
        }
        target.what = Stream.of(1);
        try (Stream<?> stream = (Stream<?>) work.undeclared()) {
            assertThat(stream).isNotNull();
            assertThat(Checks.usedNow(one)).isOne();
        }
        target.what = null;
        assertThat(work.undeclared()).isNull();
    }
}
