/* Permits: had, waited for, refused, given back. */
#include "check.h"

static void a_permit_is_had_and_given_back(void) {
    struct world world = open_world("limit=1");
    for (int round = 0; round < 3; round++) {
        fq_permit *permit = NULL;
        CHECK_OK(fq_acquire(world.limiter, NULL, NULL, &permit, &err));
        CHECK(permit != NULL);
        CHECK_EQUAL(fq_permit_is_valid(permit), 1);
        CHECK_EQUAL(fq_permit_state(permit), FQ_PERMIT_STATE_VALID);
        CHECK_EQUAL(info_of(world.limiter).used, 1);
        CHECK_OK(fq_release(permit, &err));
        CHECK_EQUAL(fq_permit_state(permit), FQ_PERMIT_STATE_RELEASED);
        CHECK_EQUAL(info_of(world.limiter).used, 0);
        fq_permit_free(permit);
    }
    free_world(&world);
}

static void freeing_a_permit_gives_it_back_in_the_background(void) {
    struct world world = open_world("limit=1");
    fq_permit_free(take(world.limiter));
    fq_permit_free(take(world.limiter));
    all_is_given_back(world.limiter);
    free_world(&world);
}

static void a_second_release_is_stale(void) {
    struct world world = open_world("limit=1");
    fq_permit *permit = take(world.limiter);
    CHECK_OK(fq_release(permit, &err));
    CHECK_STATUS(FQ_STALE, fq_release(permit, &err));
    fq_permit_free(permit);
    free_world(&world);
}

static void a_permit_tells_its_fence_order_and_cost(void) {
    struct world world = open_world("limit=8");
    fq_request request = FQ_REQUEST_INIT;
    request.cost = 3;
    fq_permit *first = take(world.limiter), *second = NULL;
    CHECK_OK(fq_acquire(world.limiter, &request, NULL, &second, &err));
    CHECK_EQUAL(fq_permit_cost(first), 1);
    CHECK_EQUAL(fq_permit_cost(second), 3);
    CHECK(fq_permit_fence(first) > 0);
    CHECK(fq_permit_fence(second) > fq_permit_fence(first));
    CHECK(fq_permit_order(second) > fq_permit_order(first));
    CHECK_EQUAL(info_of(world.limiter).used, 4);
    fq_permit_free(first);
    fq_permit_free(second);
    free_world(&world);
}

struct request_of_another_thread {
    const fq_limiter *limiter;
    fq_permit *permit;
};

static void *acquire_in_a_thread(void *argument) {
    struct request_of_another_thread *request = argument;
    request->permit = take(request->limiter);
    return NULL;
}

static void who_comes_second_waits_for_the_first(void) {
    struct world world = open_world("limit=1");
    struct request_of_another_thread other = {world.limiter, NULL};
    fq_permit *permit = take(world.limiter);
    uint64_t fence = fq_permit_fence(permit);
    pthread_t thread = run_thread(acquire_in_a_thread, &other);
    EVENTUALLY(info_of(world.limiter).waiting == 1);
    CHECK_OK(fq_release(permit, &err));
    join(thread);
    CHECK(fq_permit_fence(other.permit) > fence);
    fq_permit_free(permit);
    fq_permit_free(other.permit);
    free_world(&world);
}

static void grants_follow_the_order_of_arrival(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(world.limiter);
    for (uint64_t token = 0; token < 20; token++) {
        start(world.limiter, queue, token, NULL);
    }
    fq_permit_free(permit);
    for (uint64_t token = 0; token < 20; token++) {
        fq_event event = next_event(queue);
        CHECK_EQUAL(event.token, token);
        CHECK_EQUAL(event.status, FQ_OK);
        free_event(&event);
    }
    fq_completions_free(queue);
    free_world(&world);
}

static void without_waiting_it_is_had_at_once_or_times_out(void) {
    struct world world = open_world("limit=1");
    fq_request request = waiting(0);
    fq_permit *permit = NULL, *none = (fq_permit *)(uintptr_t)0xbad;
    CHECK_OK(fq_acquire(world.limiter, &request, NULL, &permit, &err));
    CHECK_STATUS(FQ_TIMED_OUT, fq_acquire(world.limiter, &request, NULL, &none, &err));
    CHECK(none == NULL);
    CHECK_EQUAL(info_of(world.limiter).waiting, 0);
    fq_permit_free(permit);
    free_world(&world);
}

