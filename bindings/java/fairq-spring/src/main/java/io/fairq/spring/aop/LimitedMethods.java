package io.fairq.spring.aop;

import io.fairq.FairqException;
import io.fairq.Request;
import io.fairq.spring.FairLimit;
import io.fairq.spring.FairqSetupException;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.MethodClassKey;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.core.env.Environment;
import org.springframework.expression.Expression;

/** The methods with {@link FairLimit}; mistakes are found when their beans are made. */
final class LimitedMethods {
    private static final String FOREVER = "forever";

    private final Environment environment;
    private final LabelExpressions labels;
    private final ObjectProvider<AsyncHolding> holdings;
    private final Map<MethodClassKey, Optional<LimitedMethod>> known = new ConcurrentHashMap<>();

    LimitedMethods(Environment environment, LabelExpressions labels, ObjectProvider<AsyncHolding> holdings) {
        this.environment = environment;
        this.labels = labels;
        this.holdings = holdings;
    }

    LabelExpressions labels() {
        return labels;
    }

    /** The limiters that the methods which are known need. */
    Set<String> limiters() {
        return known.values().stream()
                .flatMap(Optional::stream)
                .map(LimitedMethod::limiter)
                .collect(Collectors.toSet());
    }

    Optional<LimitedMethod> find(Method method, Class<?> type) {
        MethodClassKey key = new MethodClassKey(method, type);
        Optional<LimitedMethod> there = known.get(key);
        if (there == null) {
            there = read(method, type); // which may make beans, and come back here
            known.putIfAbsent(key, there);
        }
        return there;
    }

    private Optional<LimitedMethod> read(Method called, Class<?> type) {
        Method method = AopUtils.getMostSpecificMethod(called, type);
        FairLimit limit = AnnotatedElementUtils.findMergedAnnotation(method, FairLimit.class);
        if (limit == null) {
            return Optional.empty();
        }
        try {
            return Optional.of(read(limit, method, type));
        } catch (IllegalArgumentException | FairqException error) { // no duration, no cost, no placeholder
            throw wrong(method, error.getMessage(), "Correct its @FairLimit.", error);
        }
    }

    private LimitedMethod read(FairLimit limit, Method method, Class<?> type) {
        ResolvableType returned = ResolvableType.forMethodReturnType(method, type);
        Request request = waiting(text(limit.maxWait())).cost(limit.cost());
        Expression label = limit.label().isEmpty() ? null : labels.parse(text(limit.label()));
        AsyncHolding async = holdings.orderedStream()
                .filter(holding -> holding.accepts(returned))
                .findFirst()
                .orElse(null);
        if (async == null) {
            LateEnds.refusal(method, returned).ifPresent(why -> {
                throw wrong(method, why, "Return one of the types that @FairLimit lists.", null);
            });
        }
        return new LimitedMethod(text(limit.value()), request, label, async);
    }

    private static Request waiting(String wait) {
        if (wait.isEmpty()) {
            return Request.ofDefaults();
        }
        return wait.equals(FOREVER) ? Request.waitForever() : Request.ofMaxWait(DurationStyle.detectAndParse(wait));
    }

    private String text(String written) {
        return environment.resolveRequiredPlaceholders(written);
    }

    private static FairqSetupException wrong(Method method, String why, String action, Exception cause) {
        return new FairqSetupException("@FairLimit of " + method + ": " + why, action, cause);
    }
}
