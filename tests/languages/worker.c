/* A worker of the cross-language line (see line.py), in C. What it reads and says is told in worker.rs. */
#include <fairq.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1000 };

static fq_permit *held[MOST];

static void check(fq_status status, fq_error *err) {
    if (status != FQ_OK) {
        fprintf(stderr, "%s: %s\n", fq_status_name(status), fq_error_message(err));
        exit(1);
    }
}

static void start(const fq_limiter *limiter, const fq_completions *queue, uint64_t token, uint64_t cost) {
    char label[32];
    fq_request request = FQ_REQUEST_INIT;
    fq_error *err = NULL;
    request.label_len = (size_t)snprintf(label, sizeof label, "t%" PRIu64, token);
    request.label = label;
    request.cost = cost;
    request.max_wait_ms = FQ_FOREVER;
    check(fq_acquire_start(limiter, &request, NULL, queue, token, &err), err);
}

static void release(uint64_t token) {
    fq_error *err = NULL;
    check(fq_release(held[token], &err), err);
    fq_permit_free(held[token]);
    printf("released %" PRIu64 "\n", token);
}

static void tell(const fq_completions *queue) {
    fq_event events[16];
    size_t count = 0;
    fq_error *err = NULL;
    do {
        check(fq_completions_poll(queue, events, 16, 0, &count, &err), err);
        for (size_t i = 0; i < count; i++) {
            if (events[i].status == FQ_OK) {
                held[events[i].token] = events[i].permit;
                printf("granted %" PRIu64 " %" PRIu64 "\n", events[i].token, fq_permit_fence(events[i].permit));
            } else {
                printf("failed %" PRIu64 " %s\n", events[i].token, fq_error_message(events[i].error));
                fq_error_free(events[i].error);
            }
        }
    } while (count > 0);
}

static void obey(char *line, const fq_limiter *limiter, const fq_completions *queue) {
    uint64_t token = 0, cost = 0;
    if (sscanf(line, "start %" SCNu64 " %" SCNu64, &token, &cost) == 2 && token < MOST) {
        start(limiter, queue, token, cost);
    } else if (sscanf(line, "release %" SCNu64, &token) == 1 && token < MOST) {
        release(token);
    }
}

int main(int argc, char **argv) {
    fq_error *err = NULL;
    fq_config *config = NULL;
    fq_client *client = NULL;
    fq_limiter *limiter = NULL;
    fq_completions *queue = NULL;
    int bell[2];
    char line[256];
    if (argc != 3 || pipe(bell) != 0) {
        return 2;
    }
    setvbuf(stdin, NULL, _IONBF, 0); /* what is buffered, poll does not see */
    setvbuf(stdout, NULL, _IOLBF, 0);
    check(fq_config_new(&config, &err), err);
    check(fq_config_set(config, "limit", 5, "3", 1, &err), err);
    check(fq_client_open(argv[1], strlen(argv[1]), NULL, &client, &err), err);
    check(fq_limiter_open(client, argv[2], strlen(argv[2]), config, &limiter, &err), err);
    check(fq_completions_new(&queue, &err), err);
    check(fq_completions_set_fd(queue, bell[1], &err), err);
    for (;;) {
        struct pollfd ready[2] = {{bell[0], POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        if (poll(ready, 2, -1) < 0) {
            return 1;
        }
        if (ready[0].revents != 0) {
            uint64_t one;
            if (read(bell[0], &one, sizeof one) != (ssize_t)sizeof one) {
                return 1;
            }
            tell(queue);
        }
        if (ready[1].revents != 0) {
            if (fgets(line, sizeof line, stdin) == NULL) {
                break;
            }
            obey(line, limiter, queue);
        }
    }
    fq_completions_free(queue);
    check(fq_client_close(client, 0, &err), err);
    return 0;
}
