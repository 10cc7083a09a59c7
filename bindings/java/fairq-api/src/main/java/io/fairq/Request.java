package io.fairq;

import java.time.Duration;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * What is asked for: a permit of cost 1, unless {@link #cost} says otherwise. Immutable, and good for any number of requests: each
 * method answers a new one.
 */
public final class Request {
    private static final byte[] NO_LABEL = {};
    private static final Request DEFAULTS = new Request(Abi.DEFAULT, 1, NO_LABEL, null);
    private static final Request FOREVER = new Request(Abi.FOREVER, 1, NO_LABEL, null);
    private static final Request AT_ONCE = new Request(0, 1, NO_LABEL, null);

    private final long maxWaitMs;
    private final long cost;
    private final byte[] label;
    private final Consumer<Position> onPosition;

    private Request(long maxWaitMs, long cost, byte[] label, Consumer<Position> onPosition) {
        this.maxWaitMs = maxWaitMs;
        this.cost = cost;
        this.label = label;
        this.onPosition = onPosition;
    }

    /**
     * A request that waits as long as the limiter says.
     *
     * @return the request
     */
    public static Request ofDefaults() {
        return DEFAULTS;
    }

    /**
     * A request that waits in line for so long.
     *
     * @param wait rounded up to milliseconds; zero: it has a permit at once, or not at all
     * @return the request
     * @throws InvalidException for less than zero
     */
    public static Request ofMaxWait(Duration wait) {
        return DEFAULTS.maxWait(wait);
    }

    /**
     * A request that waits for ever.
     *
     * @return the request
     */
    public static Request waitForever() {
        return FOREVER;
    }

    /**
     * A request that has a permit at once, or not at all.
     *
     * @return the request
     */
    public static Request atOnce() {
        return AT_ONCE;
    }

    /**
     * How long it waits in line.
     *
     * @param wait rounded up to milliseconds; zero: it has a permit at once, or not at all
     * @return this request, with that wait
     * @throws InvalidException for less than zero
     */
    public Request maxWait(Duration wait) {
        return new Request(Millis.of(wait, "maxWait"), cost, label, onPosition);
    }

    /**
     * How much of the limit the permit takes.
     *
     * @param cost at least 1
     * @return this request, with that cost
     * @throws InvalidException for less than 1
     */
    public Request cost(long cost) {
        if (cost < 1) {
            throw Failure.invalid("cost: " + cost + " is no cost; it has to be at least 1");
        }
        return new Request(maxWaitMs, cost, label, onPosition);
    }

    /**
     * What operators see in the lists of holders and waiters.
     *
     * @param label up to 256 bytes of UTF-8
     * @return this request, with that label
     * @throws InvalidException for what cannot be written in UTF-8
     */
    public Request label(String label) {
        return new Request(maxWaitMs, cost, Texts.utf8(label, "label"), onPosition);
    }

    /**
     * Whom to tell each new position in line. Called in the client's {@linkplain ClientOptions#executor executor}, one call after the
     * other; positions that it is too slow for are passed over.
     *
     * @param listener whom; what it throws is logged
     * @return this request, with that listener
     */
    public Request onPosition(Consumer<Position> listener) {
        return new Request(maxWaitMs, cost, label, Objects.requireNonNull(listener, "listener"));
    }

    Request waitingNot() {
        return new Request(0, cost, label, onPosition);
    }

    long cost() {
        return cost;
    }

    Consumer<Position> listener() {
        return onPosition;
    }

    /** Writes it into the {@code fq_request} that is there. */
    void write(Scratch to, boolean reportsPosition) {
        to.int32(0, Abi.Asked.SIZE);
        to.int32(Abi.Asked.FLAGS, Abi.REPORT_PERMIT | (reportsPosition ? Abi.REPORT_POSITION : 0));
        to.int64(Abi.Asked.MAX_WAIT_MS, maxWaitMs);
        to.int64(Abi.Asked.COST, cost);
        to.int64(Abi.Asked.LABEL, label.length == 0 ? 0 : to.text(label));
        to.int64(Abi.Asked.LABEL_LEN, label.length);
    }
}
