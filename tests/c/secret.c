/* No message shows a password. */
#include "check.h"

static void keeps_the_secret(const fq_error *error) {
    const char *message = fq_error_message(error);
    CHECK(message[0] != '\0');
    CHECK(strstr(message, "secret") == NULL);
    CHECK(strstr(message, "s%65cret") == NULL);
}

static void a_server_out_of_reach(void) {
    static const char *const urls[] = {
        "redis://user:secret@127.0.0.1:1/", "redis://:secret@127.0.0.1:1/", "redis://user:s%65cret@127.0.0.1:1/",
        "rediss://user:secret@127.0.0.1:1/", "redis://user:secret@no-such-host.invalid:6379/0",
    };
    fq_config *config = new_config("connect_timeout=50ms io_timeout=50ms");
    for (size_t at = 0; at < sizeof urls / sizeof urls[0]; at++) {
        fq_client *client = NULL;
        fq_error *error = NULL;
        CHECK_OK(fq_client_open(urls[at], strlen(urls[at]), config, &client, &err));
        CHECK_EQUAL(fq_client_check(client, &error), FQ_UNAVAILABLE);
        CHECK_EQUAL(fq_error_retryable(error), 1);
        keeps_the_secret(error);
        fq_error_free(error);

        fq_limiter *limiter = open_limiter(client, "x", "limit=1 outage=fail");
        fq_permit *none = NULL;
        CHECK_EQUAL(fq_acquire(limiter, NULL, NULL, &none, &error), FQ_UNAVAILABLE);
        keeps_the_secret(error);
        fq_error_free(error);
        fq_limiter_free(limiter);
        fq_client_free(client);
    }
    fq_config_free(config);
}

static void a_url_that_means_nothing(void) {
    static const char *const urls[] = {
        "http://user:secret@host/", "redis://user:secret@host:99999/", "redis://user:secret@/", "redis://user:secret@host/x",
        "redis://user:secret@ho st/", "rediss://user:secret@[::1/", "redis//user:secret@host",
        "redis://user:secret@host/0?nonsense=1", "redis://user:secret%zz@host:0x/",
        "user:secret@host", "redis:user:secret@host", "redis:/user:secret@host", "secret@host",
    };
    for (size_t at = 0; at < sizeof urls / sizeof urls[0]; at++) {
        fq_client *client = NULL;
        fq_error *error = NULL;
        if (fq_client_open(urls[at], strlen(urls[at]), NULL, &client, &error) != FQ_OK) {
            keeps_the_secret(error);
        }
        fq_error_free(error);
        fq_client_free(client);
    }
}

const struct test secret_tests[] = {
    TEST(a_server_out_of_reach),
    TEST(a_url_that_means_nothing),
    TESTS_END,
};
