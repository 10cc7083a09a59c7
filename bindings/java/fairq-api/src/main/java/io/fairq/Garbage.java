package io.fairq;

import java.lang.ref.Cleaner;

/** What the garbage collector finds that nobody has closed. One daemon thread for all clients. */
final class Garbage {
    private static final Cleaner CLEANER = Cleaner.create(task -> Blocking.daemon(task, "fairq-garbage"));

    private Garbage() {}

    /** Runs {@code action}, which must not lead to {@code object}, when that is gone, or when it is told to. */
    static Cleaner.Cleanable register(Object object, Runnable action) {
        return CLEANER.register(object, action);
    }
}
