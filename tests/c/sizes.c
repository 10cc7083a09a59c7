/* Structs that begin with their size: of callers that were built with an older or a newer header. */
#include "check.h"

/* A struct as a later version may have it, with something behind what is known now. */
struct later_request {
    fq_request now;
    uint64_t later[4];
};

struct later_info {
    fq_limiter_info now;
    uint64_t later[4];
};

static void a_request_that_is_too_short_is_refused(void) {
    static const uint32_t sizes[] = {0, 1, 4, 8, sizeof(fq_request) - 1};
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
        fq_request request = FQ_REQUEST_INIT;
        fq_permit *none = NULL;
        request.size = sizes[at];
        CHECK_STATUS(FQ_INVALID, fq_acquire(world.limiter, &request, NULL, &none, &err));
        CHECK_STATUS(FQ_INVALID, fq_acquire_start(world.limiter, &request, NULL, queue, 1, &err));
    }
    no_event(queue);
    fq_completions_free(queue);
    free_world(&world);
}

static void of_a_longer_request_what_is_known_counts(void) {
    struct world world = open_world("limit=3");
    struct later_request request = {FQ_REQUEST_INIT, {UINT64_MAX, 1, 2, 3}};
    fq_permit *permit = NULL;
    request.now.size = sizeof request;
    request.now.cost = 2;
    CHECK_OK(fq_acquire(world.limiter, &request.now, NULL, &permit, &err));
    CHECK_EQUAL(fq_permit_cost(permit), 2);
    fq_permit_free(permit);
    free_world(&world);
}

static void flags_that_mean_nothing_are_refused(void) {
    struct world world = open_world("limit=1");
    fq_permit *none = NULL;
    for (int bit = 2; bit < 32; bit++) {
        fq_request request = FQ_REQUEST_INIT;
        request.flags = UINT32_C(1) << bit;
        CHECK_STATUS(FQ_INVALID, fq_acquire(world.limiter, &request, NULL, &none, &err));
    }
    free_world(&world);
}

static void an_info_that_is_too_short_is_refused(void) {
    static const uint32_t sizes[] = {0, 1, 4, 8, sizeof(fq_limiter_info) - 1};
    struct world world = open_world("limit=1");
    fq_permit_free(take(world.limiter));
    for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
        fq_limiter_info info = FQ_LIMITER_INFO_INIT;
        info.size = sizes[at];
        CHECK_STATUS(FQ_INVALID, fq_limiter_status(world.limiter, &info, &err));
        CHECK_EQUAL(info.size, sizes[at]);
        CHECK_EQUAL(info.limit, 0);
    }
    free_world(&world);
}

static void of_a_longer_info_what_is_known_is_filled_in(void) {
    struct world world = open_world("limit=5");
    struct later_info info = {FQ_LIMITER_INFO_INIT, {11, 12, 13, 14}};
    fq_permit_free(take(world.limiter));
    info.now.size = sizeof info;
    CHECK_OK(fq_limiter_status(world.limiter, &info.now, &err));
    CHECK_EQUAL(info.now.size, sizeof info);
    CHECK_EQUAL(info.now.limit, 5);
    CHECK_EQUAL(info.later[0], 11);
    CHECK_EQUAL(info.later[3], 14);
    free_world(&world);
}

/* Places for answers are emptied first, so that nothing old is found there. */
static void of_a_status_that_fails_nothing_old_is_left(void) {
    struct world world = open_world("limit=1");
    fq_limiter_info info = FQ_LIMITER_INFO_INIT;
    CHECK_OK(fq_client_close(world.client, 0, &err));
    info.limit = 77;
    info.estimate_ms = 77;
    CHECK_STATUS(FQ_CLOSED, fq_limiter_status(world.limiter, &info, &err));
    CHECK_EQUAL(info.size, sizeof info);
    CHECK_EQUAL(info.limit, 0);
    CHECK_EQUAL(info.estimate_ms, 0);
    free_world(&world);
}

const struct test sizes_tests[] = {
    TEST(a_request_that_is_too_short_is_refused),
    TEST(of_a_longer_request_what_is_known_counts),
    TEST(flags_that_mean_nothing_are_refused),
    TEST(an_info_that_is_too_short_is_refused),
    TEST(of_a_longer_info_what_is_known_is_filled_in),
    TEST(of_a_status_that_fails_nothing_old_is_left),
    TESTS_END,
};
