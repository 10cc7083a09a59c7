package io.fairq.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.fairq.spi.NativeLibrary;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;

/**
 * Hands each call on as it is: handles and pointers are numbers here, as they are in registers. The handles of the functions are
 * constants, so that a call is compiled like one of C.
 */
final class FfmLibrary implements NativeLibrary {
    private static final MethodHandle VERSION = Symbols.quick("fq_version", FunctionDescriptor.of(JAVA_LONG));
    private static final MethodHandle STATUS_NAME =
            Symbols.quick("fq_status_name", FunctionDescriptor.of(JAVA_LONG, JAVA_INT));
    private static final MethodHandle ERROR_MESSAGE =
            Symbols.quick("fq_error_message", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    private static final MethodHandle ERROR_RETRYABLE =
            Symbols.quick("fq_error_retryable", FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
    private static final MethodHandle ERROR_RETRY_AFTER_MS =
            Symbols.quick("fq_error_retry_after_ms", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    private static final MethodHandle ERROR_FREE = Symbols.any("fq_error_free", FunctionDescriptor.ofVoid(JAVA_LONG));
    private static final MethodHandle CONFIG_NEW =
            Symbols.any("fq_config_new", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle CONFIG_SET =
            Symbols.any("fq_config_set", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle CONFIG_FREE = Symbols.any("fq_config_free", FunctionDescriptor.ofVoid(JAVA_LONG));
    private static final MethodHandle OPTIONS = Symbols.any("fq_options", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    private static final MethodHandle CLIENT_OPEN =
            Symbols.any("fq_client_open", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle CLIENT_CHECK =
            Symbols.any("fq_client_check", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle CLIENT_CLOSE =
            Symbols.any("fq_client_close", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle CLIENT_FREE = Symbols.any("fq_client_free", FunctionDescriptor.ofVoid(JAVA_LONG));
    private static final MethodHandle LIMITER_OPEN =
            Symbols.any("fq_limiter_open", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle LIMITER_STATUS =
            Symbols.any("fq_limiter_status", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle LIMITER_CONFIGURE =
            Symbols.any("fq_limiter_configure", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle LIMITER_FREE =
            Symbols.any("fq_limiter_free", FunctionDescriptor.ofVoid(JAVA_LONG));
    private static final MethodHandle ACQUIRE_START =
            Symbols.any("fq_acquire_start", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle TICKET_NEW =
            Symbols.any("fq_ticket_new", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle CANCEL =
            Symbols.any("fq_cancel", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle TICKET_POSITION =
            Symbols.any("fq_ticket_position", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle TICKET_LAST_POSITION =
            Symbols.any("fq_ticket_last_position", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle TICKET_FREE = Symbols.any("fq_ticket_free", FunctionDescriptor.ofVoid(JAVA_LONG));
    private static final MethodHandle RELEASE =
            Symbols.any("fq_release", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle PERMIT_FREE = Symbols.any("fq_permit_free", FunctionDescriptor.ofVoid(JAVA_LONG));
    private static final MethodHandle PERMIT_FENCE =
            Symbols.quick("fq_permit_fence", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    private static final MethodHandle PERMIT_ORDER =
            Symbols.quick("fq_permit_order", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG));
    private static final MethodHandle PERMIT_IS_VALID =
            Symbols.quick("fq_permit_is_valid", FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
    private static final MethodHandle PERMIT_STATE =
            Symbols.quick("fq_permit_state", FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
    private static final MethodHandle COMPLETIONS_NEW =
            Symbols.any("fq_completions_new", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle COMPLETIONS_POLL =
            Symbols.any("fq_completions_poll", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG));
    private static final MethodHandle COMPLETIONS_FREE =
            Symbols.any("fq_completions_free", FunctionDescriptor.ofVoid(JAVA_LONG));

    @Override
    public long address(ByteBuffer buffer) {
        return MemorySegment.ofBuffer(buffer).address();
    }

    @Override
    public String string(long address) {
        return MemorySegment.ofAddress(address).reinterpret(Long.MAX_VALUE).getString(0);
    }

    @Override
    public ByteBuffer memory(long address, long size) {
        return MemorySegment.ofAddress(address).reinterpret(size).asByteBuffer();
    }

    /** What a function throws: none does. */
    private static AssertionError impossible(Throwable thrown) {
        return new AssertionError("a call of the library failed in Java", thrown);
    }

    @Override
    public long version() {
        try {
            return (long) VERSION.invokeExact();
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public long statusName(int status) {
        try {
            return (long) STATUS_NAME.invokeExact(status);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public long errorMessage(long error) {
        try {
            return (long) ERROR_MESSAGE.invokeExact(error);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int errorRetryable(long error) {
        try {
            return (int) ERROR_RETRYABLE.invokeExact(error);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public long errorRetryAfterMs(long error) {
        try {
            return (long) ERROR_RETRY_AFTER_MS.invokeExact(error);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public void errorFree(long error) {
        try {
            ERROR_FREE.invokeExact(error);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int configNew(long config, long err) {
        try {
            return (int) CONFIG_NEW.invokeExact(config, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int configSet(long config, long key, long keyLen, long value, long valueLen, long err) {
        try {
            return (int) CONFIG_SET.invokeExact(config, key, keyLen, value, valueLen, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public void configFree(long config) {
        try {
            CONFIG_FREE.invokeExact(config);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public long options(long count) {
        try {
            return (long) OPTIONS.invokeExact(count);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int clientOpen(long url, long urlLen, long config, long client, long err) {
        try {
            return (int) CLIENT_OPEN.invokeExact(url, urlLen, config, client, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int clientCheck(long client, long err) {
        try {
            return (int) CLIENT_CHECK.invokeExact(client, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int clientClose(long client, long drainMs, long err) {
        try {
            return (int) CLIENT_CLOSE.invokeExact(client, drainMs, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public void clientFree(long client) {
        try {
            CLIENT_FREE.invokeExact(client);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int limiterOpen(long client, long name, long nameLen, long config, long limiter, long err) {
        try {
            return (int) LIMITER_OPEN.invokeExact(client, name, nameLen, config, limiter, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int limiterStatus(long limiter, long info, long err) {
        try {
            return (int) LIMITER_STATUS.invokeExact(limiter, info, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int limiterConfigure(long limiter, long changes, long err) {
        try {
            return (int) LIMITER_CONFIGURE.invokeExact(limiter, changes, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public void limiterFree(long limiter) {
        try {
            LIMITER_FREE.invokeExact(limiter);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int acquireStart(long limiter, long request, long ticket, long completions, long token, long err) {
        try {
            return (int) ACQUIRE_START.invokeExact(limiter, request, ticket, completions, token, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int ticketNew(long limiter, long ticket, long err) {
        try {
            return (int) TICKET_NEW.invokeExact(limiter, ticket, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int cancel(long ticket, long err) {
        try {
            return (int) CANCEL.invokeExact(ticket, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int ticketPosition(long ticket, long position, long err) {
        try {
            return (int) TICKET_POSITION.invokeExact(ticket, position, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int ticketLastPosition(long ticket, long position, long err) {
        try {
            return (int) TICKET_LAST_POSITION.invokeExact(ticket, position, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public void ticketFree(long ticket) {
        try {
            TICKET_FREE.invokeExact(ticket);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int release(long permit, long err) {
        try {
            return (int) RELEASE.invokeExact(permit, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public void permitFree(long permit) {
        try {
            PERMIT_FREE.invokeExact(permit);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public long permitFence(long permit) {
        try {
            return (long) PERMIT_FENCE.invokeExact(permit);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public long permitOrder(long permit) {
        try {
            return (long) PERMIT_ORDER.invokeExact(permit);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int permitIsValid(long permit) {
        try {
            return (int) PERMIT_IS_VALID.invokeExact(permit);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int permitState(long permit) {
        try {
            return (int) PERMIT_STATE.invokeExact(permit);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int completionsNew(long completions, long err) {
        try {
            return (int) COMPLETIONS_NEW.invokeExact(completions, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public int completionsPoll(long completions, long events, long capacity, long timeoutMs, long count, long err) {
        try {
            return (int) COMPLETIONS_POLL.invokeExact(completions, events, capacity, timeoutMs, count, err);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }

    @Override
    public void completionsFree(long completions) {
        try {
            COMPLETIONS_FREE.invokeExact(completions);
        } catch (Throwable thrown) {
            throw impossible(thrown);
        }
    }
}
