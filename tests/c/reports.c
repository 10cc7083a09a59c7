/* Events about positions and permits, for those who asked for them. */
#include "check.h"

static void each_new_position_is_an_event(void) {
    struct world world = open_world("limit=1 poll=20ms");
    fq_completions *queue = new_queue(), *others = new_queue();
    fq_permit *permit = take(world.limiter);
    fq_request request = waiting_for_ever();
    fq_ticket *first;
    uint64_t last = 3;
    start(world.limiter, others, 1, &first);
    start(world.limiter, others, 2, NULL);
    request.flags = FQ_REPORT_POSITION;
    CHECK_OK(fq_acquire_start(world.limiter, &request, NULL, queue, 3, &err));

    fq_event event = next_event(queue);
    CHECK_EQUAL(event.kind, FQ_EVENT_POSITION);
    CHECK_EQUAL(event.token, 3);
    CHECK_EQUAL(event.status, FQ_OK);
    CHECK(event.permit == NULL && event.error == NULL);
    CHECK_EQUAL(event.position, 3);

    CHECK_OK(fq_cancel(first, &err));
    event = next_event(queue);
    CHECK_EQUAL(event.kind, FQ_EVENT_POSITION);
    CHECK_EQUAL(event.position, 2);

    fq_completions_free(others);
    fq_permit_free(permit);
    do { /* on its way to the top it may be seen at 1 */
        event = next_event(queue);
        CHECK(event.kind == FQ_EVENT_DONE || event.position < last);
        last = event.position;
    } while (event.kind != FQ_EVENT_DONE);
    CHECK_EQUAL(event.status, FQ_OK);
    free_event(&event);
    no_event(queue);
    fq_ticket_free(first);
    fq_completions_free(queue);
    free_world(&world);
}

static void who_did_not_ask_gets_completions_alone(void) {
    struct world world = open_world("limit=1 poll=20ms max_hold=100ms");
    fq_completions *queue = new_queue();
    start(world.limiter, queue, 1, NULL);
    fq_event first = next_event(queue);
    start(world.limiter, queue, 2, NULL);
    fq_event second = next_event(queue); /* once the first is lost */
    CHECK_EQUAL(second.kind, FQ_EVENT_DONE);
    CHECK_EQUAL(second.token, 2);
    CHECK_EQUAL(fq_permit_state(first.permit), FQ_PERMIT_STATE_LOST);
    no_event(queue);
    free_event(&first);
    free_event(&second);
    fq_completions_free(queue);
    free_world(&world);
}

static void a_lost_permit_is_an_event_that_comes_once(void) {
    struct world world = open_world("limit=1 max_hold=100ms");
    fq_completions *queue = new_queue();
    fq_request request = FQ_REQUEST_INIT;
    request.flags = FQ_REPORT_PERMIT;
    CHECK_OK(fq_acquire_start(world.limiter, &request, NULL, queue, 8, &err));
    fq_event granted = next_event(queue);
    CHECK_EQUAL(granted.kind, FQ_EVENT_DONE);
    fq_event lost = next_of_kind(queue, FQ_EVENT_PERMIT_LOST);
    CHECK_EQUAL(lost.token, 8);
    CHECK_EQUAL(lost.status, FQ_PERMIT_LOST);
    CHECK_EQUAL(fq_error_status(lost.error), FQ_PERMIT_LOST);
    CHECK(lost.permit == NULL);
    CHECK_EQUAL(fq_permit_is_valid(granted.permit), 0);
    CHECK_EQUAL(fq_permit_state(granted.permit), FQ_PERMIT_STATE_LOST);
    CHECK_STATUS(FQ_PERMIT_LOST, fq_release(granted.permit, &err));
    no_event(queue);
    /* Acquiring works again (S49). */
    fq_permit_free(take(world.limiter));
    free_event(&lost);
    free_event(&granted);
    no_event(queue);
    fq_completions_free(queue);
    free_world(&world);
}

static void a_closed_client_s_permit_is_lost(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_request request = FQ_REQUEST_INIT;
    request.flags = FQ_REPORT_PERMIT | FQ_REPORT_POSITION;
    CHECK_OK(fq_acquire_start(world.limiter, &request, NULL, queue, 8, &err));
    fq_event granted = next_of_kind(queue, FQ_EVENT_DONE);
    CHECK_OK(fq_client_close(world.client, 0, &err));
    fq_event lost = next_of_kind(queue, FQ_EVENT_PERMIT_LOST);
    CHECK_EQUAL(lost.token, 8);
    free_event(&lost);
    free_event(&granted);
    fq_completions_free(queue);
    free_world(&world);
}

static void a_permit_given_back_is_none_that_is_lost(void) {
    struct world world = open_world("limit=1 max_hold=50ms");
    fq_completions *queue = new_queue(), *after = new_queue();
    fq_request request = FQ_REQUEST_INIT;
    request.flags = FQ_REPORT_PERMIT;
    CHECK_OK(fq_acquire_start(world.limiter, &request, NULL, queue, 1, &err));
    fq_event granted = next_event(queue);
    fq_status status = fq_release(granted.permit, NULL);
    if (status == FQ_OK) { /* and not 50 ms asleep before it */
        /* By when another permit of the same limiter is lost, nothing was told of this one. */
        CHECK_OK(fq_acquire_start(world.limiter, &request, NULL, after, 2, &err));
        fq_event held = next_event(after), lost = next_of_kind(after, FQ_EVENT_PERMIT_LOST);
        CHECK_EQUAL(lost.token, 2);
        free_event(&held);
        free_event(&lost);
        no_event(queue);
    }
    free_event(&granted);
    fq_completions_free(queue);
    fq_completions_free(after);
    free_world(&world);
}

static void a_ticket_tells_where_it_stands(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(world.limiter);
    fq_ticket *tickets[3];
    fq_position position = {99, 99};
    for (uint64_t at = 0; at < 3; at++) {
        start(world.limiter, queue, at, &tickets[at]);
    }
    EVENTUALLY(info_of(world.limiter).waiting == 3);
    for (uint64_t at = 0; at < 3; at++) {
        CHECK_OK(fq_ticket_position(tickets[at], &position, &err));
        CHECK_EQUAL(position.position, at + 1);
        CHECK_OK(fq_ticket_last_position(tickets[at], &position, &err));
        CHECK_EQUAL(position.position, at + 1);
    }
    CHECK_OK(fq_cancel(tickets[2], &err));
    CHECK_OK(fq_ticket_position(tickets[2], &position, &err));
    CHECK_EQUAL(position.position, 0);
    CHECK_EQUAL(position.estimate_ms, FQ_FOREVER);
    CHECK_OK(fq_ticket_last_position(tickets[2], &position, &err));
    CHECK_EQUAL(position.position, 0);
    for (uint64_t at = 0; at < 3; at++) {
        fq_ticket_free(tickets[at]);
    }
    fq_completions_free(queue);
    fq_permit_free(permit);
    free_world(&world);
}

const struct test reports_tests[] = {
    TEST(each_new_position_is_an_event),
    TEST(who_did_not_ask_gets_completions_alone),
    TEST(a_lost_permit_is_an_event_that_comes_once),
    TEST(a_closed_client_s_permit_is_lost),
    TEST(a_permit_given_back_is_none_that_is_lost),
    TEST(a_ticket_tells_where_it_stands),
    TESTS_END,
};
