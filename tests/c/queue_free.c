/* A completion queue that goes while others need it. */
#include "check.h"

struct poller {
    fq_completions *queue;
    pthread_barrier_t line;
    fq_status status;
};

static void *poll_for_ever(void *argument) {
    struct poller *poller = argument;
    fq_event event;
    size_t count = 0;
    pthread_barrier_wait(&poller->line);
    poller->status = fq_completions_poll(poller->queue, &event, 1, FQ_FOREVER, &count, NULL);
    CHECK_EQUAL(count, 0);
    return NULL;
}

static void who_polls_learns_that_the_queue_is_gone(void) {
    uint64_t found_in_the_poll = 0, total = rounds(300);
    struct chance chance = {5};
    uint64_t until = now_ms() + SOON_MS;
    for (uint64_t round = 0; round < total || (found_in_the_poll == 0 && now_ms() < until); round++) {
        struct poller poller = {new_queue(), .status = FQ_OK};
        CHECK(pthread_barrier_init(&poller.line, NULL, 2) == 0);
        pthread_t thread = run_thread(poll_for_ever, &poller);
        pthread_barrier_wait(&poller.line);
        dawdle(&chance, 200000);
        fq_completions_free(poller.queue);
        join(thread);
        /* Invalid: it came with a name that was nobody's any more. */
        CHECK(poller.status == FQ_CLOSED || poller.status == FQ_INVALID);
        found_in_the_poll += poller.status == FQ_CLOSED;
        CHECK(pthread_barrier_destroy(&poller.line) == 0);
    }
    CHECK(found_in_the_poll > 0);
}

static void its_requests_leave_the_line(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue(), *another = new_queue();
    fq_permit *permit = take(world.limiter);
    for (uint64_t token = 0; token < 50; token++) {
        start(world.limiter, queue, token, NULL);
    }
    start(world.limiter, another, 99, NULL);
    EVENTUALLY(info_of(world.limiter).waiting == 51);
    fq_completions_free(queue);
    EVENTUALLY(info_of(world.limiter).waiting == 1);
    fq_permit_free(permit);
    fq_event event = next_event(another);
    CHECK_EQUAL(event.token, 99);
    CHECK_EQUAL(event.status, FQ_OK);
    free_event(&event);
    all_is_given_back(world.limiter);
    fq_completions_free(another);
    free_world(&world);
}

static void permits_that_nobody_has_polled_go_back(void) {
    struct world world = open_world("limit=10");
    fq_completions *queue = new_queue();
    for (uint64_t token = 0; token < 10; token++) {
        start(world.limiter, queue, token, NULL);
    }
    EVENTUALLY(info_of(world.limiter).used == 10);
    fq_completions_free(queue);
    all_is_given_back(world.limiter);
    free_world(&world);
}

static void permits_that_were_polled_stay(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    start(world.limiter, queue, 1, NULL);
    fq_event event = next_event(queue);
    fq_completions_free(queue);
    CHECK_EQUAL(fq_permit_is_valid(event.permit), 1);
    CHECK_EQUAL(info_of(world.limiter).used, 1);
    free_event(&event);
    all_is_given_back(world.limiter);
    free_world(&world);
}

static void *free_it(void *queue) {
    fq_completions_free(queue);
    return NULL;
}

/* Starts run into the end of their queue. */
static void end_queues_in_full_swing(const fq_limiter *limiter) {
    struct chance chance = {11};
    for (uint64_t round = rounds(on_memory() ? 3000 : 50); round > 0; round--) {
        fq_completions *queue = new_queue();
        pthread_t thread = run_thread(free_it, queue);
        fq_request request = waiting_for_ever();
        fq_status status = FQ_OK;
        for (int started = 0; started < 100 && status == FQ_OK; started++) {
            status = fq_acquire_start(limiter, &request, NULL, queue, 1, NULL);
            dawdle(&chance, 100);
        }
        CHECK(status == FQ_OK || status == FQ_INVALID);
        join(thread);
    }
}

static void grants_to_a_queue_that_goes_are_given_back(void) {
    struct world world = open_world("limit=2");
    end_queues_in_full_swing(world.limiter);
    all_is_given_back(world.limiter);
    free_world(&world);
}

static void starts_on_a_queue_that_goes_do_not_stay_in_line(void) {
    struct world world = open_world("limit=1");
    fq_permit *permit = take(world.limiter);
    end_queues_in_full_swing(world.limiter);
    EVENTUALLY(info_of(world.limiter).waiting == 0);
    fq_permit_free(permit);
    all_is_given_back(world.limiter);
    free_world(&world);
}

const struct test queue_free_tests[] = {
    TEST(who_polls_learns_that_the_queue_is_gone),
    TEST(its_requests_leave_the_line),
    TEST(permits_that_nobody_has_polled_go_back),
    TEST(permits_that_were_polled_stay),
    TEST(grants_to_a_queue_that_goes_are_given_back),
    TEST(starts_on_a_queue_that_goes_do_not_stay_in_line),
    TESTS_END,
};
