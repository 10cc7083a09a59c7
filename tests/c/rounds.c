/* A million requests, started and cancelled, and what they leave in memory: nothing (S47). */
#include "check.h"

#include <dirent.h>
#include <semaphore.h>

/* No more than that are under way at a time. */
#define UNDER_WAY 256

#ifdef UNDER_ASAN
#define MEMORY_IS_WATCHED 0 /* what was freed is kept for a while */
#else
#define MEMORY_IS_WATCHED 1
#endif

static uint64_t resident_kb(void) {
    unsigned long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK(fscanf(file, "%lu %lu", &total, &resident) == 2);
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

struct mill {
    const fq_limiter *limiter;
    fq_completions *queue;
    sem_t room;
    struct hesitation hesitation; /* before a cancel, */
    int hesitates;                /* if it does */
    uint64_t started, cancels_won, cancels_late;
    uint64_t granted, cancelled;
};

/* Another thread takes what comes of the requests, and frees it. */
static void *take_results(void *argument) {
    struct mill *mill = argument;
    fq_event events[64];
    size_t count = 0;
    for (;;) {
        CHECK_OK(fq_completions_poll(mill->queue, events, 64, FQ_FOREVER, &count, &err));
        for (size_t at = 0; at < count; at++) {
            CHECK_EQUAL(events[at].kind, FQ_EVENT_DONE);
            if (events[at].token == UINT64_MAX) {
                return NULL;
            }
            CHECK(events[at].status == FQ_OK || events[at].status == FQ_CANCELLED);
            CHECK((events[at].status == FQ_OK) == (events[at].permit != NULL));
            events[at].status == FQ_OK ? mill->granted++ : mill->cancelled++;
            free_event(&events[at]);
            sem_post(&mill->room);
        }
    }
}

static void grind(struct mill *mill, uint64_t total) {
    fq_request request = waiting_for_ever();
    struct chance chance = {3};
    for (uint64_t round = 0; round < total; round++) {
        fq_ticket *ticket = new_ticket(mill->limiter);
        sem_wait(&mill->room);
        CHECK_OK(fq_acquire_start(mill->limiter, &request, ticket, mill->queue, mill->started++, &err));
        if (mill->hesitates) {
            dawdle(&chance, mill->hesitation.longest);
        }
        fq_status status = fq_cancel(ticket, NULL);
        CHECK(status == FQ_OK || status == FQ_STALE);
        status == FQ_OK ? mill->cancels_won++ : mill->cancels_late++;
        note_cancel(&mill->hesitation, status);
        fq_ticket_free(ticket);
        if (!on_memory() && round % UNDER_WAY == 0) {
            info_of(mill->limiter); /* what is cancelled is told to the server in the background, and counts as well */
        }
    }
}

/* All results are in when so many may be under way as before. */
static void wait_for_all(struct mill *mill) {
    for (int at = 0; at < UNDER_WAY; at++) {
        sem_wait(&mill->room);
    }
    for (int at = 0; at < UNDER_WAY; at++) {
        sem_post(&mill->room);
    }
}

static void stop(struct mill *mill, pthread_t thread) {
    fq_ticket *ticket = new_ticket(mill->limiter);
    CHECK_OK(fq_cancel(ticket, &err));
    CHECK_OK(fq_acquire_start(mill->limiter, NULL, ticket, mill->queue, UINT64_MAX, &err));
    fq_ticket_free(ticket);
    join(thread);
    fq_completions_free(mill->queue);
    sem_destroy(&mill->room);
}

/* Half a hundred bytes a round are a leak, some megabytes in all are the allocator's and what was under way. */
static void leaves_nothing(uint64_t before, uint64_t after, uint64_t total) {
    if (MEMORY_IS_WATCHED && !is_scaled_down()) {
        CHECK(after < before + 8192 + total * 32 / 1024);
    }
}

static struct mill run_mill(const fq_limiter *limiter, uint64_t total, int hesitates) {
    struct mill mill = {.limiter = limiter, .queue = new_queue(), .hesitation = {600000, 0}, .hesitates = hesitates};
    CHECK(sem_init(&mill.room, 0, UNDER_WAY) == 0);
    pthread_t thread = run_thread(take_results, &mill);
    grind(&mill, total / 10);
    wait_for_all(&mill);
    uint64_t before = resident_kb();
    grind(&mill, total);
    wait_for_all(&mill);
    uint64_t after = resident_kb();
    stop(&mill, thread);
    CHECK_EQUAL(mill.granted + mill.cancelled, mill.started);
    CHECK_EQUAL(mill.cancelled, mill.cancels_won);
    CHECK_EQUAL(mill.granted, mill.cancels_late);
    printf("    %llu starts, %llu cancelled, %llu granted, %llu KB before, %llu KB after\n",
           (unsigned long long)mill.started, (unsigned long long)mill.cancelled, (unsigned long long)mill.granted,
           (unsigned long long)before, (unsigned long long)after);
    leaves_nothing(before, after, total);
    return mill;
}

static void a_million_cancelled_requests_leave_nothing(void) {
    struct world world = open_world("limit=1");
    fq_permit *permit = take(world.limiter);
    struct mill mill = run_mill(world.limiter, rounds(on_memory() ? 1000000 : 30000), 0);
    CHECK_EQUAL(mill.granted, 0);
    EVENTUALLY(info_of(world.limiter).waiting == 0);
    fq_permit_free(permit);
    all_is_given_back(world.limiter);
    free_world(&world);
}

static void grants_that_come_too_late_are_given_back(void) {
    struct world world = open_world("limit=3");
    /* In memory some are granted at once. */
    struct mill mill = run_mill(world.limiter, rounds(on_memory() ? 300000 : 5000), !on_memory());
    if (!is_scaled_down()) {
        CHECK(mill.granted > 0 && mill.cancelled > 0);
    }
    all_is_given_back(world.limiter);
    free_world(&world);
}

/* Every kind of object, again and again. */
static void clients_and_limiters_leave_nothing(void) {
    uint64_t total = rounds(on_memory() ? 3000 : 100), before = 0;
    for (uint64_t round = 0; round < total + total / 10; round++) {
        fq_client *client = open_client();
        fq_limiter *limiter = open_limiter(client, "c-again", "limit=1");
        fq_permit *permit = take(limiter);
        CHECK_OK(fq_release(permit, &err));
        fq_permit_free(permit);
        fq_limiter_free(limiter);
        CHECK_OK(fq_client_close(client, 0, &err));
        fq_client_free(client);
        if (round == total / 10) {
            before = resident_kb();
        }
    }
    leaves_nothing(before, resident_kb(), total);
}

static unsigned threads_alive(void) {
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

/* Nobody has closed anything: the last object of a client that is freed does it. */
static void when_all_is_freed_no_thread_is_left(void) {
    enum { CLIENTS = 20 };
    struct world worlds[CLIENTS];
    fq_permit *permits[CLIENTS];
    fq_completions *queue = new_queue();
    unsigned before = threads_alive();
    for (int at = 0; at < CLIENTS; at++) {
        worlds[at] = open_world("limit=1");
        permits[at] = take(worlds[at].limiter);
        start(worlds[at].limiter, queue, 1, NULL);
    }
    CHECK(threads_alive() > before);
    fq_completions_free(queue);
    for (int at = 0; at < CLIENTS; at++) {
        free_world(&worlds[at]);
        fq_permit_free(permits[at]);
    }
    EVENTUALLY(threads_alive() <= before);
}

const struct test rounds_tests[] = {
    TEST(when_all_is_freed_no_thread_is_left),
    TEST(a_million_cancelled_requests_leave_nothing),
    TEST(grants_that_come_too_late_are_given_back),
    TEST(clients_and_limiters_leave_nothing),
    TESTS_END,
};
