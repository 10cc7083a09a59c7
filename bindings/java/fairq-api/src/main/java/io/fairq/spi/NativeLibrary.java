package io.fairq.spi;

import java.nio.ByteBuffer;

/**
 * The functions of {@code include/fairq.h} that Java needs, by their names without {@code fq_}. Handles and pointers are
 * {@code long}s, zero is NULL; what they show to, {@code io.fairq} writes and reads in direct buffers. The header tells what
 * each function does, and whether it blocks.
 */
public interface NativeLibrary {
    /**
     * Where a buffer lies. The caller keeps the buffer for as long as the library may use the address.
     *
     * @param buffer a direct buffer
     * @return the address of its first byte
     */
    long address(ByteBuffer buffer);

    /**
     * Reads a string of the library.
     *
     * @param address where it begins; it is UTF-8 and ends with a zero byte
     * @return the string
     */
    String string(long address);

    /**
     * Memory of the library, to be read.
     *
     * @param address where it begins
     * @param size how many bytes
     * @return these bytes, which live as long as the library says
     */
    ByteBuffer memory(long address, long size);

    /**
     * {@code fq_version}.
     *
     * @return the address of a string
     */
    long version();

    /**
     * {@code fq_status_name}.
     *
     * @param status a status
     * @return the address of a string
     */
    long statusName(int status);

    /**
     * {@code fq_error_message}.
     *
     * @param error an error
     * @return the address of a string
     */
    long errorMessage(long error);

    /**
     * {@code fq_error_retryable}.
     *
     * @param error an error
     * @return 1 or 0
     */
    int errorRetryable(long error);

    /**
     * {@code fq_error_retry_after_ms}.
     *
     * @param error an error
     * @return milliseconds
     */
    long errorRetryAfterMs(long error);

    /**
     * {@code fq_error_free}.
     *
     * @param error an error
     */
    void errorFree(long error);

    /**
     * {@code fq_config_new}.
     *
     * @param config where its handle goes
     * @param err where an error goes
     * @return a status
     */
    int configNew(long config, long err);

    /**
     * {@code fq_config_set}.
     *
     * @param config a set of options
     * @param key its key
     * @param keyLen the key's length
     * @param value its value
     * @param valueLen the value's length
     * @param err where an error goes
     * @return a status
     */
    int configSet(long config, long key, long keyLen, long value, long valueLen, long err);

    /**
     * {@code fq_config_free}.
     *
     * @param config a set of options
     */
    void configFree(long config);

    /**
     * {@code fq_options}.
     *
     * @param count where their number goes
     * @return the address of the first
     */
    long options(long count);

    /**
     * {@code fq_client_open}.
     *
     * @param url where the store is
     * @param urlLen the length of that
     * @param config a set of options
     * @param client where its handle goes
     * @param err where an error goes
     * @return a status
     */
    int clientOpen(long url, long urlLen, long config, long client, long err);

    /**
     * {@code fq_client_check}. Blocks.
     *
     * @param client a client
     * @param err where an error goes
     * @return a status
     */
    int clientCheck(long client, long err);

    /**
     * {@code fq_client_close}. Blocks.
     *
     * @param client a client
     * @param drainMs how long what is held may be held still
     * @param err where an error goes
     * @return a status
     */
    int clientClose(long client, long drainMs, long err);

    /**
     * {@code fq_client_free}.
     *
     * @param client a client
     */
    void clientFree(long client);

    /**
     * {@code fq_limiter_open}.
     *
     * @param client a client
     * @param name its name
     * @param nameLen the name's length
     * @param config a set of options
     * @param limiter where its handle goes
     * @param err where an error goes
     * @return a status
     */
    int limiterOpen(long client, long name, long nameLen, long config, long limiter, long err);

    /**
     * {@code fq_limiter_status}. Blocks.
     *
     * @param limiter a limiter
     * @param info where the answer goes
     * @param err where an error goes
     * @return a status
     */
    int limiterStatus(long limiter, long info, long err);

    /**
     * {@code fq_limiter_configure}. Blocks.
     *
     * @param limiter a limiter
     * @param changes a set of options
     * @param err where an error goes
     * @return a status
     */
    int limiterConfigure(long limiter, long changes, long err);

    /**
     * {@code fq_limiter_free}.
     *
     * @param limiter a limiter
     */
    void limiterFree(long limiter);

    /**
     * {@code fq_acquire_start}.
     *
     * @param limiter a limiter
     * @param request what is asked for
     * @param ticket a ticket, or zero
     * @param completions where its end is told
     * @param token under which number
     * @param err where an error goes
     * @return a status
     */
    int acquireStart(long limiter, long request, long ticket, long completions, long token, long err);

    /**
     * {@code fq_ticket_new}.
     *
     * @param limiter a limiter
     * @param ticket where its handle goes
     * @param err where an error goes
     * @return a status
     */
    int ticketNew(long limiter, long ticket, long err);

    /**
     * {@code fq_cancel}.
     *
     * @param ticket a ticket
     * @param err where an error goes
     * @return a status
     */
    int cancel(long ticket, long err);

    /**
     * {@code fq_ticket_position}. Blocks.
     *
     * @param ticket a ticket
     * @param position where the answer goes
     * @param err where an error goes
     * @return a status
     */
    int ticketPosition(long ticket, long position, long err);

    /**
     * {@code fq_ticket_last_position}.
     *
     * @param ticket a ticket
     * @param position where the answer goes
     * @param err where an error goes
     * @return a status
     */
    int ticketLastPosition(long ticket, long position, long err);

    /**
     * {@code fq_ticket_free}.
     *
     * @param ticket a ticket
     */
    void ticketFree(long ticket);

    /**
     * {@code fq_release}. Blocks.
     *
     * @param permit a permit
     * @param err where an error goes
     * @return a status
     */
    int release(long permit, long err);

    /**
     * {@code fq_permit_free}.
     *
     * @param permit a permit
     */
    void permitFree(long permit);

    /**
     * {@code fq_permit_fence}.
     *
     * @param permit a permit
     * @return its fence
     */
    long permitFence(long permit);

    /**
     * {@code fq_permit_order}.
     *
     * @param permit a permit
     * @return its order
     */
    long permitOrder(long permit);

    /**
     * {@code fq_permit_is_valid}.
     *
     * @param permit a permit
     * @return 1 or 0
     */
    int permitIsValid(long permit);

    /**
     * {@code fq_permit_state}.
     *
     * @param permit a permit
     * @return one of the constants {@code FQ_PERMIT_STATE_}
     */
    int permitState(long permit);

    /**
     * {@code fq_completions_new}.
     *
     * @param completions where its handle goes
     * @param err where an error goes
     * @return a status
     */
    int completionsNew(long completions, long err);

    /**
     * {@code fq_completions_poll}. Blocks, unless the time is zero.
     *
     * @param completions a queue
     * @param events where events go
     * @param capacity for how many there is room
     * @param timeoutMs how long to wait for the first
     * @param count where their number goes
     * @param err where an error goes
     * @return a status
     */
    int completionsPoll(long completions, long events, long capacity, long timeoutMs, long count, long err);

    /**
     * {@code fq_completions_free}.
     *
     * @param completions a queue
     */
    void completionsFree(long completions);
}