static void a_full_line_is_refused_and_worth_another_try(void) {
    struct world world = open_world("limit=1 max_queue=1");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(world.limiter), *none = NULL;
    fq_error *error = NULL;
    start(world.limiter, queue, 1, NULL);
    EVENTUALLY(info_of(world.limiter).waiting == 1);
    CHECK_EQUAL(fq_acquire(world.limiter, NULL, NULL, &none, &error), FQ_QUEUE_FULL);
    CHECK_EQUAL(fq_error_status(error), FQ_QUEUE_FULL);
    CHECK_EQUAL(fq_error_retryable(error), 1);
    CHECK(none == NULL);
    fq_error_free(error);
    fq_completions_free(queue);
    fq_permit_free(permit);
    free_world(&world);
}

static void a_cost_above_the_limit_is_impossible(void) {
    struct world world = open_world("limit=2");
    fq_request request = FQ_REQUEST_INIT;
    fq_permit *none = NULL;
    request.cost = 3;
    CHECK_STATUS(FQ_IMPOSSIBLE, fq_acquire(world.limiter, &request, NULL, &none, &err));
    request.cost = 0;
    CHECK_STATUS(FQ_INVALID, fq_acquire(world.limiter, &request, NULL, &none, &err));
    request.cost = UINT64_MAX;
    CHECK_STATUS(FQ_INVALID, fq_acquire(world.limiter, &request, NULL, &none, &err));
    free_world(&world);
}

static void attaching_finds_what_others_have_declared(void) {
    fq_client *client = open_client();
    const char *name = new_name();
    fq_limiter *attached = NULL;
    fq_limiter_info info = FQ_LIMITER_INFO_INIT;
    fq_permit *permit = NULL;
    CHECK_OK(fq_limiter_open(client, name, strlen(name), NULL, &attached, &err));
    CHECK_STATUS(FQ_NO_SUCH_LIMITER, fq_acquire(attached, NULL, NULL, &permit, &err));
    CHECK_STATUS(FQ_NO_SUCH_LIMITER, fq_limiter_status(attached, &info, &err));

    fq_client *another = open_client();
    fq_limiter *declared = open_limiter(another, name, "limit=1");
    fq_permit_free(take(declared));
    fq_permit_free(take(attached));
    fq_limiter_free(attached);
    fq_limiter_free(declared);
    fq_client_free(client);
    fq_client_free(another);
}

static void an_operator_changes_the_limit_while_it_runs(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(world.limiter);
    start(world.limiter, queue, 7, NULL);
    CHECK_OK(fq_limiter_set_limit(world.limiter, 2, &err));
    fq_event event = next_event(queue);
    CHECK_EQUAL(event.status, FQ_OK);
    CHECK_EQUAL(info_of(world.limiter).limit, 2);
    free_event(&event);
    fq_permit_free(permit);
    fq_completions_free(queue);
    free_world(&world);
}

static void an_operator_pauses_and_resumes(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_config *pause = new_config("paused=true"), *resume = new_config("paused=false max_wait=forever max_queue=9");
    fq_permit_free(take(world.limiter));
    CHECK_OK(fq_limiter_configure(world.limiter, pause, &err));
    CHECK_EQUAL(info_of(world.limiter).paused, 1);
    start(world.limiter, queue, 7, NULL);
    EVENTUALLY(info_of(world.limiter).waiting == 1);
    CHECK_OK(fq_limiter_configure(world.limiter, resume, &err));
    fq_event event = next_event(queue);
    CHECK_EQUAL(event.status, FQ_OK);
    free_event(&event);
    CHECK_EQUAL(info_of(world.limiter).paused, 0);
    CHECK_EQUAL(info_of(world.limiter).max_wait_ms, FQ_FOREVER);
    CHECK_EQUAL(info_of(world.limiter).max_queue, 9);
    fq_config_free(pause);
    fq_config_free(resume);
    fq_completions_free(queue);
    free_world(&world);
}

