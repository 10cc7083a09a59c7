/* Cancelling: from any thread, at any moment, also before anything has begun. */
#include "check.h"

static void a_request_cancelled_before_its_start_ends_as_cancelled(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_ticket *blocking = new_ticket(world.limiter), *started = new_ticket(world.limiter);
    fq_permit *none = (fq_permit *)(uintptr_t)0xbad;

    CHECK_OK(fq_cancel(blocking, &err));
    CHECK_STATUS(FQ_CANCELLED, fq_acquire(world.limiter, NULL, blocking, &none, &err));
    CHECK(none == NULL);

    CHECK_OK(fq_cancel(started, &err));
    CHECK_OK(fq_acquire_start(world.limiter, NULL, started, queue, 42, &err));
    fq_event event = next_event(queue);
    CHECK_EQUAL(event.token, 42);
    CHECK_EQUAL(event.kind, FQ_EVENT_DONE);
    CHECK_EQUAL(event.status, FQ_CANCELLED);
    CHECK_EQUAL(fq_error_status(event.error), FQ_CANCELLED);
    CHECK(event.permit == NULL);
    free_event(&event);
    no_event(queue);

    fq_ticket_free(blocking);
    fq_ticket_free(started);
    fq_completions_free(queue);
    free_world(&world);
}

static void cancelling_again_says_that_it_is_cancelled(void) {
    struct world world = open_world("limit=1");
    fq_ticket *ticket = new_ticket(world.limiter);
    CHECK_OK(fq_cancel(ticket, &err));
    CHECK_OK(fq_cancel(ticket, &err));
    fq_ticket_free(ticket);
    free_world(&world);
}

static void cancelling_what_was_granted_is_stale_and_takes_nothing_away(void) {
    struct world world = open_world("limit=1");
    fq_ticket *ticket = new_ticket(world.limiter);
    fq_permit *permit = NULL;
    CHECK_OK(fq_acquire(world.limiter, NULL, ticket, &permit, &err));
    CHECK_STATUS(FQ_STALE, fq_cancel(ticket, &err));
    CHECK_EQUAL(fq_permit_is_valid(permit), 1);
    fq_permit_free(permit);
    CHECK_STATUS(FQ_STALE, fq_cancel(ticket, &err));
    fq_ticket_free(ticket);
    free_world(&world);
}

static void a_ticket_serves_for_one_request_of_its_limiter(void) {
    struct world world = open_world("limit=2");
    fq_limiter *other = open_limiter(world.client, new_name(), "limit=1");
    fq_completions *queue = new_queue();
    fq_ticket *ticket = new_ticket(world.limiter);
    fq_permit *permit = NULL, *none = NULL;
    CHECK_STATUS(FQ_INVALID, fq_acquire(other, NULL, ticket, &none, &err));
    CHECK_OK(fq_acquire(world.limiter, NULL, ticket, &permit, &err));
    CHECK_STATUS(FQ_INVALID, fq_acquire(world.limiter, NULL, ticket, &none, &err));
    CHECK_STATUS(FQ_INVALID, fq_acquire_start(world.limiter, NULL, ticket, queue, 1, &err));
    no_event(queue);
    fq_permit_free(permit);
    fq_ticket_free(ticket);
    fq_completions_free(queue);
    fq_limiter_free(other);
    free_world(&world);
}

struct wait {
    const fq_limiter *limiter;
    const fq_ticket *ticket;
    fq_status status;
    fq_permit *permit;
};

static void *wait_for_ever(void *argument) {
    struct wait *wait = argument;
    fq_request request = waiting_for_ever();
    wait->status = fq_acquire(wait->limiter, &request, wait->ticket, &wait->permit, NULL);
    return NULL;
}

static void another_thread_ends_a_wait(void) {
    struct world world = open_world("limit=1");
    fq_permit *permit = take(world.limiter);
    fq_ticket *ticket = new_ticket(world.limiter);
    struct wait wait = {world.limiter, ticket, FQ_OK, NULL};
    pthread_t thread = run_thread(wait_for_ever, &wait);
    EVENTUALLY(info_of(world.limiter).waiting == 1);
    CHECK_OK(fq_cancel(ticket, &err));
    join(thread);
    CHECK_EQUAL(wait.status, FQ_CANCELLED);
    EVENTUALLY(info_of(world.limiter).waiting == 0);
    fq_ticket_free(ticket);
    fq_permit_free(permit);
    free_world(&world);
}

