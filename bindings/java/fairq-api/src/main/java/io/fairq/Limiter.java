package io.fairq;

import static io.fairq.Library.fq;

import java.lang.ref.Reference;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Supplier;

/**
 * A named limit with a line in front of it, from {@link Client#limiter}. Any thread may use it. There is nothing to close: it goes
 * with its client, or with the garbage.
 */
public final class Limiter {
    private final Client client;
    private final String name;
    private final long handle;
    private final Mailbox mailbox;

    Limiter(Client client, String name, long handle, Mailbox mailbox) {
        this.client = client;
        this.name = name;
        this.handle = handle;
        this.mailbox = mailbox;
        Garbage.register(this, () -> fq().limiterFree(handle));
    }

    /**
     * Its name.
     *
     * @return as given to {@link Client#limiter}
     */
    public String name() {
        return name;
    }

    /**
     * The client that it was opened on.
     *
     * @return the client
     */
    public Client client() {
        return client;
    }

    long handle() {
        return handle;
    }

    Executor executor() {
        return mailbox.executor();
    }

    // --- permits

    /**
     * Waits in line for a permit, as long as the limiter says; see {@link #acquire(Request)}.
     *
     * @return a permit, to be closed
     * @throws InterruptedException when the thread is interrupted; the request is cancelled
     */
    public Permit acquire() throws InterruptedException {
        return acquire(Request.ofDefaults());
    }

    /**
     * Waits in line for a permit. Blocks until the request has ended: never longer than its wait and a little, whatever the store
     * does. The thread waits in Java: any number of them may, virtual ones too.
     *
     * @param request what is asked for
     * @return a permit, to be closed
     * @throws InterruptedException when the thread is interrupted; the request is cancelled, and a grant that was quicker goes back
     * @throws TimedOutException when the wait is over
     * @throws QueueFullException when the line is as long as it may be
     * @throws FairqException for what else there is; see its subclasses
     */
    public Permit acquire(Request request) throws InterruptedException {
        return enter(request, null);
    }

    /**
     * As {@link #acquire(Request)}, while other threads cancel or watch the request.
     *
     * @param request what is asked for
     * @param ticket one that no other request was started with
     * @return a permit, to be closed
     * @throws InterruptedException when the thread is interrupted; the request is cancelled, and a grant that was quicker goes back
     * @throws CancelledException when it was cancelled by the ticket
     * @throws FairqException for what else there is; see its subclasses
     */
    public Permit acquire(Request request, Ticket ticket) throws InterruptedException {
        return enter(request, Objects.requireNonNull(ticket, "ticket"));
    }

