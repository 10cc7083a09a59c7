package io.fairq.bench;

import io.fairq.Client;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.Permit;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.util.Statistics;

/**
 * Calls on memory that need no waiting. Many short iterations, of which the quickest and the median are told: on a machine that
 * does other things as well a mean says more about these. {@code tests/c/bench.c} is the same from C.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 10, time = 200, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 60, time = 50, timeUnit = TimeUnit.MILLISECONDS)
@Fork(1)
public class AcquireBench {
    private Client client;
    private Limiter limiter;
    private Permit held;

    /** Opens a limiter. */
    @Setup
    public void open() throws InterruptedException {
        client = Client.open("memory:bench");
        limiter = client.limiter("x", LimiterOptions.ofLimit(2));
        held = limiter.acquire();
    }

    /** Closes all. */
    @TearDown
    public void close() {
        held.close();
        client.close();
    }

    /** The usual. */
    @Benchmark
    public void acquireAndClose() throws InterruptedException {
        limiter.acquire().close();
    }

    /** With a future. */
    @Benchmark
    public void acquireAsyncAndClose() {
        limiter.acquireAsync().join().close();
    }

    /** A look. */
    @Benchmark
    public boolean isValid() {
        return held.isValid();
    }

    /**
     * Runs all with each provider that this Java has.
     *
     * @param arguments none
     * @throws RunnerException when a run fails
     */
    public static void main(String[] arguments) throws RunnerException {
        boolean hasForeign = Runtime.version().feature() >= 22;
        for (String provider : hasForeign ? List.of("jna", "ffm") : List.of("jna")) {
            OptionsBuilder options = new OptionsBuilder();
            options.include(AcquireBench.class.getName());
            options.jvmArgsAppend("-Dfairq.provider=" + provider);
            if (hasForeign) {
                options.jvmArgsAppend("--enable-native-access=ALL-UNNAMED", "-Dfairq.provider=" + provider);
            }
            tell(provider, new Runner(options.build()).run());
        }
    }

    private static void tell(String provider, Collection<RunResult> results) {
        for (RunResult result : results) {
            Statistics ns = result.getPrimaryResult().getStatistics();
            String name = result.getParams().getBenchmark();
            System.out.printf(
                    "%s %-22s lowest %,6.0f ns, median %,6.0f ns%n",
                    provider, name.substring(name.lastIndexOf('.') + 1), ns.getMin(), ns.getPercentile(50));
        }
    }
}
