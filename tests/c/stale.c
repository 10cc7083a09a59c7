/* Handles that stand for nothing: freed, of another kind, or made up. */
#include "handles.h"

static void none_of_its_uses_works(enum kind kind, void *handle, const struct handles *others) {
    for (size_t at = 0; at < uses_count; at++) {
        if (uses[at].kind == kind) {
            check_use(&uses[at], handle, others, FQ_INVALID);
        }
    }
}

static void a_freed_handle_is_nobody_s(void) {
    struct handles others = make_handles();
    for (int kind = 0; kind < KINDS; kind++) {
        struct handles those = make_handles();
        free_handles(&those);
        none_of_its_uses_works((enum kind)kind, those.of[kind], &others);
    }
    free_handles(&others);
}

/* The place of what was freed is used again; its former name must not lead there. */
static void freeing_twice_does_not_free_what_came_after(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        struct handles others = make_handles();
        struct handles before = make_handles();
        free_handles(&before);
        struct handles after = make_handles();
        CHECK(before.of[kind] != after.of[kind]);
        for (int again = 0; again < 3; again++) {
            free_handle((enum kind)kind, before.of[kind]);
        }
        none_of_its_uses_works((enum kind)kind, before.of[kind], &others);
        fq_permit_free(take(after.of[LIMITER]));
        CHECK_OK(fq_client_check(after.of[CLIENT], &err));
        CHECK_OK(fq_config_set(after.of[CONFIG], "limit", 5, "9", 1, &err));
        CHECK_EQUAL(fq_permit_is_valid(after.of[PERMIT]), 1);
        CHECK_EQUAL(fq_error_status(after.of[ERROR]), FQ_INVALID);
        CHECK(fq_error_message(after.of[ERROR])[0] != '\0');
        no_event(after.of[QUEUE]);
        CHECK_OK(fq_cancel(after.of[TICKET], &err));
        free_handles(&after);
        free_handles(&others);
    }
}

static void a_handle_of_another_kind_is_refused(void) {
    struct handles handles = make_handles();
    for (size_t at = 0; at < uses_count; at++) {
        for (int kind = 0; kind < KINDS; kind++) {
            if ((enum kind)kind != uses[at].kind) {
                check_use(&uses[at], handles.of[kind], &handles, FQ_INVALID);
            }
        }
    }
    for (int freed_as = 0; freed_as < KINDS; freed_as++) {
        for (int kind = 0; kind < KINDS; kind++) {
            if (kind != freed_as) {
                free_handle((enum kind)freed_as, handles.of[kind]);
            }
        }
    }
    CHECK_EQUAL(fq_permit_is_valid(handles.of[PERMIT]), 1);
    CHECK_OK(fq_client_check(handles.of[CLIENT], &err));
    no_event(handles.of[QUEUE]);
    free_handles(&handles);
}

static void is_refused_everywhere(uintptr_t number, const struct handles *others) {
    for (size_t at = 0; at < uses_count; at++) {
        check_use(&uses[at], (void *)number, others, FQ_INVALID);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        free_handle((enum kind)kind, (void *)number);
    }
}

static void a_number_made_up_is_refused(void) {
    struct handles handles = make_handles();
    struct chance chance = {1234567};
    int local = 0;
    is_refused_everywhere(1, &handles);
    is_refused_everywhere(UINTPTR_MAX, &handles);
    is_refused_everywhere((uintptr_t)&local, &handles);
    for (uint64_t round = rounds(3000); round > 0; round--) {
        /* Kinds that there are not; a right kind with a wrong rest comes below. */
        is_refused_everywhere((uintptr_t)(below(&chance, UINT64_MAX) & ~(UINT64_C(7) << 60)), &handles);
    }
    CHECK_EQUAL(fq_permit_is_valid(handles.of[PERMIT]), 1);
    free_handles(&handles);
}

/* One bit off: another slot, another life of the slot, another process (forked), another kind. */
static void a_handle_with_a_bit_turned_is_no_handle(void) {
    struct handles handles = make_handles();
    for (size_t at = 0; at < uses_count; at++) {
        for (int bit = 0; bit < 64; bit++) {
            uintptr_t number = (uintptr_t)handles.of[uses[at].kind] ^ (uintptr_t)1 << bit;
            int of_another_process = bit >= 52 && bit < 60;
            check_use(&uses[at], (void *)number, &handles, of_another_process ? FQ_FORKED : FQ_INVALID);
        }
    }
    free_handles(&handles);
}

static void a_message_lives_as_long_as_its_error(void) {
    fq_error *first = NULL, *second = NULL;
    CHECK_EQUAL(fq_client_check(NULL, &first), FQ_INVALID);
    const char *message = fq_error_message(first);
    for (int round = 0; round < 1000; round++) {
        CHECK_EQUAL(fq_release(NULL, &second), FQ_INVALID);
        fq_error_free(second);
    }
    CHECK(strstr(message, "client") != NULL);
    fq_error_free(first);
}

/* Threads that use and free one handle, all at once. */
struct contended {
    pthread_barrier_t line;
    void *handle;
    const struct handles *others;
    enum kind kind;
};

static void *use_and_free(void *argument) {
    struct contended *contended = argument;
    pthread_barrier_wait(&contended->line);
    for (size_t at = 0; at < uses_count; at++) {
        if (uses[at].kind == contended->kind && contended->kind != ERROR && contended->kind != PERMIT) {
            uses[at].call(contended->handle, contended->others);
        }
    }
    free_handle(contended->kind, contended->handle);
    return NULL;
}

static void a_handle_is_freed_while_others_use_it(void) {
    for (uint64_t round = rounds(on_memory() ? 300 : 30); round > 0; round--) {
        struct handles handles = make_handles(), others = make_handles();
        enum kind kind = (enum kind)(round % KINDS);
        struct contended contended = {.handle = handles.of[kind], .others = &others, .kind = kind};
        pthread_t threads[4];
        CHECK(pthread_barrier_init(&contended.line, NULL, 4) == 0);
        for (int at = 0; at < 4; at++) {
            threads[at] = run_thread(use_and_free, &contended);
        }
        for (int at = 0; at < 4; at++) {
            join(threads[at]);
        }
        CHECK(pthread_barrier_destroy(&contended.line) == 0);
        free_handles(&handles);
        free_handles(&others);
    }
}

const struct test stale_tests[] = {
    TEST(a_freed_handle_is_nobody_s),
    TEST(freeing_twice_does_not_free_what_came_after),
    TEST(a_handle_of_another_kind_is_refused),
    TEST(a_number_made_up_is_refused),
    TEST(a_handle_with_a_bit_turned_is_no_handle),
    TEST(a_message_lives_as_long_as_its_error),
    TEST(a_handle_is_freed_while_others_use_it),
    TESTS_END,
};
