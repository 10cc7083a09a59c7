package io.fairq;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Durations and texts. */
class UnitsTest {
    @Test
    void durationsAreRoundedUp() {
        assertEquals(0, Millis.of(Duration.ZERO, "x"));
        assertEquals(1, Millis.of(Duration.ofNanos(1), "x"));
        assertEquals(1, Millis.of(Duration.ofMillis(1), "x"));
        assertEquals(2, Millis.of(Duration.ofNanos(1_000_001), "x"));
        assertEquals(1000, Millis.of(Duration.ofNanos(999_999_999), "x"));
        assertEquals(86_400_000, Millis.of(Duration.ofDays(1), "x"));
        assertThrows(InvalidException.class, () -> Millis.of(Duration.ofNanos(-1), "x"));
        assertThrows(InvalidException.class, () -> Millis.of(Duration.ofSeconds(-5, 999_999_999), "x"));
    }

    @Test
    void whatIsTooLongIsForEver() {
        assertEquals(Abi.FOREVER, Millis.of(Duration.ofSeconds(Long.MAX_VALUE), "x"));
        // The last two numbers mean something else.
        assertEquals(Abi.DEFAULT - 1, Millis.of(Duration.ofMillis(Abi.DEFAULT), "x"));
        assertEquals(Abi.DEFAULT - 1, Millis.of(Duration.ofMillis(Abi.FOREVER), "x"));
    }

    @Test
    void whatIsNotKnown() {
        assertEquals(Optional.empty(), Millis.known(Abi.FOREVER));
        assertEquals(Optional.of(Duration.ofMillis(5)), Millis.known(5));
    }

    @Test
    void texts() {
        assertArrayEquals("ü\0😀".getBytes(StandardCharsets.UTF_8), Texts.utf8("ü\0😀", "x"));
        assertThrows(InvalidException.class, () -> Texts.utf8("\udc00", "x"));
    }

    @Test
    void optionsAreImmutable() {
        LimiterOptions options = LimiterOptions.ofLimit(4);
        options.maxQueue(5).waitForever();
        assertEquals("{limit=4}", options.toString());
        assertEquals("{limit=4, max_queue=0, max_wait=1ms}", options.maxQueue(0).maxWait(Duration.ofNanos(1)).toString());
        assertEquals("{max_hold=forever}", LimiterChange.none().maxHold(Duration.ofSeconds(Long.MAX_VALUE)).toString());
        assertEquals("{paused=false, reset=true}", LimiterChange.none().paused(false).reset().toString());
        assertThrows(InvalidException.class, () -> options.maxQueue(-1));
    }
}
