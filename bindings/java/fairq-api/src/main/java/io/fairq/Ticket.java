package io.fairq;

import static io.fairq.Library.fq;

import java.lang.ref.Reference;
import java.util.Optional;
import java.util.concurrent.Flow;

/**
 * One request on its way, to be cancelled or watched by any thread: from {@link Limiter#ticket}, for one request that is started
 * with it.
 */
public final class Ticket {
    private final Limiter limiter;
    private final long handle;
    private final Positions positions;

    Ticket(Limiter limiter) {
        this.limiter = limiter;
        this.positions = new Positions(limiter.executor());
        try (Scratch scratch = Scratch.take()) {
            scratch.check(fq().ticketNew(limiter.handle(), scratch.out(), scratch.error()));
            this.handle = scratch.outValue();
        }
        long freed = handle;
        Garbage.register(this, () -> fq().ticketFree(freed));
    }

    long handle() {
        return handle;
    }

    Positions feed() {
        return positions;
    }

    /**
     * Cancels the request, also one that is not started yet: that will end as cancelled. Does not block; the store is told in the
     * background.
     *
     * @return true: it is cancelled, and will not be granted; false: it had ended otherwise
     */
    public boolean cancel() {
        try (Scratch scratch = Scratch.take()) {
            int status = fq().cancel(handle, scratch.error());
            if (status == StatusCode.STALE.ordinal()) {
                scratch.failure(status);
                return false;
            }
            scratch.check(status);
            return true;
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Asks the store where the request stands. Blocks for a round trip.
     *
     * @return empty when it does not wait in line
     * @throws UnavailableException when the store cannot be reached
     * @throws ClosedException when the client was closed
     */
    public Optional<Position> position() {
        try {
            Optional<Position> position = Blocking.call(() -> read(true));
            position.ifPresent(positions::offer); // what was told once is no news any more
            return position;
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Where the request stood when the store last told. Does not block.
     *
     * @return empty when it does not wait in line
     */
    public Optional<Position> lastPosition() {
        try {
            return read(false);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private Optional<Position> read(boolean ask) {
        try (Scratch scratch = Scratch.take()) {
            long place = scratch.struct();
            scratch.check(ask
                    ? fq().ticketPosition(handle, place, scratch.error())
                    : fq().ticketLastPosition(handle, place, scratch.error()));
            long position = scratch.int64(Abi.Place.POSITION);
            return position == 0
                    ? Optional.empty()
                    : Optional.of(new Position(position, Millis.known(scratch.int64(Abi.Place.ESTIMATE_MS))));
        }
    }

    /**
     * The positions of the request, from the latest on, until it waits no more. Each subscriber is told in the client's
     * {@linkplain ClientOptions#executor executor}, and completed at the end, whatever that is; positions that it has not asked for
     * in time are replaced by later ones.
     *
     * @return always the same
     */
    public Flow.Publisher<Position> positions() {
        return positions;
    }

    @Override
    public String toString() {
        return "Ticket[limiter=" + limiter.name() + "]";
    }
}
