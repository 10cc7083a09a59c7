package io.fairq.spring.metrics;

import io.fairq.InvalidException;
import io.fairq.micrometer.FairqMetrics;
import io.fairq.micrometer.LimiterGauges;
import io.fairq.spring.FairqAutoConfiguration;
import io.fairq.spring.FairqProperties;
import io.fairq.spring.FairqSetupException;
import io.fairq.spring.Limiters;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Lazy;

/** Metrics, where Micrometer is there and has a registry. */
@AutoConfiguration(
        after = FairqAutoConfiguration.class,
        afterName = {
            "org.springframework.boot.actuate.autoconfigure.metrics.MetricsAutoConfiguration",
            "org.springframework.boot.actuate.autoconfigure.metrics.CompositeMeterRegistryAutoConfiguration",
            "org.springframework.boot.actuate.autoconfigure.metrics.export.simple.SimpleMetricsExportAutoConfiguration"
        })
@ConditionalOnClass(MeterRegistry.class)
@ConditionalOnBean(MeterRegistry.class)
public class FairqMetricsAutoConfiguration {
    /** Made by Spring. */
    public FairqMetricsAutoConfiguration() {}

    /**
     * What becomes of requests.
     *
     * @param registry where to; the client, which tells it, may be made before
     * @return an observer
     */
    @Bean
    @ConditionalOnMissingBean
    public static FairqMetrics fairqMetrics(ObjectProvider<MeterRegistry> registry) {
        return new FairqMetrics(registry::getObject, Tags.empty());
    }

    /**
     * How the limiters stand.
     *
     * @param registry where to
     * @param limiters which
     * @param properties how often
     * @return the gauges
     */
    @Bean
    @Lazy(false) // nobody asks for it
    @ConditionalOnMissingBean
    public LimiterGauges fairqLimiterGauges(MeterRegistry registry, Limiters limiters, FairqProperties properties) {
        try {
            return new LimiterGauges(registry, Tags.empty(), limiters::all, properties.metrics().refresh());
        } catch (InvalidException error) {
            throw new FairqSetupException(
                    "What fairq.metrics.refresh says means nothing: " + error.getMessage(),
                    "Correct it in the configuration.",
                    error);
        }
    }
}
