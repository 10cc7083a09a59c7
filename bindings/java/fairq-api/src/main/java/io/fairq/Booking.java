package io.fairq;

import static io.fairq.Library.fq;

import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * One request from its start until its permit is given back: what the mailbox knows of it, under its token. It does not know the
 * {@link Permit} but weakly, so that one which nobody has any more is collected.
 *
 * <p>Whatever races for it (the grant, an interrupt, a cancel, the client's close, two who give back) races for its phase:
 *
 * <pre>
 * NEW ──► ATTENDED ──► HELD ──► OVER     HELD: there is a permit; whoever makes it OVER frees that
 *   │         ├──────► FAILED
 *   └──► ABANDONED ──► OVER              nobody wants it; a permit that comes still is freed at once
 * </pre>
 */
final class Booking {
    private static final int NEW = 0;
    private static final int ATTENDED = 1;
    private static final int ABANDONED = 2;
    private static final int HELD = 3;
    private static final int FAILED = 4;
    private static final int OVER = 5;

    private static final System.Logger LOG = System.getLogger("io.fairq");

    private final Mailbox mailbox;
    private final String limiter;
    private final long token;
    private final long cost;
    private final Positions positions;
    private final AtomicInteger phase = new AtomicInteger(NEW);
    /**
     * The thread that waits; or null, where a future does. Not an object that knows the thread: C2 of JDK 17 was seen to find null
     * in the place of one that it had thought it need not make.
     */
    private final Thread waiter;
    private volatile PermitFuture future;
    /** The caller's, which has to stay for as long as the request may be cancelled; or null. */
    private Ticket givenTicket;
    private final long ticket;
    private final long asked;
    private long granted;
    private long permit;
    private Failure failure;
    private volatile PermitLostException lost;
    private boolean watched;
    private volatile WeakReference<Permit> watcher;

    Booking(Mailbox mailbox, String limiter, Request request, long token, Ticket given, long ticket, PermitFuture future) {
        this.mailbox = mailbox;
        this.limiter = limiter;
        this.token = token;
        this.cost = request.cost();
        this.givenTicket = given;
        this.ticket = ticket;
        this.waiter = future == null ? Thread.currentThread() : null;
        this.future = future;
        this.positions = positionsOf(request, given);
        this.asked = mailbox.now();
    }

    private Positions positionsOf(Request request, Ticket given) {
        Positions told = given != null ? given.feed() : null;
        if (request.listener() != null) {
            told = told != null ? told : new Positions(mailbox.executor());
            told.tell(request.listener());
        }
        return told;
    }

    long token() {
        return token;
    }

    long ticket() {
        return ticket;
    }

    long cost() {
        return cost;
    }

    long permit() {
        return permit;
    }

    boolean reportsPosition() {
        return positions != null;
    }

    // --- waiting

    boolean isSettled() {
        return phase.get() > ABANDONED;
    }

    /** Why there is no permit; null with one. */
    Failure failure() {
        return phase.get() == FAILED ? failure : null;
    }

    /** It has not ended at once: from now on somebody has to look. */
    void attend() {
        mailbox.want();
        if (!phase.compareAndSet(NEW, ATTENDED)) {
            mailbox.unwant();
        }
    }

    /**
     * Waits in Java, as a platform thread or a virtual one, until the request has ended.
     *
     * @throws InterruptedException when the thread was interrupted; the request is cancelled, a permit goes back
     */
    void await() throws InterruptedException {
        boolean ended = false;
        try {
            while (!isSettled()) {
                LockSupport.park(this);
                if (Thread.interrupted()) {
                    throw new InterruptedException("interrupted while waiting for a permit of " + limiter);
                }
            }
            ended = true;
        } finally {
            if (!ended) {
                abandon();
            }
        }
    }

    void moved(Position position) {
        if (positions != null) {
            positions.offer(position);
        }
    }

    /** Its end; only the first counts. A permit that nobody waits for goes back. */
    void settle(long given, Failure refused) {
        long now = mailbox.now();
        if (given != 0) {
            permit = given;
            granted = now; // all of which is there before the phase says so: then others go on
        } else {
            failure = refused; // which counts with the phase FAILED only: a close may find it granted
        }
        int before = phase.getAndUpdate(was -> switch (was) {
            case NEW, ATTENDED -> given != 0 ? HELD : FAILED;
            case ABANDONED -> OVER;
            default -> was;
        });
        boolean first = before <= ABANDONED;
        boolean accepted = first && before != ABANDONED;
        if (!accepted && given != 0) {
            fq().permitFree(given);
        }
        if (first) {
            try {
                settled(before, !accepted ? StatusCode.CANCELLED : given != 0 ? StatusCode.OK : refused.status(), now);
            } finally { // an executor of the caller's may throw what it likes
                tell(accepted);
            }
        }
    }

    /** Does not block, and runs nobody else's code. */
    private void tell(boolean accepted) {
        PermitFuture waiting = future;
        if (waiting == null) {
            if (Thread.currentThread() != waiter) {
                LockSupport.unpark(waiter);
            }
        } else if (accepted) {
            waiting.settled(this);
        }
        future = null; // it leads to the client, and to the permit, which must not be kept by what is held
    }

    private void settled(int before, StatusCode outcome, long now) {
        if (before != NEW) {
            mailbox.unwant();
        }
        if (outcome != StatusCode.OK) {
            mailbox.forget(this);
        }
        if (givenTicket == null) {
            fq().ticketFree(ticket);
        }
        givenTicket = null;
        if (positions != null) {
            positions.end();
        }
        Duration waited = Duration.ofNanos(now - asked);
        mailbox.observe(observer -> observer.requestEnded(limiter, outcome, waited));
    }

    /** Nobody wants the permit (any more). Does not block. */
    void abandon() {
        if (phase.get() == NEW) {
            attend(); // a grant may be on its way, which somebody has to find
        }
        if (phase.compareAndSet(ATTENDED, ABANDONED)) {
            try (Scratch scratch = Scratch.take()) {
                int status = fq().cancel(ticket, scratch.error());
                if (status != 0) {
                    scratch.failure(status); // it had ended otherwise, which its end tells
                }
            }
        } else {
            giveBack();
        }
    }

    // --- holding

    boolean isHeld() {
        return phase.get() == HELD;
    }

    /** Gives the slot back in the background, if that was not done. Does not block. False: it was. */
    boolean giveBack() {
        if (!phase.compareAndSet(HELD, OVER)) {
            return false;
        }
        if (lost == null && fq().permitState(permit) == PermitState.LOST.ordinal()) {
            lose(new PermitLostException("the permit was lost before it was given back", false, null));
        }
        fq().permitFree(permit);
        unwatch();
        mailbox.forget(this);
        Duration held = Duration.ofNanos(mailbox.now() - granted);
        mailbox.observe(observer -> observer.permitGivenBack(limiter, held));
        return true;
    }

    /** Nobody has the permit any more. */
    void leaked(long fence) {
        boolean matters = !mailbox.isEnded(); // a closed client has taken all back
        if (giveBack() && matters) {
            LOG.log(
                    System.Logger.Level.WARNING,
                    "a permit of {0} (fence {1}) was never given back; it goes back now, with the garbage",
                    limiter,
                    Long.toString(fence));
            mailbox.observe(observer -> observer.permitLeaked(limiter));
        }
    }

    PermitLostException lost() {
        return lost;
    }

    /** The first who learns of it tells the others: the library's news, or who gives the permit back. */
    void lose(PermitLostException error) {
        synchronized (this) {
            if (lost != null) {
                return;
            }
            lost = error;
        }
        mailbox.observe(observer -> observer.permitLost(limiter));
        WeakReference<Permit> known = watcher;
        Permit told = known != null ? known.get() : null;
        if (told != null) {
            told.tellLost();
        }
        unwatch();
    }

    /** The permit's owner wants to know when it is lost: somebody has to look. */
    synchronized void watch(Permit owner) {
        if (watcher == null) {
            watcher = new WeakReference<>(owner);
        }
        if (!watched && lost == null && phase.get() == HELD) {
            watched = true;
            mailbox.want();
        }
    }

    private synchronized void unwatch() {
        if (watched) {
            watched = false;
            mailbox.unwant();
        }
    }
}
