/* Forks: a child has none of its parent's objects, and may have its own. */
#include "handles.h"

#include <signal.h>
#include <sys/wait.h>

#ifdef UNDER_ASAN
/* In a child the memory of its parent's threads, which it does not have, looks like leaks. */
static int is_a_child;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return is_a_child;
}
#define NOTE_CHILD() (is_a_child = 1)
#else
#define NOTE_CHILD() ((void)0)
#endif

/* Runs it in a child, which has to end well. A CHECK that fails there ends the child with 1. */
static void in_a_child(void (*body)(void *), void *argument) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        NOTE_CHILD();
        alarm(100);
        body(argument);
        exit(0); /* with all that is to be done at the end of a process */
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void use_the_parent_s(void *argument) {
    struct handles *handles = argument;
    for (size_t at = 0; at < uses_count; at++) {
        check_use(&uses[at], handles->of[uses[at].kind], handles, FQ_FORKED);
    }
    free_handles(handles);
    for (size_t at = 0; at < uses_count; at++) {
        check_use(&uses[at], handles->of[uses[at].kind], handles, FQ_FORKED);
    }
}

static void a_child_is_told_so_of_every_handle_and_harms_none(void) {
    struct handles handles = make_handles();
    in_a_child(use_the_parent_s, &handles);
    CHECK_EQUAL(fq_permit_is_valid(handles.of[PERMIT]), 1);
    CHECK_EQUAL(info_of(handles.of[LIMITER]).used, 1);
    CHECK(fq_error_message(handles.of[ERROR])[0] != '\0');
    CHECK_OK(fq_cancel(handles.of[TICKET], &err));
    CHECK_OK(fq_client_check(handles.of[CLIENT], &err));
    no_event(handles.of[QUEUE]);
    CHECK_OK(fq_release(handles.of[PERMIT], &err));
    free_handles(&handles);
}

static void use_its_own(void *argument) {
    fq_client *client = NULL;
    fq_limiter *inherited = argument;
    fq_permit *none = NULL;
    CHECK_OK(fq_client_open("memory:", 7, NULL, &client, &err));
    fq_limiter *limiter = open_limiter(client, "of the child", "limit=1");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(limiter);
    start(limiter, queue, 3, NULL);
    EVENTUALLY(info_of(limiter).waiting == 1);
    CHECK_OK(fq_release(permit, &err));
    fq_event event = next_event(queue);
    CHECK_EQUAL(event.token, 3);
    CHECK_EQUAL(event.status, FQ_OK);
    CHECK_STATUS(FQ_FORKED, fq_acquire(inherited, NULL, NULL, &none, &err));
    free_event(&event);
    fq_permit_free(permit);
    fq_completions_free(queue);
    fq_limiter_free(limiter);
    CHECK_OK(fq_client_close(client, 0, &err));
    fq_client_free(client);
}

static void a_child_opens_a_client_of_its_own(void) {
    struct world world = open_world("limit=1");
    fq_permit *permit = take(world.limiter);
    in_a_child(use_its_own, world.limiter);
    CHECK_EQUAL(fq_permit_is_valid(permit), 1);
    fq_permit_free(permit);
    free_world(&world);
}

static void have_a_child(void *argument) {
    in_a_child(use_its_own, argument);
    use_its_own(argument);
}

static void so_does_a_child_of_a_child(void) {
    struct world world = open_world("limit=1");
    in_a_child(have_a_child, world.limiter);
    free_world(&world);
}

static void leave_at_once(void *argument) {
    (void)argument;
}

static void a_child_that_only_ends_gives_nothing_back(void) {
    struct world world = open_world("limit=1");
    fq_completions *queue = new_queue();
    fq_permit *permit = take(world.limiter);
    start(world.limiter, queue, 1, NULL);
    EVENTUALLY(info_of(world.limiter).waiting == 1);
    in_a_child(leave_at_once, NULL);
    CHECK_EQUAL(info_of(world.limiter).used, 1);
    CHECK_EQUAL(info_of(world.limiter).waiting, 1);
    CHECK_OK(fq_release(permit, &err));
    fq_event event = next_event(queue);
    CHECK_EQUAL(event.status, FQ_OK);
    free_event(&event);
    fq_permit_free(permit);
    fq_completions_free(queue);
    free_world(&world);
}

#ifndef UNDER_ASAN /* whose own locks do not survive a fork in full swing */
/* Threads of the parent that are in the middle of everything when it forks. */
struct busy {
    const fq_limiter *limiter;
    int over;
};

static void *be_busy(void *argument) {
    struct busy *busy = argument;
    fq_completions *queue = new_queue();
    while (!__atomic_load_n(&busy->over, __ATOMIC_ACQUIRE)) {
        fq_permit *permit = take(busy->limiter);
        fq_ticket *ticket;
        start(busy->limiter, queue, 1, &ticket);
        fq_cancel(ticket, NULL);
        fq_ticket_free(ticket);
        fq_permit_free(permit);
        fq_event event = next_event(queue);
        free_event(&event);
    }
    fq_completions_free(queue);
    return NULL;
}

static void a_fork_in_full_swing_leaves_the_child_free_to_work(void) {
    struct world world = open_world("limit=2");
    struct busy busy = {world.limiter, 0};
    pthread_t threads[4];
    for (int at = 0; at < 4; at++) {
        threads[at] = run_thread(be_busy, &busy);
    }
    for (uint64_t round = rounds(200); round > 0; round--) {
        in_a_child(use_its_own, world.limiter);
    }
    __atomic_store_n(&busy.over, 1, __ATOMIC_RELEASE);
    for (int at = 0; at < 4; at++) {
        join(threads[at]);
    }
    all_is_given_back(world.limiter);
    free_world(&world);
}
#endif

const struct test fork_tests[] = {
    TEST(a_child_is_told_so_of_every_handle_and_harms_none),
    TEST(a_child_opens_a_client_of_its_own),
    TEST(so_does_a_child_of_a_child),
    TEST(a_child_that_only_ends_gives_nothing_back),
#ifndef UNDER_ASAN
    TEST(a_fork_in_full_swing_leaves_the_child_free_to_work),
#endif
    TESTS_END,
};
