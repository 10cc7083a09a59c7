/* What handles.h declares. */
#include "handles.h"

struct handles make_handles(void) {
    struct handles made;
    struct world world = open_world("limit=9");
    fq_error *error = NULL;
    CHECK_EQUAL(fq_client_check(NULL, &error), FQ_INVALID);
    made.of[CONFIG] = new_config("");
    made.of[CLIENT] = world.client;
    made.of[LIMITER] = world.limiter;
    made.of[TICKET] = new_ticket(world.limiter);
    made.of[PERMIT] = take(world.limiter);
    made.of[QUEUE] = new_queue();
    made.of[ERROR] = error;
    return made;
}

void free_handle(enum kind kind, void *handle) {
    switch (kind) {
        case CONFIG: fq_config_free(handle); break;
        case CLIENT: fq_client_free(handle); break;
        case LIMITER: fq_limiter_free(handle); break;
        case TICKET: fq_ticket_free(handle); break;
        case PERMIT: fq_permit_free(handle); break;
        case QUEUE: fq_completions_free(handle); break;
        case ERROR: fq_error_free(handle); break;
        case KINDS: break;
    }
}

void free_handles(struct handles *handles) {
    for (int kind = 0; kind < KINDS; kind++) {
        free_handle((enum kind)kind, handles->of[kind]);
    }
}

/* --- Uses; what they make, if they can, is freed -------------------------------------------------------------------- */

static fq_status answer(fq_status status, fq_error *error) {
    CHECK((status == FQ_OK) == (error == NULL));
    CHECK_EQUAL(fq_error_status(error), status);
    fq_error_free(error);
    return status;
}

#define USE(name, ...)                                                    \
    static fq_status use_##name(void *it, const struct handles *others) { \
        fq_error *err = NULL;                                             \
        fq_status status;                                                 \
        (void)others;                                                     \
        __VA_ARGS__;                                                      \
        return answer(status, err);                                       \
    }

USE(config_set, status = fq_config_set(it, "limit", 5, "9", 1, &err))
USE(client_open, fq_client *made = NULL; status = fq_client_open("memory:", 7, it, &made, &err); fq_client_free(made))
USE(limiter_open_config, fq_limiter *made = NULL;
    status = fq_limiter_open(others->of[CLIENT], "x", 1, it, &made, &err); fq_limiter_free(made))
USE(limiter_configure_changes, status = fq_limiter_configure(others->of[LIMITER], it, &err))
USE(client_check, status = fq_client_check(it, &err))
USE(client_close, status = fq_client_close(it, 0, &err))
USE(limiter_open, fq_limiter *made = NULL; status = fq_limiter_open(it, "x", 1, NULL, &made, &err); fq_limiter_free(made))
USE(acquire, fq_permit *made = NULL; status = fq_acquire(it, NULL, NULL, &made, &err); fq_permit_free(made))
USE(acquire_start, status = fq_acquire_start(it, NULL, NULL, others->of[QUEUE], 1, &err))
USE(limiter_status, fq_limiter_info info = FQ_LIMITER_INFO_INIT; status = fq_limiter_status(it, &info, &err))
USE(limiter_set_limit, status = fq_limiter_set_limit(it, 9, &err))
USE(limiter_configure, status = fq_limiter_configure(it, NULL, &err))
USE(ticket_new, fq_ticket *made = NULL; status = fq_ticket_new(it, &made, &err); fq_ticket_free(made))
USE(acquire_ticket, fq_permit *made = NULL;
    status = fq_acquire(others->of[LIMITER], NULL, it, &made, &err); fq_permit_free(made))
USE(acquire_start_ticket, status = fq_acquire_start(others->of[LIMITER], NULL, it, others->of[QUEUE], 1, &err))
USE(cancel, status = fq_cancel(it, &err))
USE(ticket_position, fq_position position; status = fq_ticket_position(it, &position, &err))
USE(ticket_last_position, fq_position position; status = fq_ticket_last_position(it, &position, &err))
USE(release, status = fq_release(it, &err))
USE(acquire_start_queue, status = fq_acquire_start(others->of[LIMITER], NULL, NULL, it, 1, &err))
USE(completions_set_fd, status = fq_completions_set_fd(it, -1, &err))
USE(completions_poll, fq_event event; size_t count = 0;
    status = fq_completions_poll(it, &event, 1, 0, &count, &err); if (count > 0) free_event(&event))

/* Those that only read have an answer for what they do not know, in the place of a status. */
static fq_status use_permit_reads(void *it, const struct handles *others) {
    (void)others;
    CHECK_EQUAL(fq_permit_fence(it), 0);
    CHECK_EQUAL(fq_permit_order(it), 0);
    CHECK_EQUAL(fq_permit_cost(it), 0);
    CHECK_EQUAL(fq_permit_is_valid(it), 0);
    CHECK_EQUAL(fq_permit_state(it), FQ_PERMIT_STATE_NONE);
    return FQ_INVALID;
}

static fq_status use_error_reads(void *it, const struct handles *others) {
    (void)others;
    CHECK_EQUAL(fq_error_status(it), FQ_INVALID);
    CHECK_EQUAL(fq_error_message(it)[0], '\0');
    CHECK_EQUAL(fq_error_retryable(it), 0);
    CHECK_EQUAL(fq_error_retry_after_ms(it), FQ_FOREVER);
    return FQ_INVALID;
}

#define ENTRY(name, kind) { #name, kind, use_##name }

const struct use uses[] = {
    ENTRY(config_set, CONFIG),
    ENTRY(client_open, CONFIG),
    ENTRY(limiter_open_config, CONFIG),
    ENTRY(limiter_configure_changes, CONFIG),
    ENTRY(client_check, CLIENT),
    ENTRY(client_close, CLIENT),
    ENTRY(limiter_open, CLIENT),
    ENTRY(acquire, LIMITER),
    ENTRY(acquire_start, LIMITER),
    ENTRY(limiter_status, LIMITER),
    ENTRY(limiter_set_limit, LIMITER),
    ENTRY(limiter_configure, LIMITER),
    ENTRY(ticket_new, LIMITER),
    ENTRY(acquire_ticket, TICKET),
    ENTRY(acquire_start_ticket, TICKET),
    ENTRY(cancel, TICKET),
    ENTRY(ticket_position, TICKET),
    ENTRY(ticket_last_position, TICKET),
    ENTRY(release, PERMIT),
    ENTRY(permit_reads, PERMIT),
    ENTRY(acquire_start_queue, QUEUE),
    ENTRY(completions_set_fd, QUEUE),
    ENTRY(completions_poll, QUEUE),
    ENTRY(error_reads, ERROR),
};
const size_t uses_count = sizeof uses / sizeof uses[0];

void check_use(const struct use *use, void *handle, const struct handles *others, fq_status want) {
    char text[128];
    fq_status got = use->call(handle, others);
    if (use->call == use_permit_reads || use->call == use_error_reads) {
        return; /* checked already */
    }
    if (got != want) {
        snprintf(text, sizeof text, "%s of %p: %s, not %s", use->name, handle, fq_status_name(got), fq_status_name(want));
        fail_at(__FILE__, __LINE__, text);
    }
}
