/* A client that nobody has used yet, and everybody at once (S48). */
#include "check.h"

enum { THREADS = 100 };

struct crowd {
    pthread_barrier_t line;
    fq_client *client;
    const char *name;
    uint64_t fences[THREADS];
    int next;
};

static void *open_and_acquire(void *argument) {
    struct crowd *crowd = argument;
    int me = __atomic_fetch_add(&crowd->next, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&crowd->line);
    fq_limiter *limiter = open_limiter(crowd->client, crowd->name, "limit=10");
    fq_permit *permit = take(limiter);
    CHECK_EQUAL(fq_permit_is_valid(permit), 1);
    crowd->fences[me] = fq_permit_fence(permit);
    fq_permit_free(permit);
    fq_limiter_free(limiter);
    return NULL;
}

static int compare(const void *left, const void *right) {
    uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
    return (one > other) - (one < other);
}

static void a_hundred_threads_acquire_at_once(void) {
    for (uint64_t round = rounds(on_memory() ? 20 : 5); round > 0; round--) {
        struct crowd crowd = {.client = open_client(), .name = new_name()};
        pthread_t threads[THREADS];
        CHECK(pthread_barrier_init(&crowd.line, NULL, THREADS) == 0);
        for (int at = 0; at < THREADS; at++) {
            threads[at] = run_thread(open_and_acquire, &crowd);
        }
        for (int at = 0; at < THREADS; at++) {
            join(threads[at]);
        }
        CHECK(pthread_barrier_destroy(&crowd.line) == 0);
        qsort(crowd.fences, THREADS, sizeof crowd.fences[0], compare);
        CHECK(crowd.fences[0] > 0);
        for (int at = 1; at < THREADS; at++) {
            CHECK(crowd.fences[at] > crowd.fences[at - 1]);
        }
        fq_limiter *limiter = open_limiter(crowd.client, crowd.name, "limit=10");
        all_is_given_back(limiter);
        fq_limiter_free(limiter);
        fq_client_free(crowd.client);
    }
}

const struct test cold_tests[] = {
    TEST(a_hundred_threads_acquire_at_once),
    TESTS_END,
};