/* What two threads make of one request after another. */
struct race {
    pthread_barrier_t line;
    fq_ticket *ticket;
    uint64_t rounds;
    uint64_t cancelled, stale;
};

static void *cancel_at_random(void *argument) {
    struct race *race = argument;
    struct chance chance = {77};
    struct hesitation hesitation = {on_memory() ? 3000 : 600000, 0};
    for (uint64_t round = 0; round < race->rounds; round++) {
        pthread_barrier_wait(&race->line);
        dawdle(&chance, hesitation.longest);
        fq_status status = fq_cancel(race->ticket, NULL);
        note_cancel(&hesitation, status);
        CHECK(status == FQ_OK || status == FQ_STALE);
        status == FQ_OK ? race->cancelled++ : race->stale++;
        pthread_barrier_wait(&race->line);
    }
    return NULL;
}

/* Holds the only slot and gives it back at random moments, so that requests are granted, too. */
static void *hold_now_and_then(void *argument) {
    struct race *race = argument;
    struct chance chance = {99};
    fq_limiter *limiter = (fq_limiter *)race->ticket;
    fq_request request = waiting_for_ever();
    while (__atomic_load_n(&race->rounds, __ATOMIC_ACQUIRE) != 0) {
        fq_permit *permit = NULL;
        CHECK_OK(fq_acquire(limiter, &request, NULL, &permit, &err));
        dawdle(&chance, 3000);
        fq_permit_free(permit);
        dawdle(&chance, 3000);
    }
    return NULL;
}

static void both_sides_of_a_race_agree_on_how_it_ended(void) {
    struct world world = open_world("limit=1");
    struct race race = {.ticket = NULL, .rounds = rounds(on_memory() ? 20000 : 1000)};
    struct race holder = {.ticket = (fq_ticket *)world.limiter, .rounds = 1};
    uint64_t granted = 0, cancelled = 0;
    fq_request request = waiting_for_ever();
    CHECK(pthread_barrier_init(&race.line, NULL, 2) == 0);
    pthread_t canceller = run_thread(cancel_at_random, &race), other = run_thread(hold_now_and_then, &holder);
    for (uint64_t round = 0; round < race.rounds; round++) {
        fq_permit *permit = NULL;
        race.ticket = new_ticket(world.limiter);
        pthread_barrier_wait(&race.line);
        fq_status status = fq_acquire(world.limiter, &request, race.ticket, &permit, NULL);
        pthread_barrier_wait(&race.line);
        CHECK(status == FQ_OK || status == FQ_CANCELLED);
        CHECK((status == FQ_OK) == (permit != NULL));
        status == FQ_OK ? granted++ : cancelled++;
        CHECK_EQUAL(race.cancelled, cancelled);
        CHECK_EQUAL(race.stale, granted);
        fq_permit_free(permit);
        fq_ticket_free(race.ticket);
    }
    __atomic_store_n(&holder.rounds, 0, __ATOMIC_RELEASE);
    join(canceller);
    join(other);
    CHECK(pthread_barrier_destroy(&race.line) == 0);
    if (!is_scaled_down()) {
        CHECK(granted > 0 && cancelled > 0);
    }
    all_is_given_back(world.limiter);
    free_world(&world);
}

const struct test cancel_tests[] = {
    TEST(a_request_cancelled_before_its_start_ends_as_cancelled),
    TEST(cancelling_again_says_that_it_is_cancelled),
    TEST(cancelling_what_was_granted_is_stale_and_takes_nothing_away),
    TEST(a_ticket_serves_for_one_request_of_its_limiter),
    TEST(another_thread_ends_a_wait),
    TEST(both_sides_of_a_race_agree_on_how_it_ended),
    TESTS_END,
};
