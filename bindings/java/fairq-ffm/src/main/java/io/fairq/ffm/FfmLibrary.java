package io.fairq.ffm;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.fairq.spi.NativeLibrary;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;

/**
 * Hands each call on as it is: handles and pointers are numbers here, as they are in registers. The handles of the functions are
 * constants, so that a call is compiled like one of C.
 */
final class FfmLibrary implements NativeLibrary {
    private static final MethodHandle VERSION = Symbols.look("fq_version", JAVA_LONG);
    private static final MethodHandle STATUS_NAME = Symbols.look("fq_status_name", JAVA_LONG, JAVA_INT);
    private static final MethodHandle ERROR_MESSAGE = Symbols.look("fq_error_message", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle ERROR_RETRYABLE = Symbols.look("fq_error_retryable", JAVA_INT, JAVA_LONG);
    private static final MethodHandle ERROR_RETRY_AFTER_MS = Symbols.look("fq_error_retry_after_ms", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle ERROR_FREE = Symbols.nothing("fq_error_free", 1);
    private static final MethodHandle CONFIG_NEW = Symbols.status("fq_config_new", 2);
    private static final MethodHandle CONFIG_SET = Symbols.status("fq_config_set", 6);
    private static final MethodHandle CONFIG_FREE = Symbols.nothing("fq_config_free", 1);
    private static final MethodHandle OPTIONS = Symbols.number("fq_options", 1);
    private static final MethodHandle CLIENT_OPEN = Symbols.status("fq_client_open", 5);
    private static final MethodHandle CLIENT_CHECK = Symbols.status("fq_client_check", 2);
    private static final MethodHandle CLIENT_CLOSE = Symbols.status("fq_client_close", 3);
    private static final MethodHandle CLIENT_FREE = Symbols.nothing("fq_client_free", 1);
    private static final MethodHandle LIMITER_OPEN = Symbols.status("fq_limiter_open", 6);
    private static final MethodHandle LIMITER_STATUS = Symbols.status("fq_limiter_status", 3);
    private static final MethodHandle LIMITER_CONFIGURE = Symbols.status("fq_limiter_configure", 3);
    private static final MethodHandle LIMITER_FREE = Symbols.nothing("fq_limiter_free", 1);
    private static final MethodHandle ACQUIRE_START = Symbols.status("fq_acquire_start", 6);
    private static final MethodHandle TICKET_NEW = Symbols.status("fq_ticket_new", 3);
    private static final MethodHandle CANCEL = Symbols.status("fq_cancel", 2);
    private static final MethodHandle TICKET_POSITION = Symbols.status("fq_ticket_position", 3);
    private static final MethodHandle TICKET_LAST_POSITION = Symbols.status("fq_ticket_last_position", 3);
    private static final MethodHandle TICKET_FREE = Symbols.nothing("fq_ticket_free", 1);
    private static final MethodHandle RELEASE = Symbols.status("fq_release", 2);
    private static final MethodHandle PERMIT_FREE = Symbols.nothing("fq_permit_free", 1);
    private static final MethodHandle PERMIT_FENCE = Symbols.look("fq_permit_fence", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle PERMIT_ORDER = Symbols.look("fq_permit_order", JAVA_LONG, JAVA_LONG);
    private static final MethodHandle PERMIT_IS_VALID = Symbols.look("fq_permit_is_valid", JAVA_INT, JAVA_LONG);
    private static final MethodHandle PERMIT_STATE = Symbols.look("fq_permit_state", JAVA_INT, JAVA_LONG);
    private static final MethodHandle COMPLETIONS_NEW = Symbols.status("fq_completions_new", 2);
    private static final MethodHandle COMPLETIONS_POLL = Symbols.status("fq_completions_poll", 6);
    private static final MethodHandle COMPLETIONS_FREE = Symbols.nothing("fq_completions_free", 1);

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
