package io.fairq.micrometer;

import io.fairq.FairqException;
import io.fairq.Limiter;
import io.fairq.LimiterStatus;
import java.util.function.ToDoubleFunction;

/** How a limiter stood a moment ago: a scrape reads four gauges, and is to ask the store once. */
final class Standing {
    final Limiter limiter;
    private LimiterStatus last;
    private long until = System.nanoTime();

    Standing(Limiter limiter) {
        this.limiter = limiter;
    }

    double read(ToDoubleFunction<LimiterStatus> what) {
        LimiterStatus status = look();
        return status == null ? Double.NaN : what.applyAsDouble(status);
    }

    private synchronized LimiterStatus look() {
        if (System.nanoTime() - until >= 0) {
            last = ask();
            until = System.nanoTime() + FairqMetrics.FRESH.toNanos();
        }
        return last;
    }

    private LimiterStatus ask() {
        try {
            return limiter.status();
        } catch (FairqException noAnswer) {
            return null;
        }
    }
}
