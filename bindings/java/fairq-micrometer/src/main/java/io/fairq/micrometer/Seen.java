package io.fairq.micrometer;

import io.fairq.LimiterStatus;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.List;
import java.util.function.ToDoubleFunction;

/** What was last seen of a limiter, and the gauges that show it: they hold on to this weakly. */
final class Seen {
    private final List<Gauge> gauges;
    private volatile LimiterStatus status;

    Seen(MeterRegistry registry, Tags tags) {
        gauges = List.of(
                gauge(registry, tags, "fairq.limit", "How much cost may be held at once", LimiterStatus::limit),
                gauge(registry, tags, "fairq.used", "The cost that is held", LimiterStatus::used),
                gauge(registry, tags, "fairq.holders", "Permits that are held", LimiterStatus::holders),
                gauge(registry, tags, "fairq.waiting", "Requests in line", LimiterStatus::waiting));
    }

    private Gauge gauge(
            MeterRegistry registry, Tags tags, String name, String description, ToDoubleFunction<LimiterStatus> number) {
        return Gauge.builder(name, this, seen -> seen.number(number))
                .description(description)
                .tags(tags)
                .register(registry);
    }

    private double number(ToDoubleFunction<LimiterStatus> of) {
        LimiterStatus now = status;
        return now == null ? Double.NaN : of.applyAsDouble(now);
    }

    /** Null: there was no answer. */
    void show(LimiterStatus answer) {
        status = answer;
    }

    void removeFrom(MeterRegistry registry) {
        gauges.forEach(registry::remove);
    }
}
