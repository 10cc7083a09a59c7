package io.fairq.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.fairq.Client;
import io.fairq.ClosedException;
import io.fairq.ConfigurationException;
import io.fairq.LimiterStatus;
import io.fairq.Option;
import io.fairq.OverloadedException;
import io.fairq.Permit;
import io.fairq.Request;
import io.fairq.testing.Checks;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.core.env.MapPropertySource;

/** The configuration: bound, or refused in words that help. */
class PropertiesTest {
    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(FairqAutoConfiguration.class))
            .withPropertyValues("fairq.url=memory:properties");

    /** As of a file; {@code withPropertyValues} would cut a name at its first colon. */
    private ApplicationContextRunner with(String... properties) {
        return runner.withInitializer(context -> {
            Map<String, Object> values = new LinkedHashMap<>();
            for (String property : properties) {
                int end = property.indexOf('=');
                values.put(property.substring(0, end), property.substring(end + 1));
            }
            context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("file", values));
        });
    }

    @Test
    void everySettingOfALimiter() {
        with(
                        "fairq.client.connect-timeout=3s",
                        "fairq.client.io-timeout=500ms",
                        "fairq.client.subscribe=false",
                        "fairq.client.description=web 1",
                        "fairq.limiters[rag:chat].limit=4",
                        "fairq.limiters[rag:chat].max-queue=100",
                        "fairq.limiters[rag:chat].max-wait=15s",
                        "fairq.limiters[rag:chat].lease=5s",
                        "fairq.limiters[rag:chat].max-hold=1h",
                        "fairq.limiters[rag:chat].idle=20m",
                        "fairq.limiters[rag:chat].poll=2s",
                        "fairq.limiters[rag:chat].outage=local:2")
                .run(context -> {
                    var limiter = context.getBean(Limiters.class).get("rag:chat");
                    limiter.acquire().close();
                    LimiterStatus status = limiter.status();
                    assertThat(status.limit()).isEqualTo(4);
                    assertThat(status.maxQueue()).isEqualTo(OptionalLong.of(100));
                    assertThat(status.maxWait()).isEqualTo(Optional.of(Duration.ofSeconds(15)));
                    assertThat(status.lease()).isEqualTo(Duration.ofSeconds(5));
                    assertThat(status.maxHold()).isEqualTo(Optional.of(Duration.ofHours(1)));
                });
    }

    /** Every option of a client is a property, and reaches the library under its name. */
    @Test
    void everyOptionOfAClient() {
        Set<String> properties = Arrays.stream(FairqProperties.OfClient.class.getRecordComponents())
                .map(component -> component.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT))
                .collect(Collectors.toSet());
        assertThat(properties)
                .isEqualTo(Option.all().stream()
                        .filter(option -> option.scope() == Option.Scope.CLIENT)
                        .map(Option::key)
                        .collect(Collectors.toSet()));
    }

    @Test
    void theNumberOfTickets() {
        with("fairq.client.max-tickets=1", "fairq.limiters.one.limit=1").run(context -> {
            var limiter = context.getBean(Limiters.class).get("one");
            Permit held = limiter.acquire();
            assertThatThrownBy(limiter::acquire).isInstanceOf(OverloadedException.class);
            held.close();
        });
    }

    @Test
    void aLoginAndCertificates() {
        with(
                        "fairq.url=rediss://127.0.0.1:1",
                        "fairq.client.username=app",
                        "fairq.client.password-file=/nowhere/password",
                        "fairq.client.tls-ca-file=/nowhere/ca.pem",
                        "fairq.client.tls-cert-file=/nowhere/client.pem",
                        "fairq.client.tls-key-file=/nowhere/client.key")
                .run(context -> assertThatThrownBy(context.getBean(Client.class)::check)
                        .isInstanceOf(ConfigurationException.class)
                        .hasMessageContaining("/nowhere/password"));
        with("fairq.url=redis://127.0.0.1:1", "fairq.client.password=s3cret").run(context -> {
            assertThat(context.getBean(FairqProperties.class).toString()).doesNotContain("s3cret");
            assertThatThrownBy(context.getBean(Client.class)::check).hasMessageNotContaining("s3cret");
        });
    }

    @Test
    void wordsForNoLimit() {
        with(
                        "fairq.limiters.words.limit=1",
                        "fairq.limiters.words.max-queue=unbounded",
                        "fairq.limiters.words.max-wait=forever",
                        "fairq.limiters.words.max-hold=0")
                .run(context -> {
                    var limiter = context.getBean(Limiters.class).get("words");
                    limiter.acquire().close();
                    assertThat(limiter.status().maxQueue()).isEmpty();
                    assertThat(limiter.status().maxWait()).isEmpty();
                    assertThat(limiter.status().maxHold()).isEmpty();
                });
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "fairq.limiters[rag:chat].lease=1ms        | fairq.limiters[rag:chat] | lease",
        "fairq.limiters[rag:chat].limit=-1         | fairq.limiters[rag:chat] | limit",
        "fairq.limiters[rag:chat].outage=panic     | fairq.limiters[rag:chat] | outage",
        "fairq.limiters[rag:chat].max-queue=many   | fairq.limiters[rag:chat] | max_queue",
        "fairq.limiters[rag:chat].max-wait=soon    | fairq.limiters[rag:chat] | max-wait",
        "fairq.client.io-timeout=-1s               | fairq.client             | io_timeout",
        "fairq.client.tls-ca-file=/ca.pem          | fairq.client             | tls_ca_file",
        "fairq.client.password=s3cret              | fairq.client             | password",
        "fairq.client.sentinel-password-file=/f    | fairq.client             | sentinel_password_file",
        "fairq.url=http://redis                    | fairq.url                | http",
    })
    void mistakesAreNamed(String property, String where, String what) {
        with("fairq.limiters[rag:chat].limit=1", property).run(context -> {
            assertThat(context).hasFailed();
            FailureAnalysis analysis = new SetupFailureAnalyzer().analyze(context.getStartupFailure());
            assertThat(analysis).isNotNull();
            assertThat(analysis.getDescription()).contains(where).contains(what);
            assertThat(analysis.getAction()).isNotEmpty();
        });
    }

    @Test
    void aKeyThatThereIsNot() {
        with("fairq.limiters.chat.max-queu=3")
                .run(context -> assertThat(context.getStartupFailure()).rootCause().hasMessageContaining("max-queu"));
    }

    @Test
    void bracketsThatAreMissing() {
        with("fairq.limiters.rag:chat.limit=3").run(context -> {
            var limiters = context.getBean(Limiters.class);
            assertThat(limiters.get("ragchat").name()).isEqualTo("ragchat");
            assertThatThrownBy(() -> limiters.get("rag:chat"))
                    .isInstanceOfSatisfying(
                            FairqSetupException.class, error -> assertThat(error.action()).contains("[rag:chat]"));
        });
    }

    @Test
    void theEnvironmentMaySayWhere() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(FairqAutoConfiguration.class))
                .withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .addFirst(new org.springframework.core.env.SystemEnvironmentPropertySource(
                                "systemEnvironment",
                                Map.of("FAIRQ_URL", "memory:environment", "FAIRQ_LOG", "warn"))))
                .run(context ->
                        assertThat(context.getBean(FairqProperties.class).url()).isEqualTo("memory:environment"));
    }

    @Test
    void aClientOfTheApplicationsOwn() {
        Client own = Client.open("memory:");
        runner.withBean(Client.class, () -> own)
                .run(context -> assertThat(context.getBean(Limiters.class).get("x").client()).isSameAs(own));
    }

    @Test
    void aCustomizer() {
        var used = new java.util.concurrent.atomic.AtomicBoolean();
        runner.withBean(FairqClientCustomizer.class, () -> options -> options.executor(task -> {
                    used.set(true);
                    task.run();
                }))
                .withPropertyValues("fairq.limiters.one.limit=1")
                .run(context -> {
                    var limiter = context.getBean(Limiters.class).get("one");
                    Permit held = limiter.acquire();
                    var next = limiter.acquireAsync(Request.waitForever());
                    held.close();
                    Checks.get(next).close();
                    assertThat(used).isTrue();
                });
    }

    /** Who waits is told at once; what is held is waited for, and then the client is closed. */
    @Test
    void shutdownGivesBack() {
        with("fairq.limiters.one.limit=1", "fairq.drain=60s").run(context -> {
            var limiter = context.getBean(Limiters.class).get("one");
            Permit held = limiter.acquire();
            var waiting = limiter.acquireAsync(Request.waitForever());
            Checks.inLine(limiter, 1);
            Thread closing = new Thread(context::close);
            closing.start();
            assertThat(Checks.failure(waiting)).isInstanceOf(ClosedException.class);
            assertThat(held.isValid()).as("it is drained").isTrue();
            assertThat(closing.isAlive()).isTrue();
            held.close();
            closing.join(Checks.PATIENCE.toMillis());
            assertThat(closing.isAlive()).isFalse();
        });
        runner.run(context -> assertThat(context.getBean(Client.class)
                        .limiter("one")
                        .status()
                        .used())
                .isZero());
    }

    /** Whatever still holds after the drain: what it holds is taken back. */
    @Test
    void shutdownTakesBack() throws Exception {
        Permit[] held = new Permit[1];
        with("fairq.limiters.two.limit=1", "fairq.drain=0s")
                .run(context -> held[0] = context.getBean(Limiters.class).get("two").acquire());
        assertThat(held[0].isValid()).isFalse();
    }
}
