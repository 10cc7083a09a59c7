/* What check.h declares. */
#include "check.h"

#include <inttypes.h>
#include <time.h>

const char *running = "nothing yet";

/* --- Checks -------------------------------------------------------------------------------------------------------- */

void fail_at(const char *file, int line, const char *what) {
    fflush(stdout);
    fprintf(stderr, "\nFAILED %s\n  %s:%d: %s\n", running, file, line, what);
    fflush(stderr);
    _exit(1);
}

void check_equal(const char *file, int line, const char *what, uint64_t got, uint64_t want) {
    char text[512];
    if (got == want) {
        return;
    }
    snprintf(text, sizeof text, "%s is %" PRIu64 ", not %" PRIu64, what, got, want);
    fail_at(file, line, text);
}

void check_status(const char *file, int line, const char *call, fq_status got, fq_status want, fq_error *err) {
    char text[1024];
    if (got != want) {
        snprintf(text, sizeof text, "%s: %s (%s), not %s", call, fq_status_name(got), fq_error_message(err),
                 fq_status_name(want));
        fail_at(file, line, text);
    }
    if ((err == NULL) != (got == FQ_OK) || fq_error_status(err) != got) {
        snprintf(text, sizeof text, "%s: the error does not go with the status", call);
        fail_at(file, line, text);
    }
    if (err != NULL && fq_error_message(err)[0] == '\0') {
        snprintf(text, sizeof text, "%s: an error without a message", call);
        fail_at(file, line, text);
    }
    fq_error_free(err);
}

/* --- Objects ------------------------------------------------------------------------------------------------------- */

const char *url(void) {
    const char *given = getenv("FAIRQ_URL");
    return given != NULL && given[0] != '\0' ? given : "memory:";
}

int on_memory(void) {
    return strncmp(url(), "memory:", 7) == 0;
}

const char *new_name(void) {
    static char names[16][64];
    static unsigned count;
    unsigned number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    char *name = names[number % 16];
    snprintf(name, sizeof names[0], "c-%ld-%" PRIu64 "-%u", (long)getpid(), now_ms(), number);
    return name;
}

fq_config *new_config(const char *options) {
    fq_config *config = NULL;
    CHECK_OK(fq_config_new(&config, &err));
    while (*options != '\0') {
        size_t key = strcspn(options, "=");
        const char *value = options + key + 1;
        size_t length = strcspn(value, " ");
        CHECK_OK(fq_config_set(config, options, key, value, length, &err));
        options = value + length + strspn(value + length, " ");
    }
    return config;
}

fq_client *open_client(void) {
    fq_client *client = NULL;
    CHECK_OK(fq_client_open(url(), strlen(url()), NULL, &client, &err));
    return client;
}

fq_limiter *open_limiter(const fq_client *client, const char *name, const char *options) {
    fq_limiter *limiter = NULL;
    fq_config *config = new_config(options);
    CHECK_OK(fq_limiter_open(client, name, strlen(name), config, &limiter, &err));
    fq_config_free(config);
    return limiter;
}

fq_completions *new_queue(void) {
    fq_completions *queue = NULL;
    CHECK_OK(fq_completions_new(&queue, &err));
    return queue;
}

fq_ticket *new_ticket(const fq_limiter *limiter) {
    fq_ticket *ticket = NULL;
    CHECK_OK(fq_ticket_new(limiter, &ticket, &err));
    return ticket;
}

struct world open_world(const char *options) {
    struct world world;
    world.client = open_client();
    world.limiter = open_limiter(world.client, new_name(), options);
    return world;
}

void free_world(struct world *world) {
    fq_limiter_free(world->limiter);
    fq_client_free(world->client);
}

fq_request waiting(uint64_t max_wait_ms) {
    fq_request request = FQ_REQUEST_INIT;
    request.max_wait_ms = max_wait_ms;
    return request;
}

fq_request waiting_for_ever(void) {
    return waiting(FQ_FOREVER);
}

fq_permit *take(const fq_limiter *limiter) {
    fq_permit *permit = NULL;
    fq_request request = waiting(SOON_MS);
    CHECK_OK(fq_acquire(limiter, &request, NULL, &permit, &err));
    return permit;
}

void start(const fq_limiter *limiter, const fq_completions *queue, uint64_t token, fq_ticket **ticket) {
    fq_request request = waiting_for_ever();
    if (ticket != NULL) {
        *ticket = new_ticket(limiter);
    }
    CHECK_OK(fq_acquire_start(limiter, &request, ticket == NULL ? NULL : *ticket, queue, token, &err));
}

fq_event next_event(const fq_completions *queue) {
    fq_event event;
    size_t count = 0;
    CHECK_OK(fq_completions_poll(queue, &event, 1, SOON_MS, &count, &err));
    CHECK_EQUAL(count, 1);
    return event;
}

fq_event next_of_kind(const fq_completions *queue, int32_t kind) {
    for (;;) {
        fq_event event = next_event(queue);
        if (event.kind == kind) {
            return event;
        }
        free_event(&event);
    }
}

void no_event(const fq_completions *queue) {
    fq_event event;
    size_t count = 1;
    CHECK_OK(fq_completions_poll(queue, &event, 1, 0, &count, &err));
    CHECK_EQUAL(count, 0);
}

void free_event(fq_event *event) {
    fq_permit_free(event->permit);
    fq_error_free(event->error);
}

fq_limiter_info info_of(const fq_limiter *limiter) {
    fq_limiter_info info = FQ_LIMITER_INFO_INIT;
    CHECK_OK(fq_limiter_status(limiter, &info, &err));
    return info;
}

static int is_idle(const fq_limiter *limiter) {
    fq_limiter_info info = info_of(limiter);
    return info.used == 0 && info.holders == 0 && info.waiting == 0;
}

void all_is_given_back(const fq_limiter *limiter) {
    EVENTUALLY(is_idle(limiter));
}

/* --- Threads, time, chance ----------------------------------------------------------------------------------------- */

pthread_t run_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0);
    return thread;
}

void join(pthread_t thread) {
    CHECK(pthread_join(thread, NULL) == 0);
}

uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void nap(void) {
    struct timespec moment = {0, 300000};
    nanosleep(&moment, NULL);
}

static uint64_t scale(void) {
    const char *given = getenv("FAIRQ_TEST_SCALE");
    return given != NULL && given[0] != '\0' ? strtoull(given, NULL, 10) : 100;
}

uint64_t rounds(uint64_t full) {
    uint64_t some = full * scale() / 100;
    return some > 0 ? some : 1;
}

int is_scaled_down(void) {
    return scale() < 100;
}

uint64_t below(struct chance *chance, uint64_t bound) {
    chance->state ^= chance->state << 13;
    chance->state ^= chance->state >> 7;
    chance->state ^= chance->state << 17;
    return chance->state % bound;
}

void dawdle(struct chance *chance, uint64_t longest) {
    uint64_t steps = below(chance, longest);
    for (volatile uint64_t step = 0; step < steps; step++) {
    }
}

void note_cancel(struct hesitation *hesitation, fq_status status) {
    hesitation->in_a_row = status == FQ_OK ? hesitation->in_a_row + 1 : 0;
    if (hesitation->in_a_row == 100 && hesitation->longest < UINT64_C(1) << 26) {
        hesitation->longest *= 2;
        hesitation->in_a_row = 0;
    } else if (status == FQ_STALE && hesitation->longest > 1000) {
        hesitation->longest -= hesitation->longest / 4;
    }
}
