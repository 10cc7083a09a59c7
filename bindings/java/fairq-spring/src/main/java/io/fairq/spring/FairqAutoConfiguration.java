package io.fairq.spring;

import io.fairq.Client;
import io.fairq.ClientOptions;
import io.fairq.Observer;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;

/** The client, and the limiters of the configuration. */
@AutoConfiguration
@EnableConfigurationProperties(FairqProperties.class)
public class FairqAutoConfiguration {
    private static final Log LOG = LogFactory.getLog(FairqAutoConfiguration.class);
    private static final String MEMORY = "memory:";

    /** Made by Spring. */
    public FairqAutoConfiguration() {}

    /**
     * The client; it connects with the first request.
     *
     * @param properties where, and how
     * @param customizers who has a say in its options
     * @param observers who is told what becomes of requests
     * @return an open client
     */
    @Bean(destroyMethod = "close")
    @ConditionalOnMissingBean
    public Client fairqClient(
            FairqProperties properties,
            ObjectProvider<FairqClientCustomizer> customizers,
            ObjectProvider<Observer> observers) {
        ClientOptions options = Options.of(properties.client());
        for (FairqClientCustomizer customizer : customizers.orderedStream().toList()) {
            options = customizer.customize(options);
        }
        var told = observers.orderedStream().toList();
        if (!told.isEmpty()) {
            options = options.observer(new Observers(told));
        }
        return Options.open(url(properties), options);
    }

    private static String url(FairqProperties properties) {
        // An environment variable that is set to nothing is not set.
        String url = properties.url().isBlank() ? MEMORY : properties.url();
        if (url.equals(MEMORY)) {
            LOG.info("fairq keeps its limits in the memory of this process alone; fairq.url=redis://… shares them");
        }
        return url;
    }

    /**
     * The limiters; a mistake in the configuration of one keeps the application from starting.
     *
     * @param client their client
     * @param properties their settings
     * @return the limiters by name
     */
    @Bean
    @ConditionalOnMissingBean
    public Limiters fairqLimiters(Client client, FairqProperties properties) {
        return new Limiters(client, properties.limiters());
    }

    @Bean
    ClientLifecycle fairqClientLifecycle(Client client, FairqProperties properties) {
        return new ClientLifecycle(client, properties.drain());
    }
}
