/* What a call costs from C: nanoseconds, the median of so many batches: `bench [BATCHES]`. benches/ffi.rs compares with Rust. */
#include "check.h"

#include <time.h>

enum { MAX_BATCHES = 1001, PER_BATCH = 1000 };

static int batches = 301;

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *left, const void *right) {
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

static double median_of(void (*step)(const fq_limiter *), const fq_limiter *limiter) {
    static double took[MAX_BATCHES];
    for (int batch = 0; batch < batches; batch++) {
        double began = now_ns();
        for (int at = 0; at < PER_BATCH; at++) {
            step(limiter);
        }
        took[batch] = (now_ns() - began) / PER_BATCH;
    }
    qsort(took, (size_t)batches, sizeof took[0], compare);
    return took[batches / 2];
}

static void acquire_and_free(const fq_limiter *limiter) {
    fq_permit *permit = NULL;
    CHECK(fq_acquire(limiter, NULL, NULL, &permit, NULL) == FQ_OK);
    fq_permit_free(permit);
}

static void acquire_and_release(const fq_limiter *limiter) {
    fq_permit *permit = NULL;
    CHECK(fq_acquire(limiter, NULL, NULL, &permit, NULL) == FQ_OK);
    CHECK(fq_release(permit, NULL) == FQ_OK);
    fq_permit_free(permit);
}

static fq_completions *queue;

static void start_and_poll(const fq_limiter *limiter) {
    fq_event event;
    size_t count;
    CHECK(fq_acquire_start(limiter, NULL, NULL, queue, 1, NULL) == FQ_OK);
    CHECK(fq_completions_poll(queue, &event, 1, FQ_FOREVER, &count, NULL) == FQ_OK);
    fq_permit_free(event.permit);
}

static void look_at_a_handle(const fq_limiter *limiter) {
    (void)limiter;
    CHECK(fq_error_status(NULL) == FQ_OK);
    CHECK(fq_permit_is_valid((const fq_permit *)limiter) == 0);
}

static void refuse_a_handle(const fq_limiter *limiter) {
    CHECK(fq_release((const fq_permit *)limiter, NULL) == FQ_INVALID);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*step)(const fq_limiter *);
    } steps[] = {
        {"fq_acquire + fq_permit_free", acquire_and_free},
        {"fq_acquire + fq_release + fq_permit_free", acquire_and_release},
        {"fq_acquire_start + fq_completions_poll + fq_permit_free", start_and_poll},
        {"a look at a handle of another kind", look_at_a_handle},
        {"a refusal without an error object", refuse_a_handle},
    };
    batches = argc > 1 ? atoi(argv[1]) : batches;
    CHECK(batches > 0 && batches <= MAX_BATCHES);
    struct world world = open_world("limit=1");
    queue = new_queue();
    for (size_t at = 0; at < sizeof steps / sizeof steps[0]; at++) {
        median_of(steps[at].step, world.limiter); /* warms up */
        printf("%8.0f ns  %s\n", median_of(steps[at].step, world.limiter), steps[at].name);
    }
    fq_completions_free(queue);
    free_world(&world);
    return 0;
}
