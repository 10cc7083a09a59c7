package io.fairq.tests;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** What this process has grown since a moment. Its heap is there from the start, so that the rest is the library's, mostly. */
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
        for (int turn = 0; turn < 3; turn++) {
            System.gc(); // what has been reported as garbage goes with the next
        }
        return (runtime.totalMemory() - runtime.freeMemory()) / MEGA;
    }

    /** Fails when so many rounds have left something. */
    void checkFlat(String what, int rounds) {
        double residentGrowth = resident() - resident;
        double heapGrowth = heap() - heap;
        System.out.printf(
                "%s, %,d rounds: resident %+.1f MiB, heap %+.1f MiB%n", what, rounds, residentGrowth, heapGrowth);
        assertTrue(residentGrowth < 16, "resident memory has grown by MiB: " + residentGrowth);
        assertTrue(heapGrowth < 3, "the heap has grown by MiB: " + heapGrowth);
    }
}
