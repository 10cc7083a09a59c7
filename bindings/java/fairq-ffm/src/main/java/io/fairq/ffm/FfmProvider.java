package io.fairq.ffm;

import io.fairq.spi.NativeLibrary;
import io.fairq.spi.NativeProvider;
import java.lang.foreign.ValueLayout;

/** Calls C by {@code java.lang.foreign}, on JDK 22 and later. */
public final class FfmProvider implements NativeProvider {
    /** For {@link java.util.ServiceLoader}. */
    public FfmProvider() {}

    @Override
    public String name() {
        return "ffm";
    }

    @Override
    public int preference() {
        return 20;
    }

    @Override
    public NativeLibrary load(String path) {
        if (ValueLayout.ADDRESS.byteSize() != Long.BYTES) {
            throw new UnsupportedOperationException("fairq needs a 64-bit Java");
        }
        try {
            Symbols.load(path);
            return new FfmLibrary();
        } catch (IllegalCallerException denied) {
            throw new UnsupportedOperationException("native access is denied: " + denied.getMessage(), denied);
        } catch (IllegalArgumentException missing) {
            throw unsatisfied(path + " cannot be loaded", missing);
        }
    }

    private static UnsatisfiedLinkError unsatisfied(String what, Throwable cause) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError(what + ": " + cause.getMessage());
        error.initCause(cause);
        return error;
    }
}
