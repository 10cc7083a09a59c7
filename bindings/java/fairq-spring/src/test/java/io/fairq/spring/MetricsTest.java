package io.fairq.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.fairq.Limiter;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.micrometer.FairqMetrics;
import io.fairq.micrometer.LimiterGauges;
import io.fairq.spring.aop.FairLimitAutoConfiguration;
import io.fairq.spring.metrics.FairqHealthAutoConfiguration;
import io.fairq.spring.metrics.FairqMetricsAutoConfiguration;
import io.fairq.spring.mvc.FairMvcAutoConfiguration;
import io.fairq.spring.reactive.FairFluxAutoConfiguration;
import io.fairq.testing.Checks;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.junit.jupiter.api.Test;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.actuate.health.Status;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Configuration;

/** What operators see. */
class MetricsTest {
    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    FairqAutoConfiguration.class,
                    FairqMetricsAutoConfiguration.class,
                    FairqHealthAutoConfiguration.class))
            .withPropertyValues(
                    "fairq.url=memory:metrics",
                    "fairq.metrics.refresh=1h",
                    "fairq.limiters.seen.limit=2",
                    "fairq.limiters.seen.max-queue=1");

    /** A world of its own for each test. */
    private static ApplicationContextRunner of(ApplicationContextRunner runner, String world) {
        return runner.withPropertyValues("fairq.url=memory:metrics-" + world);
    }

    private static double gauge(MeterRegistry registry, String name) {
        Gauge gauge = registry.find(name).tag("limiter", "seen").gauge();
        return gauge == null ? Double.NaN : gauge.value();
    }

    @Test
    void howTheLimitersStand() {
        of(runner, "stand").withBean(MeterRegistry.class, SimpleMeterRegistry::new).run(context -> {
            MeterRegistry registry = context.getBean(MeterRegistry.class);
            LimiterGauges gauges = context.getBean(LimiterGauges.class);
            Checks.get(gauges.refresh());
            Limiter seen = context.getBean(Limiters.class).get("seen");
            try (Permit held = seen.acquire(Request.ofDefaults().cost(2))) {
                var waiting = seen.acquireAsync();
                Checks.inLine(seen, 1);
                assertThat(gauge(registry, "fairq.used")).as("a scrape asks nobody").isNotEqualTo(2);
                Checks.get(gauges.refresh());
                assertThat(gauge(registry, "fairq.limit")).isEqualTo(2);
                assertThat(gauge(registry, "fairq.used")).isEqualTo(2);
                assertThat(gauge(registry, "fairq.holders")).isEqualTo(1);
                assertThat(gauge(registry, "fairq.waiting")).isEqualTo(1);
                assertThat(Checks.failure(seen.acquireAsync())).isNotNull();
                waiting.cancel(true);
                assertThat(held.isValid()).isTrue();
            }
            for (String outcome : new String[] {"ok", "queue_full", "cancelled"}) {
                Checks.eventually(
                        outcome + " is counted", () -> registry.find("fairq.wait").tag("outcome", outcome).timer() != null);
                assertThat(registry.get("fairq.wait").tag("outcome", outcome).timer().count()).isOne();
            }
            Checks.eventually("it is given back", () -> registry.find("fairq.hold").timer() != null);
        });
    }

    @Test
    void itLooksByItself() {
        of(runner, "look").withBean(MeterRegistry.class, SimpleMeterRegistry::new)
                .withPropertyValues("fairq.metrics.refresh=1ms")
                .run(MetricsTest::itIsSeen);
    }

    /** No bean depends on the gauges. */
    @Test
    void itLooksByItselfInLazyApplications() {
        of(runner, "lazy").withBean(MeterRegistry.class, SimpleMeterRegistry::new)
                .withBean(LazyInitializationBeanFactoryPostProcessor.class)
                .withPropertyValues("fairq.metrics.refresh=1ms")
                .run(MetricsTest::itIsSeen);
    }

    private static void itIsSeen(ApplicationContext context) throws InterruptedException {
        Limiter seen = context.getBean(Limiters.class).get("seen");
        MeterRegistry registry = context.getBean(MeterRegistry.class);
        Permit held = seen.acquire();
        Checks.eventually("it is seen", () -> gauge(registry, "fairq.used") == 1);
        held.close();
        Checks.eventually("it is seen again", () -> gauge(registry, "fairq.used") == 0);
    }

    @Test
    void refreshThatMeansNothing() {
        runner.withBean(MeterRegistry.class, SimpleMeterRegistry::new)
                .withPropertyValues("fairq.metrics.refresh=0s")
                .run(context -> assertThat(new SetupFailureAnalyzer().analyze(context.getStartupFailure()))
                        .extracting(FailureAnalysis::getDescription).asString()
                        .contains("fairq.metrics.refresh", "PT0S"));
    }

    @Test
    void metersOfTheApplicationsOwn() {
        of(runner, "own").withBean(MeterRegistry.class, SimpleMeterRegistry::new)
                .withBean(FairqMetrics.class, () -> new FairqMetrics(new SimpleMeterRegistry()))
                .run(context -> {
                    context.getBean(Limiters.class).get("seen").acquire().close();
                    assertThat(context.getBean(MeterRegistry.class).find("fairq.wait").timer()).isNull();
                });
    }

    @Test
    void health() {
        runner.run(context -> {
            var health = context.getBean("fairqHealthIndicator", HealthIndicator.class).health();
            assertThat(health.getStatus()).isEqualTo(Status.UP);
        });
        runner.withPropertyValues("fairq.url=redis://:secret@127.0.0.1:1").run(context -> {
            var health = context.getBean("fairqHealthIndicator", HealthIndicator.class).health();
            assertThat(health.getStatus()).isEqualTo(Status.DOWN);
            assertThat(health.getDetails()).containsEntry("status", "unavailable");
            assertThat(health.toString()).doesNotContain("secret");
        });
        runner.withPropertyValues("management.health.fairq.enabled=false")
                .run(context -> assertThat(context).doesNotHaveBean(HealthIndicator.class));
    }

    /** As Spring Boot does it, by names: what annotations need may be missing, too. */
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        FairqAutoConfiguration.class,
        FairLimitAutoConfiguration.class,
        FairFluxAutoConfiguration.class,
        FairMvcAutoConfiguration.class,
        FairqMetricsAutoConfiguration.class,
        FairqHealthAutoConfiguration.class
    })
    static class All {}

    /** Neither Micrometer, nor Actuator, nor Reactor, nor any web. */
    @Test
    void nothingIsNeeded() {
        new ApplicationContextRunner()
                .withUserConfiguration(All.class)
                .withClassLoader(new FilteredClassLoader(
                        "io.micrometer", "org.springframework.boot.actuate", "reactor", "org.reactivestreams",
                        "org.springframework.web", "org.springframework.http", "jakarta.servlet"))
                .withPropertyValues("fairq.limiters.seen.limit=2")
                .run(context -> {
                    assertThat(context).hasNotFailed().hasSingleBean(Limiters.class).doesNotHaveBean("fairqLimiterGauges").doesNotHaveBean("fairqMetrics");
                    context.getBean(Limiters.class).get("seen").acquire().close();
                });
    }
}
