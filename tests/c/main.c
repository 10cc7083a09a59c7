/* Runs the tests: `promises [GROUP... | -GROUP...]`, these groups, or all but those. FAIRQ_URL says on what (memory:), FAIRQ_TEST_SCALE how many rounds (100 percent). */
#include "check.h"

#include <inttypes.h>
#include <signal.h>

/* How long a test may take; a hang is a failure that can be seen. */
#define PATIENCE_S 400

extern const struct test acquire_tests[], cancel_tests[], close_tests[], cold_tests[], completions_tests[], fd_tests[],
    fork_tests[], free_order_tests[], names_tests[], null_tests[], queue_free_tests[], reports_tests[], rounds_tests[],
    secret_tests[], sizes_tests[], stale_tests[], waits_tests[];

static const struct {
    const char *name;
    const struct test *tests;
} groups[] = {
    {"acquire", acquire_tests},       {"cancel", cancel_tests},         {"completions", completions_tests},
    {"fd", fd_tests},                 {"close", close_tests},           {"queue_free", queue_free_tests},
    {"reports", reports_tests},       {"waits", waits_tests},           {"names", names_tests},
    {"secret", secret_tests},         {"sizes", sizes_tests},           {"null", null_tests},
    {"stale", stale_tests},           {"free_order", free_order_tests}, {"cold", cold_tests},
    {"fork", fork_tests},             {"rounds", rounds_tests},
};

static void hangs(int signal) {
    (void)signal;
    static const char words[] = "\nFAILED: it hangs: ";
    if (write(2, words, sizeof words - 1) < 0 || write(2, running, strlen(running)) < 0 || write(2, "\n", 1) < 0) {
        _exit(2);
    }
    abort();
}

static int is_asked_for(const char *name, int count, char **asked) {
    int all = 1;
    for (int at = 0; at < count; at++) {
        if (asked[at][0] == '-' && strcmp(asked[at] + 1, name) == 0) {
            return 0;
        }
        if (strcmp(asked[at], name) == 0) {
            return 1;
        }
        all &= asked[at][0] == '-';
    }
    return all;
}

static unsigned run_group(const struct test *test) {
    unsigned count = 0;
    for (; test->name != NULL; test++, count++) {
        uint64_t began = now_ms();
        running = test->name;
        alarm(PATIENCE_S);
        test->run();
        printf("  %-72s %6" PRIu64 " ms\n", test->name, now_ms() - began);
        fflush(stdout);
    }
    return count;
}

int main(int argc, char **argv) {
    unsigned count = 0;
    signal(SIGALRM, hangs);
    for (size_t at = 0; at < sizeof groups / sizeof groups[0]; at++) {
        if (is_asked_for(groups[at].name, argc - 1, argv + 1)) {
            count += run_group(groups[at].tests);
        }
    }
    printf("%u passed on %s\n", count, on_memory() ? "memory" : "a server");
    return count > 0 ? 0 : 2;
}
