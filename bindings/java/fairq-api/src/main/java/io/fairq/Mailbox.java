package io.fairq;

import static io.fairq.Library.fq;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * The completion queue of a client, and the thread that looks into it.
 *
 * <p>That thread sleeps in Java until somebody wants news, and only then in the library: a request that is granted while it is
 * started, as one in memory is, finds its end in the queue by itself, and to wake a thread for it would cost more than the rest.
 * So whoever starts a request first looks itself. What is still open after that is counted in {@link #wanted},
 * and so are permits with a listener. Two threads may take news of one request in the wrong order; {@link Booking} does not mind.
 *
 * <p>The thread leads to no {@link Client} but by requests that wait, so that a client is collected which nobody has any more.
 */
final class Mailbox implements Runnable {
    private static final int BATCH = 256;
    private static final long JOIN_MILLIS = 2000;
    private static final System.Logger LOG = System.getLogger("io.fairq");
    private static final AtomicInteger NUMBER = new AtomicInteger();

    private final Executor executor;
    private final Observer observer;
    private final long queue;
    private final AtomicLong tokens = new AtomicLong();
    private final ConcurrentHashMap<Long, Booking> bookings = new ConcurrentHashMap<>();
    private final AtomicInteger wanted = new AtomicInteger();
    private final Thread poller = Blocking.daemon(this, "fairq-poller-" + NUMBER.incrementAndGet());
    private volatile boolean ended;

    Mailbox(Executor executor, Observer observer) {
        this.executor = executor;
        this.observer = observer;
        try (Scratch scratch = Scratch.take()) {
            scratch.check(fq().completionsNew(scratch.out(), scratch.error()));
            queue = scratch.outValue();
        }
        poller.start();
    }

    Executor executor() {
        return executor;
    }

    // --- requests

    /**
     * Starts a request. When this returns it may have ended already; else somebody looks for its end.
     *
     * @throws FairqException when it could not be started; then there is no end to be told
     */
    Booking book(Limiter limiter, Request request, Ticket given, PermitFuture future) {
        long token = tokens.incrementAndGet();
        try (Scratch scratch = Scratch.take()) {
            long ticket = given != null ? given.handle() : newTicket(limiter, scratch);
            Booking booking;
            boolean started = false;
            try {
                booking = new Booking(this, limiter.name(), request, token, given, ticket, future);
                bookings.put(token, booking);
                start(limiter, request, booking, scratch);
                started = true;
            } finally {
                if (!started) {
                    withdraw(token, given == null ? ticket : 0);
                }
            }
            take(scratch);
            if (!booking.isSettled()) {
                booking.attend();
            }
            if (ended) {
                booking.settle(0, Failure.CLOSED); // the poller may have failed before it was there
            }
            return booking;
        }
    }

    private static long newTicket(Limiter limiter, Scratch scratch) {
        scratch.check(fq().ticketNew(limiter.handle(), scratch.out(), scratch.error()));
        return scratch.outValue();
    }

    private void start(Limiter limiter, Request request, Booking booking, Scratch scratch) {
        request.write(scratch, booking.reportsPosition());
        int status = fq().acquireStart(
                limiter.handle(), scratch.struct(), booking.ticket(), queue, booking.token(), scratch.error());
        if (status != 0) {
            Failure failure = scratch.failure(status);
            throw (ended ? Failure.CLOSED : failure).exception();
        }
    }

    /** It was not started, and nothing will be told of it. */
    private void withdraw(long token, long ownTicket) {
        bookings.remove(token);
        fq().ticketFree(ownTicket);
    }

    /** Its permit is over, or there will be none. */
    void forget(Booking booking) {
        bookings.remove(booking.token());
    }

    long now() {
        return observer == Observer.NONE ? 0 : System.nanoTime();
    }

    void observe(Consumer<Observer> news) {
        if (observer == Observer.NONE) {
            return;
        }
        try {
            news.accept(observer);
        } catch (RuntimeException | Error error) { // as of a library for metrics that is there in part: waiters must not suffer
            LOG.log(System.Logger.Level.ERROR, "an observer failed", error);
        }
    }

    // --- news

    /** Somebody waits for news that do not come to a thread of its own. */
    void want() {
        if (wanted.getAndIncrement() == 0) {
            LockSupport.unpark(poller);
        }
    }

    void unwant() {
        wanted.decrementAndGet();
    }

    /** The poller's work. */
    @Override
    public void run() {
        try (Scratch scratch = Scratch.take()) {
            int size = BATCH * Abi.Event.SIZE;
            var memory = Scratch.direct(size);
            Events events = new Events(memory, 0, fq().address(memory));
            while (!ended) {
                if (wanted.get() <= 0) {
                    LockSupport.park(this);
                    Thread.interrupted(); // or it would not sleep any more
                } else if (take(scratch, events, BATCH, Abi.FOREVER) < 0) {
                    break;
                }
            }
        } catch (Throwable error) {
            LOG.log(System.Logger.Level.ERROR, "the thread that tells waiters failed; they are told that all is closed", error);
        } finally {
            ended = true;
            closeAll();
        }
    }

    /** Takes what news there are. Does not block. */
    private void take(Scratch scratch) {
        Events events = scratch.events();
        while (take(scratch, events, Scratch.EVENTS, 0) == Scratch.EVENTS) {
            // there may be more
        }
    }

    /** Takes news, and says how many; less than none when the queue has ended. */
    private int take(Scratch scratch, Events events, int capacity, long timeoutMs) {
        int status = fq().completionsPoll(
                queue, events.address(), capacity, timeoutMs, scratch.count(), scratch.error());
        if (status != 0) {
            scratch.failure(status);
            return -1;
        }
        int count = (int) scratch.countValue();
        for (int at = 0; at < count; at++) {
            dispatch(events, at);
        }
        return count;
    }

    private void dispatch(Events events, int at) {
        Booking booking = bookings.get(events.token(at));
        int status = events.status(at);
        Failure failure = status == 0 ? null : Failure.take(status, events.error(at));
        if (booking == null) {
            fq().permitFree(events.permit(at));
            return;
        }
        try {
            switch (events.kind(at)) {
                case Abi.EVENT_DONE -> booking.settle(events.permit(at), failure);
                case Abi.EVENT_POSITION -> booking.moved(events.position(at));
                case Abi.EVENT_PERMIT_LOST -> booking.lose(failure.lost());
                default -> {} // a permit that is not confirmed says so when it is asked
            }
        } catch (RuntimeException | Error error) { // none is known; the others' news must not go with it
            LOG.log(System.Logger.Level.ERROR, "news could not be told", error);
        }
    }

    // --- the end

    /** Nothing more comes; whoever waits still is told that all is closed. Returns when the thread has ended. */
    void end() {
        try (Scratch scratch = Scratch.take()) {
            if (!ended) {
                take(scratch);
            }
        }
        ended = true;
        fq().completionsFree(queue);
        LockSupport.unpark(poller);
        closeAll();
        if (Thread.currentThread() != poller) {
            join();
        }
    }

    boolean isEnded() {
        return ended;
    }

    private void closeAll() {
        bookings.values().forEach(booking -> {
            try {
                booking.settle(0, Failure.CLOSED);
            } catch (RuntimeException | Error error) { // the others have to be told
                LOG.log(System.Logger.Level.ERROR, "a waiter could not be told that all is closed", error);
            }
        });
    }

    /** For a moment: it may be in an observer, or in a caller's executor that is none. */
    private void join() {
        boolean interrupted = false;
        try {
            poller.join(JOIN_MILLIS);
        } catch (InterruptedException later) {
            interrupted = true;
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
