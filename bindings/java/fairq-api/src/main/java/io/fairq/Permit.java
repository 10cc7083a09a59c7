package io.fairq;

import static io.fairq.Library.fq;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;

/**
 * A held slot of a limiter. It is given back by {@link #close}, by {@link #release}, or at last, with a warning in the log, when it
 * is collected as garbage. Any thread may use it.
 */
public final class Permit implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("io.fairq");

    private final Limiter limiter;
    private final Booking booking;
    private final long fence;
    private final long order;
    private final Cleaner.Cleanable leak;
    private final Queue<Consumer<? super PermitLostException>> listeners = new ConcurrentLinkedQueue<>();

    Permit(Limiter limiter, Booking booking) {
        this.limiter = limiter;
        this.booking = booking;
        long fenceNow = fq().permitFence(booking.permit());
        this.fence = fenceNow;
        this.order = fq().permitOrder(booking.permit());
        this.leak = Garbage.register(this, () -> booking.leaked(fenceNow));
    }

    /**
     * The limiter that it is a permit of.
     *
     * @return the one that it came from
     */
    public Limiter limiter() {
        return limiter;
    }

    /**
     * How much of the limit it takes.
     *
     * @return at least 1
     */
    public long cost() {
        return booking.cost();
    }

    /**
     * A number that grows with every grant of the limiter: let the guarded resource refuse whoever comes with a smaller one.
     *
     * @return 0 for a permit admitted locally while the store was away
     */
    public long fence() {
        return fence;
    }

    /**
     * The request's place in line, given once at its arrival.
     *
     * @return microseconds of the store's clock
     */
    public long order() {
        return order;
    }

    /**
     * Whether nobody else can have the slot: it was neither lost nor given back, and the store has confirmed it within the lease. A
     * local, conservative judgement; does not block.
     *
     * @return true if so
     */
    public boolean isValid() {
        return booking.isHeld() && fq().permitIsValid(booking.permit()) != 0;
    }

    /**
     * How it stands. A local, conservative judgement; does not block.
     *
     * @return the state; {@link PermitState#LOST} also when it was lost first and then given back
     */
    public PermitState state() {
        if (booking.isHeld()) {
            int state = fq().permitState(booking.permit());
            if (state != Abi.PERMIT_STATE_NONE) {
                return PermitState.of(state);
            }
        }
        return booking.lost() != null ? PermitState.LOST : PermitState.RELEASED;
    }

    /**
     * Calls a listener once, should the permit be lost before it is given back; soon, if it is lost already. In the client's
     * {@linkplain ClientOptions#executor executor}. Does not block. A listener that knows the permit does not keep it from being
     * garbage: whoever does the guarded work has to.
     *
     * @param listener is told why; what it throws is logged
     */
    public void onLost(Consumer<? super PermitLostException> listener) {
        listeners.add(Objects.requireNonNull(listener, "listener"));
        booking.watch(this);
        if (booking.lost() != null) {
            tellLost();
        }
    }

    void tellLost() {
        PermitLostException why = booking.lost();
        for (var listener = listeners.poll(); listener != null; listener = listeners.poll()) {
            var told = listener;
            Tasks.run(limiter.executor(), () -> tell(told, why));
        }
    }

    private static void tell(Consumer<? super PermitLostException> listener, PermitLostException why) {
        try {
            listener.accept(why);
        } catch (RuntimeException error) {
            LOG.log(System.Logger.Level.ERROR, "a listener for a lost permit failed", error);
        }
    }

    /**
     * Gives the slot back in the background, if that has not been done. Never blocks, never throws; may be called again.
     */
    @Override
    public void close() {
        try {
            booking.giveBack();
            leak.clean();
        } finally {
            Reference.reachabilityFence(this); // else it may be taken for a leak just now
        }
    }

    /**
     * Gives the slot back, and waits for the store's answer: at most about twice {@link ClientOptions#ioTimeout}; after that the
     * release goes on in the background. Blocks, and no interrupt ends that.
     *
     * @throws StaleException when it had been given back before
     * @throws PermitLostException when it had been lost before
     * @throws UnavailableException when there was no answer in time
     * @throws ClosedException when the client was closed
     */
    public void release() {
        Blocking.call(this::releaseHere);
    }

    /**
     * As {@link #release}, in another thread.
     *
     * @return completes in the client's {@linkplain ClientOptions#executor executor}, exceptionally with what {@link #release} throws
     */
    public CompletableFuture<Void> releaseAsync() {
        return Blocking.async(this::releaseHere, limiter.executor());
    }

    private Void releaseHere() {
        if (!booking.isHeld()) {
            throw new StaleException("the permit had been given back already", false, null);
        }
        try (Scratch scratch = Scratch.take()) {
            int status = fq().release(booking.permit(), scratch.error());
            Failure failure = status == 0 ? null : scratch.failure(status);
            if (failure != null && failure.status() == StatusCode.PERMIT_LOST) {
                booking.lose(failure.lost());
            }
            close();
            if (failure != null) {
                throw failure.exception();
            }
        }
        return null;
    }

    @Override
    public String toString() {
        return "Permit[limiter=" + limiter.name() + ", cost=" + cost() + ", fence=" + fence + "]";
    }
}
