package io.fairq.spring.aop;

import io.fairq.spring.FairLimit;
import java.lang.reflect.Method;
import org.springframework.aop.ClassFilter;
import org.springframework.aop.support.StaticMethodMatcherPointcut;
import org.springframework.core.annotation.AnnotationUtils;

/** Methods with {@link FairLimit}. */
final class FairLimitPointcut extends StaticMethodMatcherPointcut {
    private final LimitedMethods methods;

    FairLimitPointcut(LimitedMethods methods) {
        this.methods = methods;
        setClassFilter((ClassFilter) type -> AnnotationUtils.isCandidateClass(type, FairLimit.class));
    }

    @Override
    public boolean matches(Method method, Class<?> type) {
        return methods.find(method, type).isPresent();
    }
}
