package io.fairq.spring;

import io.fairq.Permit;
import java.util.Optional;
import java.util.concurrent.Callable;

/** The permit that the running method holds by {@link FairLimit}: for its fence, or to look whether it is still valid. */
public final class CurrentPermit {
    private static final ThreadLocal<Permit> CURRENT = new ThreadLocal<>();

    private CurrentPermit() {}

    /**
     * The permit of the innermost limited method that this thread is in. It is given back for you. Operators of a {@code Flux} may
     * run in other threads: take it while the method runs.
     *
     * @return empty outside of limited methods
     */
    public static Optional<Permit> find() {
        return Optional.ofNullable(CURRENT.get());
    }

    /**
     * Makes a permit the current one for a call; for those who acquire by themselves.
     *
     * @param permit the permit
     * @param call what to do
     * @param <T> what comes of it
     * @return what the call returns
     * @throws Exception what the call throws
     */
    public static <T> T with(Permit permit, Callable<T> call) throws Exception {
        Permit before = CURRENT.get();
        CURRENT.set(permit);
        try {
            return call.call();
        } finally {
            if (before == null) {
                CURRENT.remove();
            } else {
                CURRENT.set(before);
            }
        }
    }
}
