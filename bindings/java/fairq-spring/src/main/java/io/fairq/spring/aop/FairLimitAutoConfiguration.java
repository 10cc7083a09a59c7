package io.fairq.spring.aop;

import io.fairq.spring.FairqAutoConfiguration;
import io.fairq.spring.Limiters;
import org.springframework.aop.Advisor;
import org.springframework.aop.support.DefaultPointcutAdvisor;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;

/** Puts the limit before methods with {@link io.fairq.spring.FairLimit}. */
@AutoConfiguration(after = {FairqAutoConfiguration.class, AopAutoConfiguration.class})
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
public class FairLimitAutoConfiguration {
    /** Inside of method security, outside of transactions, whose advisors are last. */
    static final int ORDER = Ordered.LOWEST_PRECEDENCE - 100;

    /** Made by Spring. */
    public FairLimitAutoConfiguration() {}

    /** What is needed for advisors is made before all other beans: it looks those up later. */
    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static LimitedMethods fairqLimitedMethods(
            BeanFactory beans, Environment environment, ObjectProvider<AsyncHolding> holdings) {
        return new LimitedMethods(environment, new LabelExpressions(beans), holdings);
    }

    @Bean
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static Advisor fairLimitAdvisor(
            LimitedMethods methods,
            ObjectProvider<Limiters> limiters,
            ObjectProvider<ValueHolding> values,
            ObjectProvider<RequestEnd> end) {
        FairLimitInterceptor interceptor = new FairLimitInterceptor(methods, limiters, values, end);
        DefaultPointcutAdvisor advisor = new DefaultPointcutAdvisor(new FairLimitPointcut(methods), interceptor);
        advisor.setOrder(ORDER);
        return advisor;
    }

    /** A name that is written wrong in the configuration is found at the start, and not with the first call. */
    @Bean
    static SmartInitializingSingleton fairqLimiterNames(LimitedMethods methods, ObjectProvider<Limiters> limiters) {
        return () -> methods.limiters().forEach(name -> limiters.getObject().get(name));
    }

    @Bean
    static AsyncHolding fairqStageHolding() {
        return new StageHolding();
    }

    @Bean
    static ValueHolding fairqStreamHolding() {
        return new StreamHolding();
    }
}