static void status_tells_what_was_declared(void) {
    struct world world = open_world("limit=3 max_queue=7 max_wait=1500ms lease=4s max_hold=2m");
    fq_permit *permit = take(world.limiter);
    fq_limiter_info info = info_of(world.limiter);
    CHECK_EQUAL(info.size, sizeof info);
    CHECK_EQUAL(info.limit, 3);
    CHECK_EQUAL(info.max_queue, 7);
    CHECK_EQUAL(info.max_wait_ms, 1500);
    CHECK_EQUAL(info.lease_ms, 4000);
    CHECK_EQUAL(info.max_hold_ms, 120000);
    CHECK_EQUAL(info.used, 1);
    CHECK_EQUAL(info.holders, 1);
    CHECK_EQUAL(info.instances, 1);
    CHECK_EQUAL(info.granted_total, 1);
    CHECK_EQUAL(info.grace_ms, 0);
    CHECK(info.epoch != 0);
    fq_permit_free(permit);
    free_world(&world);

    world = open_world("limit=1");
    fq_permit_free(take(world.limiter));
    info = info_of(world.limiter);
    CHECK_EQUAL(info.max_queue, 10000);
    CHECK_EQUAL(info.max_hold_ms, FQ_FOREVER);
    free_world(&world);

    world = open_world("limit=1 max_queue=unbounded");
    fq_permit_free(take(world.limiter));
    CHECK_EQUAL(info_of(world.limiter).max_queue, FQ_FOREVER);
    free_world(&world);
}

static void a_reachable_server_is_fit(void) {
    fq_client *client = open_client();
    CHECK_OK(fq_client_check(client, &err));
    fq_client_free(client);
}

static void the_table_of_options_can_be_used_as_it_is(void) {
    size_t count = 0;
    const fq_option *options = fq_options(&count);
    CHECK(count > 10);
    for (size_t at = 0; at < count; at++) {
        const fq_option *option = &options[at];
        CHECK(option->scope >= FQ_SCOPE_CLIENT && option->scope <= FQ_SCOPE_CHANGE);
        CHECK(option->key[0] != '\0' && option->default_value != NULL && option->doc[0] != '\0');
        if (option->scope == FQ_SCOPE_CHANGE) {
            continue; /* as declared */
        }
        fq_config *config = new_config("");
        CHECK_OK(fq_config_set(config, option->key, strlen(option->key), option->default_value,
                               strlen(option->default_value), &err));
        fq_config_free(config);
    }
}

static void options_of_the_wrong_kind_are_refused_where_they_are_used(void) {
    fq_config *of_a_limiter = new_config("limit=1"), *of_a_client = new_config("io_timeout=1s");
    fq_client *none = (fq_client *)(uintptr_t)0xbad, *client = open_client();
    fq_limiter *nothing = (fq_limiter *)(uintptr_t)0xbad;
    CHECK_STATUS(FQ_INVALID, fq_client_open(url(), strlen(url()), of_a_limiter, &none, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(client, "x", 1, of_a_client, &nothing, &err));
    CHECK(none == NULL && nothing == NULL);
    fq_config_free(of_a_limiter);
    fq_config_free(of_a_client);
    fq_client_free(client);
}

static void versions_and_names_are_told(void) {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", FQ_VERSION_MAJOR, FQ_VERSION_MINOR, FQ_VERSION_PATCH);
    CHECK(strcmp(fq_version(), version) == 0);
    CHECK(strcmp(fq_status_name(FQ_OK), "ok") == 0);
    CHECK(strcmp(fq_status_name(FQ_QUEUE_FULL), "queue full") == 0);
    for (fq_status status = FQ_OK; status <= FQ_INTERNAL; status++) {
        CHECK(fq_status_name(status)[0] != '\0');
    }
    CHECK(strcmp(fq_status_name(-1), "unknown status") == 0);
    CHECK(strcmp(fq_status_name(INT32_MAX), "unknown status") == 0);
}

const struct test acquire_tests[] = {
    TEST(a_permit_is_had_and_given_back),
    TEST(freeing_a_permit_gives_it_back_in_the_background),
    TEST(a_second_release_is_stale),
    TEST(a_permit_tells_its_fence_order_and_cost),
    TEST(who_comes_second_waits_for_the_first),
    TEST(grants_follow_the_order_of_arrival),
    TEST(without_waiting_it_is_had_at_once_or_times_out),
    TEST(a_full_line_is_refused_and_worth_another_try),
    TEST(a_cost_above_the_limit_is_impossible),
    TEST(attaching_finds_what_others_have_declared),
    TEST(an_operator_changes_the_limit_while_it_runs),
    TEST(an_operator_pauses_and_resumes),
    TEST(status_tells_what_was_declared),
    TEST(a_reachable_server_is_fit),
    TEST(the_table_of_options_can_be_used_as_it_is),
    TEST(options_of_the_wrong_kind_are_refused_where_they_are_used),
    TEST(versions_and_names_are_told),
    TESTS_END,
};
