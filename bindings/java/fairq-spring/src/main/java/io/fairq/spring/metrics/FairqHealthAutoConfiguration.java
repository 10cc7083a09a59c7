package io.fairq.spring.metrics;

import io.fairq.Client;
import io.fairq.spring.FairqAutoConfiguration;
import org.springframework.boot.actuate.autoconfigure.health.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.context.annotation.Bean;

/** The health of the store, where Actuator is there; {@code management.health.fairq.enabled=false} leaves it out. */
@AutoConfiguration(after = FairqAutoConfiguration.class)
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnBean(Client.class)
@ConditionalOnEnabledHealthIndicator("fairq")
public class FairqHealthAutoConfiguration {
    /** Made by Spring. */
    public FairqHealthAutoConfiguration() {}

    /**
     * Asks whether the store can be reached, and is fit.
     *
     * @param client by what
     * @return the indicator
     */
    @Bean
    @ConditionalOnMissingBean(name = "fairqHealthIndicator")
    public HealthIndicator fairqHealthIndicator(Client client) {
        return new FairqHealthIndicator(client);
    }
}
