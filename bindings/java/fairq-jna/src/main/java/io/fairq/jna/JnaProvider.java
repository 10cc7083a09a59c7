package io.fairq.jna;

import com.sun.jna.Native;
import io.fairq.spi.NativeLibrary;
import io.fairq.spi.NativeProvider;
import java.util.stream.Collectors;

/** Calls C by JNA, on any JDK. */
public final class JnaProvider implements NativeProvider {
    /** For {@link java.util.ServiceLoader}. */
    public JnaProvider() {}

    @Override
    public String name() {
        return "jna";
    }

    @Override
    public int preference() {
        return 10;
    }

    @Override
    public NativeLibrary load(String path) {
        if (Native.POINTER_SIZE != Long.BYTES) {
            throw new UnsupportedOperationException("fairq needs a 64-bit Java");
        }
        try {
            JnaLibrary.load(path);
            return new JnaLibrary();
        } catch (UnsatisfiedLinkError error) {
            throw brief(error);
        }
    }

    /** Without the whole class path, in which JNA has looked too. */
    private static UnsatisfiedLinkError brief(UnsatisfiedLinkError error) {
        String message = error.getMessage()
                .lines()
                .filter(line -> !line.contains("not found in resource path"))
                .distinct()
                .collect(Collectors.joining(" "));
        UnsatisfiedLinkError brief = new UnsatisfiedLinkError(message);
        brief.initCause(error);
        return brief;
    }
}
