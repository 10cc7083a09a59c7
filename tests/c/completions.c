/* Requests that are started, and events that are polled. */
#include "check.h"

static void each_start_has_exactly_one_completion_with_its_token(void) {
    static const uint64_t tokens[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, 1, 0};
    const size_t count = sizeof tokens / sizeof tokens[0];
    struct world world = open_world("limit=100");
    fq_completions *queue = new_queue();
    unsigned seen[6] = {0};
    for (size_t at = 0; at < count; at++) {
        CHECK_OK(fq_acquire_start(world.limiter, NULL, NULL, queue, tokens[at], &err));
    }
    for (size_t got = 0; got < count; got++) {
        fq_event event = next_event(queue);
        CHECK_EQUAL(event.kind, FQ_EVENT_DONE);
        CHECK_EQUAL(event.status, FQ_OK);
        CHECK(event.permit != NULL && event.error == NULL);
        CHECK_EQUAL(event.position, 0);
        CHECK_EQUAL(event.estimate_ms, FQ_FOREVER);
        size_t at = 0;
        while (at < count && (tokens[at] != event.token || seen[at] != 0)) {
            at++;
        }
        CHECK(at < count);
        seen[at]++;
        free_event(&event);
    }
    no_event(queue);
    all_is_given_back(world.limiter);
    fq_completions_free(queue);
    free_world(&world);
}

static void a_refusal_is_a_completion_as_well(void) {
    struct world world = open_world("limit=1 max_queue=0");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(world.limiter);
    fq_request request = FQ_REQUEST_INIT;
    CHECK_OK(fq_acquire_start(world.limiter, &request, NULL, queue, 1, &err));
    fq_event event = next_event(queue);
    CHECK_EQUAL(event.status, FQ_QUEUE_FULL);
    CHECK_EQUAL(fq_error_status(event.error), FQ_QUEUE_FULL);
    free_event(&event);
    request.cost = 2;
    CHECK_OK(fq_acquire_start(world.limiter, &request, NULL, queue, 2, &err));
    event = next_event(queue);
    CHECK_EQUAL(event.status, FQ_IMPOSSIBLE);
    free_event(&event);
    fq_completions_free(queue);
    fq_permit_free(permit);
    free_world(&world);
}

static void a_start_that_fails_has_no_completion(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_request request = FQ_REQUEST_INIT;
    request.cost = 0;
    CHECK_STATUS(FQ_INVALID, fq_acquire_start(world.limiter, &request, NULL, queue, 1, &err));
    no_event(queue);
    fq_completions_free(queue);
    free_world(&world);
}

static void a_poll_takes_no_more_than_there_is_room_for(void) {
    struct world world = open_world("limit=8");
    fq_completions *queue = new_queue();
    fq_event events[8];
    size_t count = 0, taken = 0;
    for (uint64_t token = 0; token < 8; token++) {
        start(world.limiter, queue, token, NULL);
    }
    memset(events, 0x5a, sizeof events);
    while (taken < 8) {
        CHECK_OK(fq_completions_poll(queue, events, 3, SOON_MS, &count, &err));
        CHECK(count >= 1 && count <= 3);
        CHECK_EQUAL(events[3].token, UINT64_C(0x5a5a5a5a5a5a5a5a));
        for (size_t at = 0; at < count; at++, taken++) {
            free_event(&events[at]);
        }
    }
    no_event(queue);
    fq_completions_free(queue);
    free_world(&world);
}

static void one_queue_serves_several_clients(void) {
    struct world first = open_world("limit=1"), second = open_world("limit=1");
    fq_completions *queue = new_queue();
    start(first.limiter, queue, 1, NULL);
    start(second.limiter, queue, 2, NULL);
    fq_event one = next_event(queue), two = next_event(queue);
    CHECK_EQUAL(one.token + two.token, 3);
    CHECK(one.permit != NULL && two.permit != NULL);
    free_event(&one);
    free_event(&two);
    fq_completions_free(queue);
    free_world(&first);
    free_world(&second);
}

struct pollers {
    const fq_completions *queue;
    uint64_t left;
    unsigned char *seen;
};

static void *poll_with_others(void *argument) {
    struct pollers *all = argument;
    fq_event events[7];
    size_t count = 0;
    while (__atomic_load_n(&all->left, __ATOMIC_ACQUIRE) != 0) {
        CHECK_OK(fq_completions_poll(all->queue, events, 7, 20, &count, &err));
        for (size_t at = 0; at < count; at++) {
            CHECK_EQUAL(events[at].status, FQ_OK);
            CHECK_EQUAL(__atomic_add_fetch(&all->seen[events[at].token], 1, __ATOMIC_RELAXED), 1);
            free_event(&events[at]); /* the next one's turn */
        }
        __atomic_sub_fetch(&all->left, count, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void threads_that_poll_one_queue_share_its_events(void) {
    struct world world = open_world("limit=3 max_queue=unbounded");
    uint64_t total = rounds(on_memory() ? 20000 : 2000);
    struct pollers all = {new_queue(), total, calloc(total, 1)};
    pthread_t threads[4];
    CHECK(all.seen != NULL);
    for (int at = 0; at < 4; at++) {
        threads[at] = run_thread(poll_with_others, &all);
    }
    for (uint64_t token = 0; token < total; token++) {
        start(world.limiter, all.queue, token, NULL);
    }
    for (int at = 0; at < 4; at++) {
        join(threads[at]);
    }
    for (uint64_t token = 0; token < total; token++) {
        CHECK_EQUAL(all.seen[token], 1);
    }
    all_is_given_back(world.limiter);
    free(all.seen);
    fq_completions_free((fq_completions *)all.queue);
    free_world(&world);
}

/* A permit may be used, given back and freed by threads that the library has never seen. */
static void *give_back(void *permit) {
    CHECK_EQUAL(fq_permit_is_valid(permit), 1);
    fq_permit_free(permit);
    return NULL;
}

static void permits_are_freed_by_any_thread(void) {
    struct world world = open_world("limit=4");
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        for (int at = 0; at < 4; at++) {
            threads[at] = run_thread(give_back, take(world.limiter));
        }
        for (int at = 0; at < 4; at++) {
            join(threads[at]);
        }
    }
    all_is_given_back(world.limiter);
    free_world(&world);
}

const struct test completions_tests[] = {
    TEST(each_start_has_exactly_one_completion_with_its_token),
    TEST(a_refusal_is_a_completion_as_well),
    TEST(a_start_that_fails_has_no_completion),
    TEST(a_poll_takes_no_more_than_there_is_room_for),
    TEST(one_queue_serves_several_clients),
    TEST(threads_that_poll_one_queue_share_its_events),
    TEST(permits_are_freed_by_any_thread),
    TESTS_END,
};
