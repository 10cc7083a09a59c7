package io.fairq.spring.metrics;

import io.fairq.spring.FairqAutoConfiguration;
import io.fairq.spring.FairqProperties;
import io.fairq.spring.Limiters;
import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

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

    @Bean
    static RequestMeters fairqRequestMeters(ObjectProvider<MeterRegistry> registry) {
        return new RequestMeters(registry);
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
    @ConditionalOnMissingBean
    public LimiterGauges fairqLimiterGauges(MeterRegistry registry, Limiters limiters, FairqProperties properties) {
        return new LimiterGauges(registry, limiters, properties.metrics().refresh());
    }
}
