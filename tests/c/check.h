/*
 * The words that the tests are written in. A test is a function whose name says what is promised; the first thing that
 * does not hold ends the program. No test waits for a time to pass: they wait for conditions, with generous bounds.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* eventfd, epoll */
#endif

#include <fairq.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

struct test {
    const char *name;
    void (*run)(void);
};

#define TEST(function) { #function, function }
#define TESTS_END { NULL, NULL }

/* The test that is running, for those who say what went wrong. */
extern const char *running;

/* How long a condition may take that will come true. */
#define SOON_MS UINT64_C(60000)

#define CHECK(condition) ((condition) ? (void)0 : fail_at(__FILE__, __LINE__, #condition))

#define CHECK_EQUAL(got, want) check_equal(__FILE__, __LINE__, #got, (uint64_t)(got), (uint64_t)(want))

/* A call, which has `&err` for its last argument, comes to that status, and leaves an error that says the same, or none. */
#define CHECK_STATUS(want, call)                                        \
    do {                                                                \
        fq_error *err = (fq_error *)(uintptr_t)0xbad;                   \
        fq_status came_to = (call);                                     \
        check_status(__FILE__, __LINE__, #call, came_to, (want), err);  \
    } while (0)

#define CHECK_OK(call) CHECK_STATUS(FQ_OK, call)

#define EVENTUALLY(condition)                                           \
    do {                                                                \
        uint64_t until = now_ms() + SOON_MS;                            \
        while (!(condition)) {                                          \
            if (now_ms() > until) fail_at(__FILE__, __LINE__, "not in all that time: " #condition); \
            nap();                                                      \
        }                                                               \
    } while (0)

void fail_at(const char *file, int line, const char *what) __attribute__((noreturn));
void check_equal(const char *file, int line, const char *what, uint64_t got, uint64_t want);
void check_status(const char *file, int line, const char *call, fq_status got, fq_status want, fq_error *err);

/* --- Objects to test with; each is there, or the test has failed -------------------------------------------------- */

/* `memory:`, or FAIRQ_URL. */
const char *url(void);
int on_memory(void);

/* A name that nobody else uses. Valid until the sixteenth next call. */
const char *new_name(void);

/* Options as in "limit=1 lease=5s". */
fq_config *new_config(const char *options);
fq_client *open_client(void);
fq_limiter *open_limiter(const fq_client *client, const char *name, const char *options);
fq_completions *new_queue(void);
fq_ticket *new_ticket(const fq_limiter *limiter);

/* A client and a limiter of a name of its own. */
struct world {
    fq_client *client;
    fq_limiter *limiter;
};
struct world open_world(const char *options);
void free_world(struct world *world);

/* A request that waits for as long as that. */
fq_request waiting(uint64_t max_wait_ms);
fq_request waiting_for_ever(void);

/* A permit, which is to be had without, or with little waiting. */
fq_permit *take(const fq_limiter *limiter);

/* Starts a request that waits for ever; its ticket if wanted. */
void start(const fq_limiter *limiter, const fq_completions *queue, uint64_t token, fq_ticket **ticket);

/* The next event, which has to come. */
fq_event next_event(const fq_completions *queue);
fq_event next_of_kind(const fq_completions *queue, int32_t kind);
/* There is none. */
void no_event(const fq_completions *queue);
/* What came with an event. */
void free_event(fq_event *event);

fq_limiter_info info_of(const fq_limiter *limiter);
/* Everything was given back and nobody waits. */
void all_is_given_back(const fq_limiter *limiter);

/* --- Threads, time, chance ----------------------------------------------------------------------------------------- */

pthread_t run_thread(void *(*body)(void *), void *argument);
void join(pthread_t thread);

uint64_t now_ms(void);
/* Lets others work; tests wait for conditions with it. */
void nap(void);

/* Of so many rounds, what FAIRQ_TEST_SCALE (in percent) leaves; at least one. */
uint64_t rounds(uint64_t full);
int is_scaled_down(void);

struct chance {
    uint64_t state;
};
uint64_t below(struct chance *chance, uint64_t bound);
/* Does nothing for a moment. */
void dawdle(struct chance *chance, uint64_t longest);
/*
 * How long to dawdle before a cancel, so that now it wins and now the grant, on machines of any speed: twice as long after
 * each hundred cancels in a row that came early enough, until one does not.
 */
struct hesitation {
    uint64_t longest, in_a_row;
};
void note_cancel(struct hesitation *hesitation, fq_status status);

#endif
