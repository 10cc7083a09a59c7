/*
 * At most two at once, over all processes that share the Redis; everybody else waits in line.
 *
 *     cc limit.c $(pkg-config --cflags --libs fairq) -o limit
 *     ./limit redis://127.0.0.1/        (or nothing: for this process alone)
 */
#include <fairq.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Says what went wrong, and frees it. */
static int failed(const char *what, fq_error *error) {
    fprintf(stderr, "%s: %s\n", what, fq_error_message(error));
    fq_error_free(error);
    return 1;
}

/* Two at once, and a hundred in line. */
static fq_limiter *open_limiter(const fq_client *client, fq_error **error) {
    fq_config *config = NULL;
    fq_limiter *limiter = NULL;
    if (fq_config_new(&config, error) == FQ_OK && fq_config_set(config, "limit", 5, "2", 1, error) == FQ_OK
        && fq_config_set(config, "max_queue", 9, "100", 3, error) == FQ_OK) {
        fq_limiter_open(client, "rag:chat", 8, config, &limiter, error);
    }
    fq_config_free(config);
    return limiter;
}

static int work(const fq_limiter *limiter) {
    fq_error *error = NULL;
    fq_permit *permit = NULL;
    fq_request request = FQ_REQUEST_INIT;
    request.max_wait_ms = 15000;
    request.label = "tenant 7";
    request.label_len = strlen(request.label);

    fq_status status = fq_acquire(limiter, &request, NULL, &permit, &error);
    if (status == FQ_QUEUE_FULL) {
        printf("busy; come back in %" PRIu64 " ms\n", fq_error_retry_after_ms(error));
    }
    if (status != FQ_OK) {
        return failed("no permit", error);
    }
    /* ... stream; stop when fq_permit_is_valid(permit) is 0 ... */
    printf("at work with the permit number %" PRIu64 "\n", fq_permit_fence(permit));
    fq_permit_free(permit); /* gives it back in the background */
    return 0;
}

int main(int argc, char **argv) {
    const char *url = argc > 1 ? argv[1] : "memory:";
    fq_error *error = NULL;
    fq_client *client = NULL;
    if (fq_client_open(url, strlen(url), NULL, &client, &error) != FQ_OK) {
        return failed("no client", error);
    }
    fq_limiter *limiter = open_limiter(client, &error);
    int result = limiter != NULL ? work(limiter) : failed("no limiter", error);
    fq_client_close(client, 0, NULL);
    fq_limiter_free(limiter);
    fq_client_free(client);
    return result;
}
