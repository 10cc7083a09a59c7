package io.fairq.tests;

import io.fairq.testing.Checks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** What this process has grown by. Its heap is there from the start, so that the rest is the library's, mostly. */
final class Memory {
    private static final int PAGE = 4096;
    private static final double MEGA = 1 << 20;

    private final double resident = resident();
    private final double heap = heap();

    /** In MiB. */
    static double resident() {
        try {
            return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * PAGE / MEGA;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static double heap() {
        Runtime runtime = Runtime.getRuntime();
        System.gc();
        return (runtime.totalMemory() - runtime.freeMemory()) / MEGA;
    }

    /** Fails when so many rounds have left something that does not go with the garbage. */
    void checkFlat(String what, int rounds) {
        Checks.eventually("the heap is as before", () -> heap() - heap < 3);
        Checks.eventually("and so is the rest", () -> resident() - resident < 16);
        System.out.printf(
                "%s, %,d rounds: resident %+.1f MiB, heap %+.1f MiB%n", what, rounds, resident() - resident, heap() - heap);
    }
}
