/* Waits of every length are accepted, and mean what they say (S6, S50). */
#include "check.h"

static const uint64_t LONG[] = {
    3600000, INT32_MAX, UINT64_C(1) << 31, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 53) - 2, (UINT64_C(1) << 53) - 1,
    UINT64_C(1) << 53, FQ_DEFAULT - 1, FQ_DEFAULT, FQ_FOREVER, UINT64_C(1) << 63, UINT64_MAX,
};
static const uint64_t SHORT[] = {0, 1, 2, 10, 50};

enum { LONGS = sizeof LONG / sizeof LONG[0], SHORTS = sizeof SHORT / sizeof SHORT[0] };

static void have_it(const fq_limiter *limiter, uint64_t max_wait_ms) {
    fq_request request = waiting(max_wait_ms);
    fq_permit *permit = NULL;
    CHECK_OK(fq_acquire(limiter, &request, NULL, &permit, &err));
    CHECK_OK(fq_release(permit, &err));
    fq_permit_free(permit);
}

static void with_any_wait_a_free_slot_is_had(void) {
    struct world world = open_world("limit=1 max_wait=forever");
    for (int at = 0; at < LONGS; at++) {
        have_it(world.limiter, LONG[at]);
    }
    have_it(world.limiter, 0);
    free_world(&world);
}

static void short_waits_end(void) {
    struct world world = open_world("limit=1");
    fq_permit *permit = take(world.limiter), *none = NULL;
    for (int at = 0; at < SHORTS; at++) {
        fq_request request = waiting(SHORT[at]);
        uint64_t began = now_ms();
        CHECK_STATUS(FQ_TIMED_OUT, fq_acquire(world.limiter, &request, NULL, &none, &err));
        CHECK(now_ms() + 1 >= began + SHORT[at]);
    }
    EVENTUALLY(info_of(world.limiter).waiting == 0);
    fq_permit_free(permit);
    free_world(&world);
}

static void long_waits_wait(void) {
    struct world world = open_world("limit=1 max_wait=forever");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(world.limiter);
    for (uint64_t at = 0; at < LONGS; at++) {
        fq_request request = waiting(LONG[at]);
        CHECK_OK(fq_acquire_start(world.limiter, &request, NULL, queue, at, &err));
    }
    EVENTUALLY(info_of(world.limiter).waiting == LONGS);
    no_event(queue);
    fq_permit_free(permit);
    for (uint64_t at = 0; at < LONGS; at++) {
        fq_event event = next_event(queue);
        CHECK_EQUAL(event.token, at);
        CHECK_EQUAL(event.status, FQ_OK);
        free_event(&event);
    }
    fq_completions_free(queue);
    free_world(&world);
}

static void the_default_is_the_limiter_s_wait(void) {
    struct world world = open_world("limit=1 max_wait=30ms");
    fq_permit *permit = take(world.limiter), *none = NULL;
    fq_request request = FQ_REQUEST_INIT;
    CHECK_EQUAL(request.max_wait_ms, FQ_DEFAULT);
    CHECK_STATUS(FQ_TIMED_OUT, fq_acquire(world.limiter, &request, NULL, &none, &err));
    CHECK_STATUS(FQ_TIMED_OUT, fq_acquire(world.limiter, NULL, NULL, &none, &err));
    fq_permit_free(permit);
    free_world(&world);
}

/* S6: what is less than a millisecond is an option's matter alone, and rounded up there. */
static void a_wait_of_less_than_a_millisecond_is_one(void) {
    struct world world = open_world("limit=1 max_wait=1ms");
    fq_config *config = new_config("");
    CHECK_STATUS(FQ_INVALID, fq_config_set(config, "max_wait", 8, "-1ms", 4, &err));
    fq_status status = fq_config_set(config, "max_wait", 8, "0.4ms", 5, NULL);
    if (status == FQ_OK) {
        CHECK_OK(fq_limiter_configure(world.limiter, config, &err));
        CHECK_EQUAL(info_of(world.limiter).max_wait_ms, 1);
    }
    fq_config_free(config);
    free_world(&world);
}

static void polls_of_any_length_are_accepted(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_event event;
    size_t count = 7;
    for (int at = 0; at < SHORTS; at++) {
        CHECK_OK(fq_completions_poll(queue, &event, 1, SHORT[at], &count, &err));
        CHECK_EQUAL(count, 0);
    }
    for (int at = 0; at < LONGS; at++) {
        start(world.limiter, queue, 1, NULL);
        CHECK_OK(fq_completions_poll(queue, &event, 1, LONG[at], &count, &err));
        CHECK_EQUAL(count, 1);
        free_event(&event);
    }
    fq_completions_free(queue);
    free_world(&world);
}

static void drains_of_any_length_are_accepted(void) {
    for (int at = 0; at < LONGS; at++) {
        struct world world = open_world("limit=1");
        have_it(world.limiter, 1000);
        CHECK_OK(fq_client_close(world.client, LONG[at], &err));
        free_world(&world);
    }
    for (int at = 0; at < SHORTS; at++) {
        struct world world = open_world("limit=1");
        fq_permit *permit = take(world.limiter);
        CHECK_OK(fq_client_close(world.client, SHORT[at], &err));
        CHECK_EQUAL(fq_permit_is_valid(permit), 0);
        fq_permit_free(permit);
        free_world(&world);
    }
}

static void leases_and_holds_without_end_are_accepted_or_refused(void) {
    fq_client *client = open_client();
    static const char *const refused[] = {"limit=1 lease=0", "limit=1 lease=forever", "limit=1 poll=0", "limit=1 idle=1ms"};
    for (size_t at = 0; at < sizeof refused / sizeof refused[0]; at++) {
        fq_limiter *none = (fq_limiter *)(uintptr_t)0xbad;
        fq_config *config = new_config(refused[at]);
        CHECK_STATUS(FQ_INVALID, fq_limiter_open(client, "x", 1, config, &none, &err));
        CHECK(none == NULL);
        fq_config_free(config);
    }
    fq_limiter *limiter = open_limiter(client, new_name(), "limit=1 max_hold=forever max_wait=forever idle=forever");
    have_it(limiter, 0);
    CHECK_EQUAL(info_of(limiter).max_hold_ms, FQ_FOREVER);
    CHECK_EQUAL(info_of(limiter).max_wait_ms, FQ_FOREVER);
    fq_limiter_free(limiter);
    fq_client_free(client);
}

const struct test waits_tests[] = {
    TEST(with_any_wait_a_free_slot_is_had),
    TEST(short_waits_end),
    TEST(long_waits_wait),
    TEST(the_default_is_the_limiter_s_wait),
    TEST(a_wait_of_less_than_a_millisecond_is_one),
    TEST(polls_of_any_length_are_accepted),
    TEST(drains_of_any_length_are_accepted),
    TEST(leases_and_holds_without_end_are_accepted_or_refused),
    TESTS_END,
};
