package io.fairq.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The worker of the line of all languages (S52), by itself. */
class LineWorkerTest {
    @Test
    void itsWords() throws Exception {
        try (Child worker = new Child(LineWorker.class, Store.REDIS.url(), StoreTest.newName())) {
            worker.order("start 7 3");
            assertTrue(worker.line().matches("granted 7 [0-9]+"));
            worker.order("start 8 1");
            worker.order("start 9 4");
            String refused = worker.line();
            assertTrue(refused.startsWith("failed 9 "), refused);
            worker.order("release 7");
            List<String> next = List.of(worker.line().replaceAll(" [0-9]{5,}", ""), worker.line().replaceAll(" [0-9]{5,}", ""));
            assertEquals(List.of("granted 8", "released 7"), next.stream().sorted().toList());
            assertEquals(List.of(), worker.finish());
        }
    }
}
