/* Closing a client while others use it. */
#include "check.h"

enum { THREADS = 8, STARTED = 100 };

struct waiter {
    const fq_limiter *limiter;
    fq_status status;
};

static void *wait_in_line(void *argument) {
    struct waiter *waiter = argument;
    fq_permit *permit = NULL;
    fq_request request = waiting_for_ever();
    waiter->status = fq_acquire(waiter->limiter, &request, NULL, &permit, NULL);
    CHECK(permit == NULL);
    return NULL;
}

static void every_waiter_is_told_once_that_it_is_closed(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(world.limiter);
    struct waiter waiters[THREADS];
    pthread_t threads[THREADS];
    unsigned seen[STARTED] = {0};
    for (int at = 0; at < THREADS; at++) {
        waiters[at].limiter = world.limiter;
        threads[at] = run_thread(wait_in_line, &waiters[at]);
    }
    for (uint64_t token = 0; token < STARTED; token++) {
        start(world.limiter, queue, token, NULL);
    }
    EVENTUALLY(info_of(world.limiter).waiting == THREADS + STARTED);
    CHECK_OK(fq_client_close(world.client, 0, &err));
    for (int at = 0; at < THREADS; at++) {
        join(threads[at]);
        CHECK_EQUAL(waiters[at].status, FQ_CLOSED);
    }
    for (int got = 0; got < STARTED; got++) {
        fq_event event = next_event(queue);
        CHECK_EQUAL(event.status, FQ_CLOSED);
        CHECK_EQUAL(++seen[event.token], 1);
        free_event(&event);
    }
    no_event(queue);
    fq_permit_free(permit);
    fq_completions_free(queue);
    free_world(&world);
}

static void a_closed_client_answers_so_and_its_handles_stay(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_ticket *ticket = new_ticket(world.limiter);
    fq_permit *permit = take(world.limiter), *none = NULL;
    fq_limiter *another = NULL;
    fq_limiter_info info = FQ_LIMITER_INFO_INIT;
    CHECK_OK(fq_client_close(world.client, 0, &err));
    CHECK_OK(fq_client_close(world.client, 0, &err));
    CHECK_STATUS(FQ_CLOSED, fq_client_check(world.client, &err));
    CHECK_STATUS(FQ_CLOSED, fq_acquire(world.limiter, NULL, NULL, &none, &err));
    CHECK_STATUS(FQ_CLOSED, fq_acquire(world.limiter, NULL, ticket, &none, &err));
    CHECK_STATUS(FQ_CLOSED, fq_limiter_open(world.client, "x", 1, NULL, &another, &err));
    CHECK_STATUS(FQ_CLOSED, fq_limiter_status(world.limiter, &info, &err));
    CHECK_STATUS(FQ_CLOSED, fq_limiter_set_limit(world.limiter, 1, &err));
    CHECK_OK(fq_acquire_start(world.limiter, NULL, NULL, queue, 5, &err));
    fq_event event = next_event(queue);
    CHECK_EQUAL(event.token, 5);
    CHECK_EQUAL(event.status, FQ_CLOSED);
    free_event(&event);
    CHECK_EQUAL(fq_permit_is_valid(permit), 0);
    CHECK_EQUAL(fq_permit_state(permit), FQ_PERMIT_STATE_LOST);
    CHECK_STATUS(FQ_PERMIT_LOST, fq_release(permit, &err));
    fq_permit_free(permit);
    fq_ticket_free(ticket);
    fq_completions_free(queue);
    free_world(&world);
}

static void *close_it(void *client) {
    CHECK_OK(fq_client_close(client, FQ_FOREVER, &err));
    return NULL;
}

static void closing_waits_for_what_is_held(void) {
    struct world world = open_world("limit=1");
    fq_permit *permit = take(world.limiter), *none = NULL;
    pthread_t first = run_thread(close_it, world.client), second = run_thread(close_it, world.client);
    EVENTUALLY(fq_acquire(world.limiter, NULL, NULL, &none, NULL) == FQ_CLOSED || (fq_permit_free(none), 0));
    CHECK_EQUAL(fq_permit_is_valid(permit), 1);
    CHECK_OK(fq_release(permit, &err));
    join(first);
    join(second);
    fq_permit_free(permit);
    free_world(&world);
}

static void what_a_closed_client_held_is_free_for_others(void) {
    fq_client *leaver = open_client(), *stayer = open_client();
    const char *name = new_name();
    fq_limiter *left = open_limiter(leaver, name, "limit=1"), *stays = open_limiter(stayer, name, "limit=1");
    fq_permit *held = take(left);
    CHECK_OK(fq_client_close(leaver, 0, &err));
    fq_permit_free(take(stays));
    fq_permit_free(held);
    all_is_given_back(stays);
    fq_limiter_free(left);
    fq_limiter_free(stays);
    fq_client_free(leaver);
    fq_client_free(stayer);
}

/* Threads that go on acquiring while the client is closed under them. */
static void *acquire_until_closed(void *argument) {
    struct waiter *waiter = argument;
    for (;;) {
        fq_permit *permit = NULL;
        waiter->status = fq_acquire(waiter->limiter, NULL, NULL, &permit, NULL);
        if (waiter->status != FQ_OK) {
            CHECK(permit == NULL);
            return NULL;
        }
        fq_permit_free(permit);
    }
}

static void closing_in_full_swing_ends_everybody_as_closed(void) {
    for (uint64_t round = rounds(on_memory() ? 100 : 20); round > 0; round--) {
        struct world world = open_world("limit=2");
        struct waiter waiters[4];
        pthread_t threads[4];
        struct chance chance = {round};
        for (int at = 0; at < 4; at++) {
            waiters[at].limiter = world.limiter;
            threads[at] = run_thread(acquire_until_closed, &waiters[at]);
        }
        dawdle(&chance, 100000);
        CHECK_OK(fq_client_close(world.client, 0, &err));
        for (int at = 0; at < 4; at++) {
            join(threads[at]);
            CHECK_EQUAL(waiters[at].status, FQ_CLOSED);
        }
        free_world(&world);
    }
}

const struct test close_tests[] = {
    TEST(every_waiter_is_told_once_that_it_is_closed),
    TEST(a_closed_client_answers_so_and_its_handles_stay),
    TEST(closing_waits_for_what_is_held),
    TEST(what_a_closed_client_held_is_free_for_others),
    TEST(closing_in_full_swing_ends_everybody_as_closed),
    TESTS_END,
};