    private Permit enter(Request request, Ticket ticket) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException("interrupted before waiting for a permit of " + name);
        }
        checkOpen();
        try {
            Booking booking = mailbox.book(this, request, ticket, null);
            booking.await();
            Failure failure = booking.failure();
            if (failure != null) {
                throw failure.exception();
            }
            return new Permit(this, booking);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Takes a permit if that needs no waiting, passing nobody who waits; see {@link #tryAcquire(Request)}.
     *
     * @return a permit, to be closed; or none
     * @throws InterruptedException when the thread is interrupted
     */
    public Optional<Permit> tryAcquire() throws InterruptedException {
        return tryAcquire(Request.atOnce());
    }

    /**
     * Takes a permit if that needs no waiting, passing nobody who waits. Blocks for a round trip.
     *
     * @param request what is asked for; how long it would wait does not matter
     * @return a permit, to be closed; or none
     * @throws InterruptedException when the thread is interrupted; the request is cancelled, and a grant that was quicker goes back
     * @throws FairqException as {@link #acquire(Request)}, but for {@link TimedOutException} and {@link QueueFullException}
     */
    public Optional<Permit> tryAcquire(Request request) throws InterruptedException {
        try {
            return Optional.of(enter(request.waitingNot(), null));
        } catch (TimedOutException | QueueFullException notNow) {
            return Optional.empty();
        }
    }

    /**
     * A future permit, which waits in line as long as the limiter says; see {@link #acquireAsync(Request)}.
     *
     * @return the future
     */
    public CompletableFuture<Permit> acquireAsync() {
        return acquireAsync(Request.ofDefaults());
    }

    /**
     * A future permit. Does not block, and no thread waits. It completes in the client's
     * {@linkplain ClientOptions#executor executor}, exceptionally with what {@link #acquire(Request)} throws; or it is complete
     * when this returns.
     *
     * <p>Cancelling the future cancels the request; so does {@link CompletableFuture#orTimeout orTimeout}, and whatever else
     * completes it. A grant that was on its way goes back, and so does, with {@link CompletableFuture#cancel cancel}, one that is in
     * the future already, unless somebody has taken it: with {@code get}, {@code join} and the like, or by a stage that was made of
     * the future. (It does not learn of {@code anyOf}, nor of a stage that was made of another one and given this: who has the
     * permit by these must not cancel the future any more.) Cancelling a stage that depends on it cancels the request while that
     * waits; afterwards the permit is the stage's.
     *
     * @param request what is asked for
     * @return the future
     */
    public CompletableFuture<Permit> acquireAsync(Request request) {
        return start(request, null);
    }

    /**
     * As {@link #acquireAsync(Request)}, with a ticket to watch the request, or to cancel it: then the future fails with
     * {@link CancelledException}.
     *
     * @param request what is asked for
     * @param ticket one that no other request was started with
     * @return the future
     */
    public CompletableFuture<Permit> acquireAsync(Request request, Ticket ticket) {
        return start(request, Objects.requireNonNull(ticket, "ticket"));
    }

    private CompletableFuture<Permit> start(Request request, Ticket ticket) {
        Objects.requireNonNull(request, "request");
        if (mailbox.isEnded()) {
            return CompletableFuture.failedFuture(Failure.CLOSED.exception());
        }
        return PermitFuture.start(this, mailbox, request, ticket);
    }

    /**
     * A ticket for one request. Does not block.
     *
     * @return a ticket that serves for one request
     */
    public Ticket ticket() {
        return new Ticket(this);
    }

    // --- operation

    /**
     * Asks how the limiter stands. Blocks for a round trip.
     *
     * @return how it stands
     * @throws NoSuchLimiterException before anybody has used it
     * @throws UnavailableException when the store cannot be reached
     * @throws ClosedException when the client is closed
     * @throws ConfigurationException when the client or the server is not set up right
     */
    public LimiterStatus status() {
        return blocking(this::ask);
    }

    /**
     * As {@link #status}, in another thread.
     *
     * @return completes in the client's {@linkplain ClientOptions#executor executor}, exceptionally with what {@link #status} throws
     */
    public CompletableFuture<LimiterStatus> statusAsync() {
        return Blocking.async(this::ask, executor());
    }

    private LimiterStatus ask() {
        try (Scratch scratch = Scratch.take()) {
            scratch.int32(0, Abi.Info.SIZE);
            scratch.check(fq().limiterStatus(handle, scratch.struct(), scratch.error()));
            return LimiterStatus.read(name, scratch);
        }
    }

    /**
     * Changes the limit while the limiter runs, as its operator. Lowering it revokes nothing; nobody is admitted until use is below
     * it. Stands above what processes declare, until it is reset. Blocks for two round trips.
     *
     * @param limit how much cost may be held at once
     * @throws UnknownOutcomeException when the answer was lost
     * @throws FairqException as {@link #status}
     */
    public void setLimit(long limit) {
        configure(LimiterChange.none().limit(limit));
    }

    /**
     * Changes settings while the limiter runs, as its operator. Blocks for two round trips.
     *
     * @param change what is to change
     * @throws InvalidException for what means nothing
     * @throws UnknownOutcomeException when the answer was lost
     * @throws FairqException as {@link #status}
     */
    public void configure(LimiterChange change) {
        blocking(() -> change.settings().in(this::configureNow));
    }

    private Void configureNow(long changes) {
        try (Scratch scratch = Scratch.take()) {
            scratch.check(fq().limiterConfigure(handle, changes, scratch.error()));
        }
        return null;
    }

    private <T> T blocking(Supplier<T> call) {
        try {
            return Blocking.call(call);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private void checkOpen() {
        if (mailbox.isEnded()) {
            throw Failure.CLOSED.exception();
        }
    }

    @Override
    public String toString() {
        return "Limiter[" + name + "]";
    }
}
