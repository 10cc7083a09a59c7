package io.fairq;

/** What a call, or a request, came to. Values are only ever added. */
public enum StatusCode {
    // In the order of the constants FQ_ of the library, which a test compares.

    /** It is done. */
    OK,
    /** The request waited as long as it was allowed to; without a wait: nothing was free. */
    TIMED_OUT,
    /** The request was cancelled. */
    CANCELLED,
    /** The client is closed or closing. */
    CLOSED,
    /** The line is as long as it may be. */
    QUEUE_FULL,
    /** The cost is above the limit: the request could never be granted. */
    IMPOSSIBLE,
    /** An operator took the place in line away. */
    REVOKED,
    /** The permit was lost; the message says why. */
    PERMIT_LOST,
    /** What it was about had ended before; nothing was done. */
    STALE,
    /** The store cannot be reached, or does not take commands now. Whatever was asked is safe to ask again. */
    UNAVAILABLE,
    /** An operator's order was sent, and its answer was lost: look whether it was carried out. */
    UNKNOWN_OUTCOME,
    /** The store has no memory for another ticket. */
    OVERLOADED,
    /** An argument means nothing; nothing was done. */
    INVALID,
    /** The client or the server is not set up right; trying again does not help. */
    CONFIGURATION,
    /** The server answered with something that fairq does not understand. */
    SERVER,
    /** The limiter does not exist, and the caller has not declared a limit for it. */
    NO_SUCH_LIMITER,
    /** The handle belongs to a parent process. */
    FORKED,
    /** A bug in fairq: it panicked, and the panic ended there. */
    PANIC,
    /** Another fault inside of fairq; the message says which. */
    INTERNAL;

    private static final StatusCode[] ALL = values();

    /** Of a later version's status there is only its message. */
    static StatusCode of(int status) {
        return status >= 0 && status < ALL.length ? ALL[status] : INTERNAL;
    }
}
