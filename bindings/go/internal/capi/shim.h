/*
 * What Go calls in the place of fairq.h. Handles are names that look like pointers; Go's garbage collector must never see
 * one as a pointer, so here they are numbers. And what belongs together is one call, since each crossing costs.
 */
#ifndef FAIRQ_GO_SHIM_H
#define FAIRQ_GO_SHIM_H

#include <fairq.h>
#include <string.h>

_Static_assert(sizeof(uintptr_t) == 8, "fairq is for 64-bit machines");

typedef struct {
    int32_t status;
    uintptr_t value;
    uintptr_t err;
} fqgo_result;

/* Like fq_event, with the numbers that every new permit is asked for. */
typedef struct {
    uint64_t token;
    uintptr_t permit;
    uintptr_t err;
    uint64_t position;
    uint64_t estimate_ms;
    uint64_t fence;
    uint64_t order;
    int32_t kind;
    int32_t status;
} fqgo_event;

typedef struct {
    int32_t status;
    uint32_t count;
    uintptr_t ticket;
    uintptr_t err;
} fqgo_started;

enum { FQGO_BATCH = 64 };

/* The caller's struct, filled: a macro, so that each function reads as the call that it makes. */
#define FQGO_CALL(result, call)                     \
    do {                                            \
        fq_error *err_ = NULL;                      \
        (result).status = (call);                   \
        (result).err = (uintptr_t)err_;             \
    } while (0)

/* --- configuration */

static fqgo_result fqgo_config_new(void) {
    fqgo_result result = {0};
    fq_config *config = NULL;
    FQGO_CALL(result, fq_config_new(&config, &err_));
    result.value = (uintptr_t)config;
    return result;
}

static fqgo_result fqgo_config_set(uintptr_t config, _GoString_ key, _GoString_ value) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_config_set((fq_config *)config, _GoStringPtr(key), _GoStringLen(key), _GoStringPtr(value),
                                    _GoStringLen(value), &err_));
    return result;
}

static void fqgo_config_free(uintptr_t config) { fq_config_free((fq_config *)config); }

/* --- clients and limiters */

static fqgo_result fqgo_client_open(_GoString_ url, uintptr_t config) {
    fqgo_result result = {0};
    fq_client *client = NULL;
    FQGO_CALL(result, fq_client_open(_GoStringPtr(url), _GoStringLen(url), (const fq_config *)config, &client, &err_));
    result.value = (uintptr_t)client;
    return result;
}

static fqgo_result fqgo_client_check(uintptr_t client) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_client_check((const fq_client *)client, &err_));
    return result;
}

static fqgo_result fqgo_client_close(uintptr_t client, uint64_t drain_ms) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_client_close((const fq_client *)client, drain_ms, &err_));
    return result;
}

static void fqgo_client_free(uintptr_t client) { fq_client_free((fq_client *)client); }

static fqgo_result fqgo_limiter_open(uintptr_t client, _GoString_ name, uintptr_t config) {
    fqgo_result result = {0};
    fq_limiter *limiter = NULL;
    FQGO_CALL(result, fq_limiter_open((const fq_client *)client, _GoStringPtr(name), _GoStringLen(name),
                                      (const fq_config *)config, &limiter, &err_));
    result.value = (uintptr_t)limiter;
    return result;
}

static fqgo_result fqgo_limiter_status(uintptr_t limiter, fq_limiter_info *info) {
    fqgo_result result = {0};
    info->size = sizeof *info;
    FQGO_CALL(result, fq_limiter_status((const fq_limiter *)limiter, info, &err_));
    return result;
}

static fqgo_result fqgo_limiter_set_limit(uintptr_t limiter, uint64_t limit) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_limiter_set_limit((const fq_limiter *)limiter, limit, &err_));
    return result;
}

static fqgo_result fqgo_limiter_configure(uintptr_t limiter, uintptr_t changes) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_limiter_configure((const fq_limiter *)limiter, (const fq_config *)changes, &err_));
    return result;
}

static void fqgo_limiter_free(uintptr_t limiter) { fq_limiter_free((fq_limiter *)limiter); }

/* --- tickets */

static fqgo_result fqgo_ticket_new(uintptr_t limiter) {
    fqgo_result result = {0};
    fq_ticket *ticket = NULL;
    FQGO_CALL(result, fq_ticket_new((const fq_limiter *)limiter, &ticket, &err_));
    result.value = (uintptr_t)ticket;
    return result;
}

static fqgo_result fqgo_cancel(uintptr_t ticket) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_cancel((const fq_ticket *)ticket, &err_));
    return result;
}

static fqgo_result fqgo_ticket_position(uintptr_t ticket, fq_position *position) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_ticket_position((const fq_ticket *)ticket, position, &err_));
    return result;
}

static fqgo_result fqgo_ticket_last_position(uintptr_t ticket, fq_position *position) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_ticket_last_position((const fq_ticket *)ticket, position, &err_));
    return result;
}

static void fqgo_ticket_free(uintptr_t ticket) { fq_ticket_free((fq_ticket *)ticket); }

