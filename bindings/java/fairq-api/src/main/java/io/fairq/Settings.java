package io.fairq;

import static io.fairq.Library.fq;

import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.function.LongFunction;

/** Options by key and value, as the library takes them. It judges them when something is opened. */
record Settings(Map<String, String> values) {
    static final Settings NONE = new Settings(Map.of());

    Settings with(String key, String value) {
        Map<String, String> more = new LinkedHashMap<>(values);
        more.put(Objects.requireNonNull(key, "key"), Objects.requireNonNull(value, key));
        return new Settings(Collections.unmodifiableMap(more));
    }

    Settings with(String key, long count) {
        if (count < 0) {
            throw Failure.invalid(key + ": " + count + " is negative; it has to be zero or more");
        }
        return with(key, Long.toString(count));
    }

    Settings with(String key, Duration duration) {
        long millis = Millis.of(duration, key);
        return with(key, millis == Abi.FOREVER ? "forever" : millis + "ms");
    }

    /** Makes a set of options for the time of one call. */
    <T> T in(LongFunction<T> call) {
        try (Scratch scratch = Scratch.take()) {
            scratch.check(fq().configNew(scratch.out(), scratch.error()));
            long config = scratch.outValue();
            try {
                values.forEach((key, value) -> set(scratch, config, key, value));
                return call.apply(config);
            } finally {
                fq().configFree(config);
            }
        }
    }

    private static void set(Scratch scratch, long config, String key, String value) {
        byte[] both = Texts.utf8(key + value, "option");
        int keyLen = Texts.utf8(key, "option").length;
        long at = scratch.text(both);
        scratch.check(fq().configSet(config, at, keyLen, at + keyLen, both.length - keyLen, scratch.error()));
    }

    /** Without passwords. */
    @Override
    public String toString() {
        Map<String, String> shown = new LinkedHashMap<>(values);
        shown.computeIfPresent("password", (key, password) -> "***");
        return shown.toString();
    }
}
