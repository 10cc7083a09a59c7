package io.fairq.jna;

/** The functions of the library, by their own names: JNA finds them by that. */
final class Functions {
    private Functions() {}

    static native long fq_version();

    static native long fq_status_name(int status);

    static native long fq_error_message(long error);

    static native int fq_error_retryable(long error);

    static native long fq_error_retry_after_ms(long error);

    static native void fq_error_free(long error);

    static native int fq_config_new(long config, long err);

    static native int fq_config_set(long config, long key, long keyLen, long value, long valueLen, long err);

    static native void fq_config_free(long config);

    static native long fq_options(long count);

    static native int fq_client_open(long url, long urlLen, long config, long client, long err);

    static native int fq_client_check(long client, long err);

    static native int fq_client_close(long client, long drainMs, long err);

    static native void fq_client_free(long client);

    static native int fq_limiter_open(long client, long name, long nameLen, long config, long limiter, long err);

    static native int fq_limiter_status(long limiter, long info, long err);

    static native int fq_limiter_configure(long limiter, long changes, long err);

    static native void fq_limiter_free(long limiter);

    static native int fq_acquire_start(long limiter, long request, long ticket, long completions, long token, long err);

    static native int fq_ticket_new(long limiter, long ticket, long err);

    static native int fq_cancel(long ticket, long err);

    static native int fq_ticket_position(long ticket, long position, long err);

    static native int fq_ticket_last_position(long ticket, long position, long err);

    static native void fq_ticket_free(long ticket);

    static native int fq_release(long permit, long err);

    static native void fq_permit_free(long permit);

    static native long fq_permit_fence(long permit);

    static native long fq_permit_order(long permit);

    static native int fq_permit_is_valid(long permit);

    static native int fq_permit_state(long permit);

    static native int fq_completions_new(long completions, long err);

    static native int fq_completions_poll(long completions, long events, long capacity, long timeoutMs, long count, long err);

    static native void fq_completions_free(long completions);
}
