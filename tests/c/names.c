/* Names and labels: any UTF-8 of the right length, and nothing else. */
#include "check.h"

static char filler[257];

static const char *long_text(size_t length) {
    memset(filler, 'x', sizeof filler);
    CHECK(length <= sizeof filler);
    return filler;
}

static void try_name(const fq_client *client, const char *name, size_t length) {
    fq_config *config = new_config("limit=1");
    fq_limiter *limiter = NULL;
    CHECK_OK(fq_limiter_open(client, name, length, config, &limiter, &err));
    fq_permit_free(take(limiter));
    fq_limiter_free(limiter);
    fq_config_free(config);
}

static void any_utf8_of_1_to_256_bytes_is_a_name(void) {
    static const char *const odd[] = {
        "{", "}", "a{b}c", "%7B", ":", " ", "\n", "*", "caf\xc3\xa9", "\xe5\x90\x8d\xe5\x89\x8d", "\xf0\x9f\xa6\x80",
    };
    fq_client *client = open_client();
    for (size_t at = 0; at < sizeof odd / sizeof odd[0]; at++) {
        try_name(client, odd[at], strlen(odd[at]));
    }
    try_name(client, "a\0b", 3);
    try_name(client, "\0", 1);
    try_name(client, long_text(256), 256);
    fq_client_free(client);
}

/* The length counts, not a zero byte; and what lies behind is not read. */
static void names_need_not_end_with_a_zero(void) {
    struct world world = open_world("limit=1");
    fq_limiter *first = open_limiter(world.client, "c-test-abc", "limit=1"), *second = NULL;
    fq_permit *permit = take(first), *none = NULL;
    fq_request request = waiting(0);
    char *exact = malloc(10);
    CHECK(exact != NULL);
    memcpy(exact, "c-test-abc", 10);
    CHECK_OK(fq_limiter_open(world.client, exact, 10, NULL, &second, &err));
    free(exact);
    CHECK_STATUS(FQ_TIMED_OUT, fq_acquire(second, &request, NULL, &none, &err));
    fq_permit_free(permit);
    fq_limiter_free(first);
    fq_limiter_free(second);
    free_world(&world);
}

static void other_names_are_refused(void) {
    static const char *const wrong[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80"};
    fq_client *client = open_client();
    fq_limiter *none = (fq_limiter *)(uintptr_t)0xbad;
    for (size_t at = 0; at < sizeof wrong / sizeof wrong[0]; at++) {
        CHECK_STATUS(FQ_INVALID, fq_limiter_open(client, wrong[at], strlen(wrong[at]), NULL, &none, &err));
        CHECK(none == NULL);
    }
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(client, "", 0, NULL, &none, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(client, NULL, 0, NULL, &none, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(client, NULL, 3, NULL, &none, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(client, long_text(257), 257, NULL, &none, &err));
    CHECK_STATUS(FQ_INVALID, fq_limiter_open(client, "x", SIZE_MAX, NULL, &none, &err));
    fq_client_free(client);
}

static void try_label(const fq_limiter *limiter, fq_status want, const char *label, size_t length) {
    fq_request request = waiting(SOON_MS);
    fq_permit *permit = NULL;
    request.label = label;
    request.label_len = length;
    CHECK_STATUS(want, fq_acquire(limiter, &request, NULL, &permit, &err));
    fq_permit_free(permit);
}

static void labels_are_up_to_256_bytes_in_one_line(void) {
    struct world world = open_world("limit=1");
    try_label(world.limiter, FQ_OK, NULL, 0);
    try_label(world.limiter, FQ_OK, "tenant 7", 8);
    try_label(world.limiter, FQ_OK, "\xf0\x9f\xa6\x80", 4);
    try_label(world.limiter, FQ_OK, long_text(256), 256);
    try_label(world.limiter, FQ_INVALID, long_text(257), 257);
    try_label(world.limiter, FQ_INVALID, NULL, 1);
    try_label(world.limiter, FQ_INVALID, "\xff", 1);
    try_label(world.limiter, FQ_INVALID, "a\nb", 3);
    try_label(world.limiter, FQ_INVALID, "a\0b", 3);
    try_label(world.limiter, FQ_INVALID, "x", SIZE_MAX);
    free_world(&world);
}

static void options_that_mean_nothing_are_refused(void) {
    static const char *const wrong[][2] = {
        {"", ""}, {"limt", "4"}, {"limit", ""}, {"limit", "-1"}, {"limit", "4x"}, {"limit", "\xff"}, {"\xff", "1"},
        {"lease", "soon"}, {"subscribe", "yes"}, {"outage", "perhaps"}, {"outage", "local:"}, {"max_wait", "99999999999999999999d"},
    };
    fq_config *config = new_config("");
    for (size_t at = 0; at < sizeof wrong / sizeof wrong[0]; at++) {
        const char *key = wrong[at][0], *value = wrong[at][1];
        CHECK_STATUS(FQ_INVALID, fq_config_set(config, key, strlen(key), value, strlen(value), &err));
    }
    CHECK_STATUS(FQ_INVALID, fq_config_set(config, "limit", SIZE_MAX, "4", 1, &err));
    CHECK_STATUS(FQ_INVALID, fq_config_set(config, "limit", 5, "4", SIZE_MAX, &err));
    fq_config_free(config);
}

static void urls_that_mean_nothing_are_refused(void) {
    static const char *const wrong[] = {"http://localhost/", "redis://", "localhost:6379", "redis://h:99999/", "\xff"};
    for (size_t at = 0; at < sizeof wrong / sizeof wrong[0]; at++) {
        fq_client *none = (fq_client *)(uintptr_t)0xbad;
        CHECK_STATUS(FQ_INVALID, fq_client_open(wrong[at], strlen(wrong[at]), NULL, &none, &err));
        CHECK(none == NULL);
    }
    fq_client *client = NULL;
    CHECK_OK(fq_client_open(NULL, 0, NULL, &client, &err)); /* memory */
    fq_client_free(client);
    CHECK_OK(fq_client_open("", 0, NULL, &client, &err));
    fq_client_free(client);
}

const struct test names_tests[] = {
    TEST(any_utf8_of_1_to_256_bytes_is_a_name),
    TEST(names_need_not_end_with_a_zero),
    TEST(other_names_are_refused),
    TEST(labels_are_up_to_256_bytes_in_one_line),
    TEST(options_that_mean_nothing_are_refused),
    TEST(urls_that_mean_nothing_are_refused),
    TESTS_END,
};
