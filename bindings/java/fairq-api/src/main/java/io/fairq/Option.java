package io.fairq;

import static io.fairq.Library.fq;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * An option that there is, for those who configure by key and value: see {@link ClientOptions#option},
 * {@link LimiterOptions#option} and {@link LimiterChange#option}.
 *
 * @param scope what it is an option of
 * @param key its name
 * @param defaultValue its default, as it would be written in a configuration file
 * @param doc what it does
 */
public record Option(Scope scope, String key, String defaultValue, String doc) {
    /** What has options. */
    public enum Scope {
        // In the order of the constants FQ_SCOPE_.

        /** A client, when it is opened. */
        CLIENT,
        /** A limiter, when it is opened. */
        LIMITER,
        /** A limiter that runs, by its operator. */
        CHANGE
    }

    /**
     * All options that there are. Does not block.
     *
     * @return those of this version of the library
     */
    public static List<Option> all() {
        try (Scratch scratch = Scratch.take()) {
            long first = fq().options(scratch.count());
            int count = Math.toIntExact(scratch.countValue());
            ByteBuffer rows = fq().memory(first, (long) count * Abi.Option.SIZE).order(ByteOrder.nativeOrder());
            List<Option> options = new ArrayList<>();
            for (int row = 0; row < count; row++) {
                options.add(read(rows, row * Abi.Option.SIZE));
            }
            return List.copyOf(options);
        }
    }

    private static Option read(ByteBuffer rows, int at) {
        return new Option(
                Scope.values()[rows.getInt(at + Abi.Option.SCOPE)],
                fq().string(rows.getLong(at + Abi.Option.KEY)),
                fq().string(rows.getLong(at + Abi.Option.DEFAULT_VALUE)),
                fq().string(rows.getLong(at + Abi.Option.DOC)));
    }
}
