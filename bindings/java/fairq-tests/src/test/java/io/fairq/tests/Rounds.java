package io.fairq.tests;

/** How many rounds a test makes that meets races by chance. */
final class Rounds {
    private Rounds() {}

    /** {@code FAIRQ_TEST_ROUNDS}, or 100,000 in memory, and fewer where each takes its round trips. */
    static int of(Store store) {
        String asked = System.getenv("FAIRQ_TEST_ROUNDS");
        return asked != null ? Integer.parseInt(asked) : store == Store.MEMORY ? 100_000 : 10_000;
    }
}
