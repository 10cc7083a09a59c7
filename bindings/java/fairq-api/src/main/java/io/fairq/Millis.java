package io.fairq;

import java.time.Duration;
import java.util.Optional;

/** Durations of callers, as the library takes them; and back. */
final class Millis {
    private static final int NANOS = 1_000_000;

    private Millis() {}

    /** Whole milliseconds, rounded up, so that a short time never becomes none; what is too long is for ever. */
    static long of(Duration duration, String what) {
        if (duration.isNegative()) {
            throw Failure.invalid(what + ": " + duration + " is negative; it has to be zero or more");
        }
        try {
            long millis = Math.multiplyExact(duration.getSeconds(), 1000L);
            long more = (duration.getNano() + NANOS - 1) / NANOS;
            return Math.min(Math.addExact(millis, more), Abi.DEFAULT - 1);
        } catch (ArithmeticException tooLong) {
            return Abi.FOREVER;
        }
    }

    /** Milliseconds of the library; empty for ever, or where it does not know. */
    static Optional<Duration> known(long millis) {
        return millis < 0 || millis == Abi.FOREVER ? Optional.empty() : Optional.of(Duration.ofMillis(millis));
    }
}
