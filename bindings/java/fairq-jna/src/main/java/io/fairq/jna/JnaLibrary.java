package io.fairq.jna;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.fairq.spi.NativeLibrary;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Hands each call on as it is: handles and pointers are numbers here, which JNA's direct mapping passes in registers. */
final class JnaLibrary implements NativeLibrary {
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
    public long version() {
        return Functions.fq_version();
    }

    @Override
    public long statusName(int status) {
        return Functions.fq_status_name(status);
    }

    @Override
    public long errorMessage(long error) {
        return Functions.fq_error_message(error);
    }

    @Override
    public int errorRetryable(long error) {
        return Functions.fq_error_retryable(error);
    }

    @Override
    public long errorRetryAfterMs(long error) {
        return Functions.fq_error_retry_after_ms(error);
    }

    @Override
    public void errorFree(long error) {
        Functions.fq_error_free(error);
    }

    @Override
    public int configNew(long config, long err) {
        return Functions.fq_config_new(config, err);
    }

    @Override
    public int configSet(long config, long key, long keyLen, long value, long valueLen, long err) {
        return Functions.fq_config_set(config, key, keyLen, value, valueLen, err);
    }

    @Override
    public void configFree(long config) {
        Functions.fq_config_free(config);
    }

    @Override
    public long options(long count) {
        return Functions.fq_options(count);
    }

    @Override
    public int clientOpen(long url, long urlLen, long config, long client, long err) {
        return Functions.fq_client_open(url, urlLen, config, client, err);
    }

    @Override
    public int clientCheck(long client, long err) {
        return Functions.fq_client_check(client, err);
    }

    @Override
    public int clientClose(long client, long drainMs, long err) {
        return Functions.fq_client_close(client, drainMs, err);
    }

    @Override
    public void clientFree(long client) {
        Functions.fq_client_free(client);
    }

    @Override
    public int limiterOpen(long client, long name, long nameLen, long config, long limiter, long err) {
        return Functions.fq_limiter_open(client, name, nameLen, config, limiter, err);
    }

    @Override
    public int limiterStatus(long limiter, long info, long err) {
        return Functions.fq_limiter_status(limiter, info, err);
    }

    @Override
    public int limiterConfigure(long limiter, long changes, long err) {
        return Functions.fq_limiter_configure(limiter, changes, err);
    }

    @Override
    public void limiterFree(long limiter) {
        Functions.fq_limiter_free(limiter);
    }

    @Override
    public int acquireStart(long limiter, long request, long ticket, long completions, long token, long err) {
        return Functions.fq_acquire_start(limiter, request, ticket, completions, token, err);
    }

    @Override
    public int ticketNew(long limiter, long ticket, long err) {
        return Functions.fq_ticket_new(limiter, ticket, err);
    }

    @Override
    public int cancel(long ticket, long err) {
        return Functions.fq_cancel(ticket, err);
    }

    @Override
    public int ticketPosition(long ticket, long position, long err) {
        return Functions.fq_ticket_position(ticket, position, err);
    }

    @Override
    public int ticketLastPosition(long ticket, long position, long err) {
        return Functions.fq_ticket_last_position(ticket, position, err);
    }

    @Override
    public void ticketFree(long ticket) {
        Functions.fq_ticket_free(ticket);
    }

    @Override
    public int release(long permit, long err) {
        return Functions.fq_release(permit, err);
    }

    @Override
    public void permitFree(long permit) {
        Functions.fq_permit_free(permit);
    }

    @Override
    public long permitFence(long permit) {
        return Functions.fq_permit_fence(permit);
    }

    @Override
    public long permitOrder(long permit) {
        return Functions.fq_permit_order(permit);
    }

    @Override
    public int permitIsValid(long permit) {
        return Functions.fq_permit_is_valid(permit);
    }

    @Override
    public int permitState(long permit) {
        return Functions.fq_permit_state(permit);
    }

    @Override
    public int completionsNew(long completions, long err) {
        return Functions.fq_completions_new(completions, err);
    }

    @Override
    public int completionsPoll(long completions, long events, long capacity, long timeoutMs, long count, long err) {
        return Functions.fq_completions_poll(completions, events, capacity, timeoutMs, count, err);
    }

    @Override
    public void completionsFree(long completions) {
        Functions.fq_completions_free(completions);
    }
}