/* --- permits */

static fqgo_result fqgo_release(uintptr_t permit) {
    fqgo_result result = {0};
    FQGO_CALL(result, fq_release((const fq_permit *)permit, &err_));
    fq_permit_free((fq_permit *)permit);
    return result;
}

/* How it stood before it was given back. */
static int32_t fqgo_permit_free(uintptr_t permit) {
    int32_t state = fq_permit_state((const fq_permit *)permit);
    fq_permit_free((fq_permit *)permit);
    return state;
}

static int32_t fqgo_permit_state(uintptr_t permit) { return fq_permit_state((const fq_permit *)permit); }
static int32_t fqgo_permit_is_valid(uintptr_t permit) { return fq_permit_is_valid((const fq_permit *)permit); }

/* --- completions */

static fqgo_result fqgo_completions_new(void) {
    fqgo_result result = {0};
    fq_completions *queue = NULL;
    FQGO_CALL(result, fq_completions_new(&queue, &err_));
    result.value = (uintptr_t)queue;
    return result;
}

static void fqgo_completions_free(uintptr_t queue) { fq_completions_free((fq_completions *)queue); }

/* Takes up to `capacity` events, and FQGO_BATCH at most. The error is dropped: the status tells all. */
static fqgo_started fqgo_poll(uintptr_t queue, uint64_t timeout_ms, fqgo_event *events, uint32_t capacity) {
    fqgo_started taken = {0};
    fq_event told[FQGO_BATCH];
    size_t count = 0;
    if (capacity > FQGO_BATCH) {
        capacity = FQGO_BATCH;
    }
    taken.status = fq_completions_poll((const fq_completions *)queue, told, capacity, timeout_ms, &count, NULL);
    for (size_t at = 0; at < count; at++) {
        const fq_event *from = &told[at];
        fqgo_event *to = &events[at];
        memset(to, 0, sizeof *to);
        to->token = from->token;
        to->kind = from->kind;
        to->status = from->status;
        to->permit = (uintptr_t)from->permit;
        to->err = (uintptr_t)from->error;
        to->position = from->position;
        to->estimate_ms = from->estimate_ms;
        if (from->permit != NULL) {
            to->fence = fq_permit_fence(from->permit);
            to->order = fq_permit_order(from->permit);
        }
    }
    taken.count = (uint32_t)count;
    return taken;
}

static int fqgo_is_done(uint64_t token, const fqgo_event *events, uint32_t count) {
    for (uint32_t at = 0; at < count; at++) {
        if (events[at].token == token && events[at].kind == FQ_EVENT_DONE) {
            return 1;
        }
    }
    return 0;
}

/*
 * Starts a request and takes what is told at once, which in memory is its end. With `own_ticket` it makes the ticket, and
 * returns it unless the request has ended.
 */
static fqgo_started fqgo_acquire_start(uintptr_t limiter, uintptr_t queue, uint64_t token, uint32_t flags,
                                       uint64_t max_wait_ms, uint64_t cost, _GoString_ label, uintptr_t ticket,
                                       int own_ticket, fqgo_event *events, uint32_t capacity) {
    fqgo_started started = {0}, taken;
    fq_request request = FQ_REQUEST_INIT;
    fq_ticket *own = NULL;
    request.flags = flags;
    request.max_wait_ms = max_wait_ms;
    request.cost = cost;
    request.label = _GoStringPtr(label);
    request.label_len = _GoStringLen(label);
    if (own_ticket) {
        FQGO_CALL(started, fq_ticket_new((const fq_limiter *)limiter, &own, &err_));
        if (started.status != FQ_OK) {
            return started;
        }
        ticket = (uintptr_t)own;
    }
    FQGO_CALL(started, fq_acquire_start((const fq_limiter *)limiter, &request, (const fq_ticket *)ticket,
                                        (const fq_completions *)queue, token, &err_));
    if (started.status == FQ_OK) {
        taken = fqgo_poll(queue, 0, events, capacity);
        started.count = taken.count;
    }
    if (started.status != FQ_OK || fqgo_is_done(token, events, started.count)) {
        fq_ticket_free(own);
        own = NULL;
    }
    started.ticket = (uintptr_t)own;
    return started;
}

/* --- errors */

typedef struct {
    uint64_t retry_after_ms;
    size_t length; /* of the whole message */
    int32_t retryable;
} fqgo_failure;

/* Reads an error, and frees it if all of its message has gone into `message`. */
static fqgo_failure fqgo_error_take(uintptr_t err, char *message, size_t capacity) {
    fqgo_failure failure;
    const char *text = fq_error_message((const fq_error *)err);
    failure.length = strlen(text);
    failure.retryable = fq_error_retryable((const fq_error *)err);
    failure.retry_after_ms = fq_error_retry_after_ms((const fq_error *)err);
    if (failure.length <= capacity) {
        memcpy(message, text, failure.length);
        fq_error_free((fq_error *)err);
    }
    return failure;
}

#endif
