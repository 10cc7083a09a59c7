package io.fairq.tests;

import io.fairq.Client;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import org.junit.jupiter.api.Test;

/** Requests that fail before they are started. */
class StartTest {
    private static final int ROUNDS = 200_000;

    @Test
    void theyLeaveNothingBehind() throws Exception {
        try (Client client = Client.open("memory:")) {
            Limiter limiter = client.limiter(StoreTest.newName(), LimiterOptions.ofLimit(1));
            startNone(limiter, ROUNDS / 10);
            Memory before = new Memory();
            startNone(limiter, ROUNDS);
            before.checkFlat("requests that are none", ROUNDS);
            limiter.acquire().close();
        }
    }

    private static void startNone(Limiter limiter, int rounds) throws InterruptedException {
        for (int round = 0; round < rounds; round++) {
            try {
                limiter.acquire(null);
                throw new AssertionError("there is nothing to ask for");
            } catch (NullPointerException expected) {
                // by what is no request
            }
        }
    }
}
