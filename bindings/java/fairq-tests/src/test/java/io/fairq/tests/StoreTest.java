package io.fairq.tests;

import io.fairq.Client;
import io.fairq.ClientOptions;
import io.fairq.ClosedException;
import io.fairq.Limiter;
import io.fairq.LimiterOptions;
import io.fairq.NoSuchLimiterException;
import io.fairq.testing.Checks;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A test with a client of one store; at its end nobody holds or waits in any limiter of that. */
abstract class StoreTest {
    private static final AtomicInteger NAMES = new AtomicInteger();

    final Store store;
    Client client;
    private final List<Limiter> limiters = new ArrayList<>();

    StoreTest(Store store) {
        this.store = store;
    }

    ClientOptions options() {
        return ClientOptions.defaults();
    }

    @BeforeEach
    void open() {
        client = Client.open(store.url(), options());
    }

    static String newName() {
        return "test:" + ProcessHandle.current().pid() + ":" + NAMES.incrementAndGet();
    }

    Limiter limiter(LimiterOptions options) {
        Limiter limiter = client.limiter(newName(), options);
        limiters.add(limiter);
        return limiter;
    }

    Limiter limiter(long limit) {
        return limiter(LimiterOptions.ofLimit(limit));
    }

    @AfterEach
    void nothingIsLeft() {
        try {
            limiters.forEach(Checks::idle);
        } catch (AssertionError error) {
            if (!(error.getCause() instanceof ClosedException || error.getCause() instanceof NoSuchLimiterException)) {
                throw error;
            }
        } finally {
            client.close();
        }
    }
}
