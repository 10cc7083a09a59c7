package io.fairq.spring.reactive;

import io.fairq.spring.FairqAutoConfiguration;
import io.fairq.spring.FairqProperties;
import io.fairq.spring.aop.AsyncHolding;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.codec.ServerSentEvent;
import org.springframework.web.reactive.DispatcherHandler;
import reactor.core.publisher.Flux;

/** What there is for Reactor, and for Spring WebFlux. */
@AutoConfiguration(after = FairqAutoConfiguration.class)
@ConditionalOnClass(Flux.class)
public class FairFluxAutoConfiguration {
    /** Made by Spring. */
    public FairFluxAutoConfiguration() {}

    @Bean
    static AsyncHolding fairqPublisherHolding() {
        return new PublisherHolding();
    }

    /** What needs Spring's classes for the web. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(ServerSentEvent.class)
    static class Web {
        @Bean
        static AsyncHolding fairqEntityHolding() {
            return new EntityHolding();
        }

        @Bean
        @ConditionalOnMissingBean
        FairSseFlux fairSseFlux(FairqProperties properties) {
            return new FairSseFlux(properties.sse().keepAlive());
        }
    }

    /** What only WebFlux needs. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(DispatcherHandler.class)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class WebFlux {
        @Bean
        ExchangeEnd fairqExchangeEnd() {
            return new ExchangeEnd();
        }

        @Bean
        @ConditionalOnMissingBean
        @ConditionalOnProperty(name = "fairq.web.handle-exceptions", matchIfMissing = true)
        FairqReactiveExceptionHandler fairqReactiveExceptionHandler() {
            return new FairqReactiveExceptionHandler();
        }
    }
}
