package io.fairq.spring.mvc;

import io.fairq.spring.FairqAutoConfiguration;
import io.fairq.spring.FairqProperties;
import io.fairq.spring.aop.RequestEnd;
import io.fairq.spring.aop.ValueHolding;
import jakarta.servlet.AsyncContext;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;

/** What there is for Spring MVC. */
@AutoConfiguration(after = FairqAutoConfiguration.class)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnClass({SseEmitter.class, AsyncContext.class})
public class FairMvcAutoConfiguration {
    /** Made by Spring. */
    public FairMvcAutoConfiguration() {}

    /**
     * Event streams for controllers.
     *
     * @param properties how often to send something
     * @return them
     */
    @Bean(destroyMethod = "close")
    @ConditionalOnMissingBean
    public FairSse fairSse(FairqProperties properties) {
        return new FairSse(properties.sse().keepAlive());
    }

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnProperty(name = "fairq.web.handle-exceptions", matchIfMissing = true)
    FairqExceptionHandler fairqExceptionHandler() {
        return new FairqExceptionHandler();
    }

    /** The last one, next to what Spring MVC writes. */
    @Bean
    static FilterRegistrationBean<?> fairqWatchedResponse() {
        var filter = new FilterRegistrationBean<>(new WatchedResponse.Filter());
        filter.setOrder(Ordered.LOWEST_PRECEDENCE);
        return filter;
    }

    @Bean
    static RequestEnd fairqServletRequestEnd() {
        return new ServletRequestEnd();
    }

    @Bean
    static ValueHolding fairqResponseHolding() {
        return new ResponseHolding(new ServletRequestEnd());
    }
}
