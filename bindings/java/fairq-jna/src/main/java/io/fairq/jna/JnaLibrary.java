package io.fairq.jna;

import com.sun.jna.FunctionMapper;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.fairq.spi.NativeLibrary;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * JNA's direct mapping makes a function of the library of each native method: handles and pointers are numbers here, which it
 * passes in registers.
 */
final class JnaLibrary implements NativeLibrary {
    private static final Pattern CAPITAL = Pattern.compile("[A-Z]");

    /** Finds all functions. */
    static void load(String path) {
        FunctionMapper names = (library, method) -> functionOf(method.getName());
        var options = Map.of(Library.OPTION_FUNCTION_MAPPER, names);
        Native.register(JnaLibrary.class, com.sun.jna.NativeLibrary.getInstance(path, options));
    }

    /** Such as {@code fq_client_open} for {@code clientOpen}. */
    private static String functionOf(String method) {
        return "fq_" + CAPITAL.matcher(method).replaceAll(capital -> "_" + capital.group().toLowerCase(Locale.ROOT));
    }

    @Override
    public long address(ByteBuffer buffer) {
        return Pointer.nativeValue(Native.getDirectBufferPointer(buffer));
    }

    @Override
    public String string(long address) {
        return new Pointer(address).getString(0, StandardCharsets.UTF_8.name());
    }

    @Override
    public ByteBuffer memory(long address, long size) {
        return new Pointer(address).getByteBuffer(0, size);
    }

    @Override
    public native long version();

    @Override
    public native long statusName(int status);

    @Override
    public native long errorMessage(long error);

    @Override
    public native int errorRetryable(long error);

    @Override
    public native long errorRetryAfterMs(long error);

    @Override
    public native void errorFree(long error);

    @Override
    public native int configNew(long config, long err);

    @Override
    public native int configSet(long config, long key, long keyLen, long value, long valueLen, long err);

    @Override
    public native void configFree(long config);

    @Override
    public native long options(long count);

    @Override
    public native int clientOpen(long url, long urlLen, long config, long client, long err);

    @Override
    public native int clientCheck(long client, long err);

    @Override
    public native int clientClose(long client, long drainMs, long err);

    @Override
    public native void clientFree(long client);

    @Override
    public native int limiterOpen(long client, long name, long nameLen, long config, long limiter, long err);

    @Override
    public native int limiterStatus(long limiter, long info, long err);

    @Override
    public native int limiterConfigure(long limiter, long changes, long err);

    @Override
    public native void limiterFree(long limiter);

    @Override
    public native int acquireStart(long limiter, long request, long ticket, long completions, long token, long err);

    @Override
    public native int ticketNew(long limiter, long ticket, long err);

    @Override
    public native int cancel(long ticket, long err);

    @Override
    public native int ticketPosition(long ticket, long position, long err);

    @Override
    public native int ticketLastPosition(long ticket, long position, long err);

    @Override
    public native void ticketFree(long ticket);

    @Override
    public native int release(long permit, long err);

    @Override
    public native void permitFree(long permit);

    @Override
    public native long permitFence(long permit);

    @Override
    public native long permitOrder(long permit);

    @Override
    public native int permitIsValid(long permit);

    @Override
    public native int permitState(long permit);

    @Override
    public native int completionsNew(long completions, long err);

    @Override
    public native int completionsPoll(long completions, long events, long capacity, long timeoutMs, long count, long err);

    @Override
    public native void completionsFree(long completions);
}
