/* Objects are freed in every order, with a permit held and a request in line. */
#include "check.h"

enum { OBJECTS = 6 };

struct crowd {
    fq_config *config;
    fq_client *client;
    fq_limiter *limiter;
    fq_ticket *ticket;
    fq_permit *permit;
    fq_completions *queue;
};

static struct crowd gather(const char *name) {
    struct crowd crowd = {.config = new_config("limit=1"), .client = open_client(), .queue = new_queue()};
    CHECK_OK(fq_limiter_open(crowd.client, name, strlen(name), crowd.config, &crowd.limiter, &err));
    crowd.permit = take(crowd.limiter);
    start(crowd.limiter, crowd.queue, 1, &crowd.ticket);
    return crowd;
}

static void free_one(struct crowd *crowd, int which) {
    switch (which) {
        case 0: fq_config_free(crowd->config); break;
        case 1: fq_client_free(crowd->client); break;
        case 2: fq_limiter_free(crowd->limiter); break;
        case 3: fq_ticket_free(crowd->ticket); break;
        case 4: fq_permit_free(crowd->permit); break;
        default: fq_completions_free(crowd->queue); break;
    }
}

/* The order of that number, of OBJECTS! orders. */
static void order_of(unsigned number, int order[OBJECTS]) {
    int left[OBJECTS] = {0, 1, 2, 3, 4, 5};
    for (int at = 0; at < OBJECTS; at++) {
        unsigned rest = (unsigned)(OBJECTS - at), pick = number % rest;
        number /= rest;
        order[at] = left[pick];
        memmove(&left[pick], &left[pick + 1], (rest - pick - 1) * sizeof left[0]);
    }
}

static void in_any_order_nothing_is_left_behind(void) {
    unsigned step = is_scaled_down() ? 97 : on_memory() ? 1 : 23;
    fq_client *observer = open_client();
    const char *name = new_name();
    fq_limiter *limiter = open_limiter(observer, name, "limit=1");
    char kept[64];
    snprintf(kept, sizeof kept, "%s", name);
    for (unsigned number = 0; number < 720; number += step) {
        int order[OBJECTS];
        struct crowd crowd = gather(kept);
        order_of(number, order);
        for (int at = 0; at < OBJECTS; at++) {
            free_one(&crowd, order[at]);
        }
        fq_permit_free(take(limiter));
        all_is_given_back(limiter);
    }
    fq_limiter_free(limiter);
    fq_client_free(observer);
}

/* What is held and waited for goes on without the objects that it came from. */
static void a_request_outlives_its_client_limiter_and_ticket(void) {
    struct crowd crowd = gather(new_name());
    fq_config_free(crowd.config);
    fq_client_free(crowd.client);
    fq_limiter_free(crowd.limiter);
    fq_ticket_free(crowd.ticket);
    CHECK_EQUAL(fq_permit_is_valid(crowd.permit), 1);
    no_event(crowd.queue);
    CHECK_OK(fq_release(crowd.permit, &err));
    fq_event event = next_event(crowd.queue);
    CHECK_EQUAL(event.status, FQ_OK);
    CHECK_EQUAL(fq_permit_is_valid(event.permit), 1);
    fq_completions_free(crowd.queue);
    CHECK_EQUAL(fq_permit_is_valid(event.permit), 1);
    free_event(&event);
    fq_permit_free(crowd.permit);
}

const struct test free_order_tests[] = {
    TEST(in_any_order_nothing_is_left_behind),
    TEST(a_request_outlives_its_client_limiter_and_ticket),
    TESTS_END,
};
