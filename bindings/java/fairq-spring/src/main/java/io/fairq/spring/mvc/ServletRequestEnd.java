package io.fairq.spring.mvc;

import io.fairq.spring.aop.RequestEnd;
import org.springframework.web.context.request.NativeWebRequest;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.context.request.async.CallableProcessingInterceptor;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.DeferredResultProcessingInterceptor;
import org.springframework.web.context.request.async.WebAsyncManager;
import org.springframework.web.context.request.async.WebAsyncUtils;

/**
 * Sees the end of asynchronous requests. The servlet container tells Spring MVC, and that all who are interested; where it does
 * not, {@link WatchedResponse} does.
 */
final class ServletRequestEnd implements RequestEnd {
    @Override
    public void whenOver(Runnable callback) {
        RequestAttributes attributes = RequestContextHolder.getRequestAttributes();
        if (attributes instanceof ServletRequestAttributes servlet) {
            WatchedResponse.whenBroken(servlet.getRequest(), callback);
            WebAsyncManager manager = WebAsyncUtils.getAsyncManager(servlet.getRequest());
            manager.registerDeferredResultInterceptor(callback, new OfDeferredResult(callback));
            manager.registerCallableInterceptor(callback, new OfCallable(callback));
        }
    }

    private record OfDeferredResult(Runnable callback) implements DeferredResultProcessingInterceptor {
        @Override
        public <T> void afterCompletion(NativeWebRequest request, DeferredResult<T> result) {
            callback.run();
        }
    }

    private record OfCallable(Runnable callback) implements CallableProcessingInterceptor {
        @Override
        public <T> void afterCompletion(NativeWebRequest request, java.util.concurrent.Callable<T> task) {
            callback.run();
        }
    }
}
