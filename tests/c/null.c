/* NULL in every place of every function (run.sh sees to it that each function is named here). */
#include "check.h"

#define BAD(type) ((type *)(uintptr_t)0xbad)

static void for_a_place_for_an_answer(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_ticket *ticket = new_ticket(world.limiter);
    fq_event event;
    size_t count = 7;
    CHECK_STATUS(FQ_INVALID, fq_config_new(NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_client_open("memory:", 7, NULL, NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(world.client, "x", 1, NULL, NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_acquire(world.limiter, NULL, NULL, NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_ticket_new(world.limiter, NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_ticket_position(ticket, NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_ticket_last_position(ticket, NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_completions_new(NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_completions_poll(queue, &event, 1, 0, NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_completions_poll(queue, NULL, 1, 0, &count, &err));
    CHECK_EQUAL(count, 0);
    CHECK_STATUS(FQ_INVALID, fq_completions_poll(queue, &event, 0, 0, &count, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_status(world.limiter, NULL, &err));
    CHECK(fq_options(NULL) != NULL);
    fq_ticket_free(ticket);
    fq_completions_free(queue);
    free_world(&world);
}

static void for_a_handle(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_permit *permit = BAD(fq_permit);
    fq_limiter *limiter = BAD(fq_limiter);
    fq_ticket *ticket = BAD(fq_ticket);
    fq_limiter_info info = FQ_LIMITER_INFO_INIT;
    fq_position position = {9, 9};
    fq_event event;
    size_t count = 9;
    CHECK_STATUS(FQ_INVALID, fq_config_set(NULL, "limit", 5, "1", 1, &err));
    CHECK_STATUS(FQ_INVALID, fq_client_check(NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_client_close(NULL, 0, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(NULL, "x", 1, NULL, &limiter, &err));
    CHECK_STATUS(FQ_INVALID, fq_acquire(NULL, NULL, NULL, &permit, &err));
    CHECK_STATUS(FQ_INVALID, fq_acquire_start(NULL, NULL, NULL, queue, 1, &err));
    CHECK_STATUS(FQ_INVALID, fq_acquire_start(world.limiter, NULL, NULL, NULL, 1, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_status(NULL, &info, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_set_limit(NULL, 1, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_configure(NULL, NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_ticket_new(NULL, &ticket, &err));
    CHECK_STATUS(FQ_INVALID, fq_cancel(NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_ticket_position(NULL, &position, &err));
    CHECK_EQUAL(position.position, 0);
    CHECK_EQUAL(position.estimate_ms, FQ_FOREVER);
    CHECK_STATUS(FQ_INVALID, fq_ticket_last_position(NULL, &position, &err));
    CHECK_STATUS(FQ_INVALID, fq_release(NULL, &err));
    CHECK_STATUS(FQ_INVALID, fq_completions_set_fd(NULL, -1, &err));
    CHECK_STATUS(FQ_INVALID, fq_completions_poll(NULL, &event, 1, 0, &count, &err));
    CHECK(permit == NULL && limiter == NULL && ticket == NULL && count == 0);
    no_event(queue);
    fq_completions_free(queue);
    free_world(&world);
}

static void for_a_handle_that_is_only_read(void) {
    CHECK_EQUAL(fq_permit_fence(NULL), 0);
    CHECK_EQUAL(fq_permit_order(NULL), 0);
    CHECK_EQUAL(fq_permit_cost(NULL), 0);
    CHECK_EQUAL(fq_permit_is_valid(NULL), 0);
    CHECK_EQUAL(fq_permit_state(NULL), FQ_PERMIT_STATE_NONE);
    CHECK_EQUAL(fq_error_status(NULL), FQ_OK);
    CHECK(fq_error_message(NULL) != NULL && fq_error_message(NULL)[0] == '\0');
    CHECK_EQUAL(fq_error_retryable(NULL), 0);
    CHECK_EQUAL(fq_error_retry_after_ms(NULL), FQ_FOREVER);
}

static void freeing_it_does_nothing(void) {
    fq_error_free(NULL);
    fq_config_free(NULL);
    fq_client_free(NULL);
    fq_limiter_free(NULL);
    fq_ticket_free(NULL);
    fq_permit_free(NULL);
    fq_completions_free(NULL);
}

static void for_text_with_a_length(void) {
    struct world world = open_world("limit=1");
    fq_config *config = new_config("");
    fq_client *client = BAD(fq_client);
    fq_limiter *limiter = BAD(fq_limiter);
    CHECK_STATUS(FQ_INVALID, fq_config_set(config, NULL, 5, "1", 1, &err));
    CHECK_STATUS(FQ_INVALID, fq_config_set(config, "limit", 5, NULL, 1, &err));
    CHECK_STATUS(FQ_INVALID, fq_config_set(config, NULL, 0, NULL, 0, &err)); /* there is no such option */
    CHECK_OK(fq_config_set(config, "description", 11, NULL, 0, &err));       /* empty, and allowed to be */
    CHECK_STATUS(FQ_INVALID, fq_client_open(NULL, 7, NULL, &client, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(world.client, NULL, 1, NULL, &limiter, &err));
    CHECK(client == NULL && limiter == NULL);
    fq_config_free(config);
    free_world(&world);
}

/* A request, a ticket, and options may be left out. */
static void where_it_is_allowed_it_means_the_usual(void) {
    fq_client *client = NULL;
    fq_permit *permit = NULL;
    CHECK_OK(fq_client_open(url(), strlen(url()), NULL, &client, &err));
    fq_limiter *limiter = open_limiter(client, new_name(), "limit=1");
    fq_completions *queue = new_queue();
    CHECK_OK(fq_acquire(limiter, NULL, NULL, &permit, &err));
    CHECK_EQUAL(fq_permit_cost(permit), 1);
    fq_permit_free(permit);
    CHECK_OK(fq_acquire_start(limiter, NULL, NULL, queue, 1, &err));
    fq_event event = next_event(queue);
    CHECK_EQUAL(fq_permit_cost(event.permit), 1);
    free_event(&event);
    CHECK_OK(fq_limiter_configure(limiter, NULL, &err));
    fq_completions_free(queue);
    fq_limiter_free(limiter);
    fq_client_free(client);
}

static void for_the_error_of_a_call_that_works(void) {
    struct world world = open_world("limit=1");
    fq_config *config = NULL;
    fq_client *client = NULL;
    fq_limiter *limiter = NULL;
    fq_ticket *ticket = NULL;
    fq_completions *queue = NULL;
    fq_permit *permit = NULL;
    fq_limiter_info info = FQ_LIMITER_INFO_INIT;
    fq_position position;
    fq_event event;
    size_t count;
    CHECK(fq_config_new(&config, NULL) == FQ_OK);
    CHECK(fq_client_open("memory:", 7, config, &client, NULL) == FQ_OK);
    CHECK(fq_client_check(client, NULL) == FQ_OK);
    CHECK(fq_config_set(config, "limit", 5, "1", 1, NULL) == FQ_OK);
    CHECK(fq_limiter_open(client, "null", 4, config, &limiter, NULL) == FQ_OK);
    CHECK(fq_ticket_new(limiter, &ticket, NULL) == FQ_OK);
    CHECK(fq_completions_new(&queue, NULL) == FQ_OK);
    CHECK(fq_completions_set_fd(queue, -1, NULL) == FQ_OK);
    CHECK(fq_acquire(limiter, NULL, NULL, &permit, NULL) == FQ_OK);
    CHECK(fq_acquire_start(limiter, NULL, ticket, queue, 1, NULL) == FQ_OK);
    CHECK(fq_ticket_position(ticket, &position, NULL) == FQ_OK);
    CHECK(fq_ticket_last_position(ticket, &position, NULL) == FQ_OK);
    CHECK(fq_limiter_status(limiter, &info, NULL) == FQ_OK);
    CHECK(fq_limiter_set_limit(limiter, 1, NULL) == FQ_OK);
    CHECK(fq_limiter_configure(limiter, config, NULL) == FQ_OK);
    CHECK(fq_cancel(ticket, NULL) == FQ_OK);
    CHECK(fq_completions_poll(queue, &event, 1, 0, &count, NULL) == FQ_OK && count == 1);
    CHECK(fq_release(permit, NULL) == FQ_OK);
    CHECK(fq_client_close(client, 0, NULL) == FQ_OK);
    free_event(&event);
    fq_permit_free(permit);
    fq_completions_free(queue);
    fq_ticket_free(ticket);
    fq_limiter_free(limiter);
    fq_client_free(client);
    fq_config_free(config);
    free_world(&world);
}

static void for_the_error_of_a_call_that_fails(void) {
    fq_limiter_info info = FQ_LIMITER_INFO_INIT;
    fq_position position;
    fq_event event;
    size_t count;
    CHECK(fq_config_new(NULL, NULL) == FQ_INVALID);
    CHECK(fq_config_set(NULL, NULL, 0, NULL, 0, NULL) == FQ_INVALID);
    CHECK(fq_client_open(NULL, 0, NULL, NULL, NULL) == FQ_INVALID);
    CHECK(fq_client_check(NULL, NULL) == FQ_INVALID);
    CHECK(fq_client_close(NULL, 0, NULL) == FQ_INVALID);
    CHECK(fq_limiter_open(NULL, NULL, 0, NULL, NULL, NULL) == FQ_INVALID);
    CHECK(fq_acquire(NULL, NULL, NULL, NULL, NULL) == FQ_INVALID);
    CHECK(fq_acquire_start(NULL, NULL, NULL, NULL, 0, NULL) == FQ_INVALID);
    CHECK(fq_limiter_status(NULL, NULL, NULL) == FQ_INVALID);
    CHECK(fq_limiter_status(NULL, &info, NULL) == FQ_INVALID);
    CHECK(fq_limiter_set_limit(NULL, 0, NULL) == FQ_INVALID);
    CHECK(fq_limiter_configure(NULL, NULL, NULL) == FQ_INVALID);
    CHECK(fq_ticket_new(NULL, NULL, NULL) == FQ_INVALID);
    CHECK(fq_cancel(NULL, NULL) == FQ_INVALID);
    CHECK(fq_ticket_position(NULL, &position, NULL) == FQ_INVALID);
    CHECK(fq_ticket_last_position(NULL, NULL, NULL) == FQ_INVALID);
    CHECK(fq_release(NULL, NULL) == FQ_INVALID);
    CHECK(fq_completions_new(NULL, NULL) == FQ_INVALID);
    CHECK(fq_completions_set_fd(NULL, 0, NULL) == FQ_INVALID);
    CHECK(fq_completions_poll(NULL, &event, 1, 0, &count, NULL) == FQ_INVALID);
    CHECK(fq_version()[0] != '\0' && fq_status_name(FQ_INVALID)[0] != '\0');
}

const struct test null_tests[] = {
    TEST(for_a_place_for_an_answer),
    TEST(for_a_handle),
    TEST(for_a_handle_that_is_only_read),
    TEST(freeing_it_does_nothing),
    TEST(for_text_with_a_length),
    TEST(where_it_is_allowed_it_means_the_usual),
    TEST(for_the_error_of_a_call_that_works),
    TEST(for_the_error_of_a_call_that_fails),
    TESTS_END,
};
