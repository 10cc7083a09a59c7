package io.fairq.spring.aop;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.springframework.core.ResolvableType;

/** Holds permits for futures. */
final class StageHolding implements AsyncHolding {
    @Override
    public boolean accepts(ResolvableType returned) {
        Class<?> type = returned.resolve(Object.class);
        return CompletionStage.class.isAssignableFrom(type) && type.isAssignableFrom(CompletableFuture.class);
    }

    @Override
    public Object call(LimitedCall call) {
        HeldFuture future = new HeldFuture(call);
        future.start();
        call.end().whenOver(() -> future.cancel(true));
        return future;
    }
}
