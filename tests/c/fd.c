/* The descriptor by which an event loop learns that there is something to poll for. */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

static int new_eventfd(void) {
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static int is_readable(int fd, int timeout_ms) {
    struct pollfd look = {fd, POLLIN, 0};
    int ready = poll(&look, 1, timeout_ms);
    CHECK(ready >= 0);
    return ready == 1;
}

/* What was written to it since the last look, as a number: an eventfd adds up. */
static uint64_t read_number(int fd) {
    uint64_t number = 0;
    CHECK(read(fd, &number, sizeof number) == sizeof number);
    return number;
}

/* A held slot, and requests on a queue that can be cancelled: a cancel has its completion in the queue when it returns. */
struct line {
    struct world world;
    fq_completions *queue;
    fq_permit *held;
    fq_ticket *tickets[100];
};

static void open_line(struct line *line, size_t count) {
    line->world = open_world("limit=1");
    line->queue = new_queue();
    line->held = take(line->world.limiter);
    for (size_t at = 0; at < count; at++) {
        start(line->world.limiter, line->queue, at, &line->tickets[at]);
    }
}

static void cancel(struct line *line, size_t from, size_t to) {
    for (size_t at = from; at < to; at++) {
        CHECK_OK(fq_cancel(line->tickets[at], &err));
        fq_ticket_free(line->tickets[at]);
    }
}

/* All in one poll. */
static void take_events(struct line *line, size_t want) {
    fq_event events[100];
    size_t count = 0;
    CHECK_OK(fq_completions_poll(line->queue, events, 100, 0, &count, &err));
    CHECK_EQUAL(count, want);
    for (size_t at = 0; at < count; at++) {
        CHECK_EQUAL(events[at].status, FQ_CANCELLED);
        free_event(&events[at]);
    }
}

static void free_line(struct line *line) {
    fq_permit_free(line->held);
    fq_completions_free(line->queue);
    free_world(&line->world);
}

/* As an event loop does it: on a wake-up read all that is in the descriptor, then poll until nothing is left. */
static void serve(fq_completions *queue, int readable, int epoll, uint64_t total) {
    fq_event events[16];
    uint64_t wake_ups[512];
    unsigned char *seen = calloc(total, 1);
    CHECK(seen != NULL);
    for (uint64_t got = 0; got < total;) {
        struct epoll_event woken;
        size_t count = 0;
        CHECK(epoll_wait(epoll, &woken, 1, (int)SOON_MS) == 1);
        CHECK(read(readable, wake_ups, sizeof wake_ups) >= 8);
        do {
            CHECK_OK(fq_completions_poll(queue, events, 16, 0, &count, &err));
            for (size_t at = 0; at < count; at++, got++) {
                CHECK_EQUAL(events[at].status, FQ_OK);
                CHECK_EQUAL(++seen[events[at].token], 1);
                free_event(&events[at]);
            }
        } while (count > 0);
    }
    free(seen);
}

struct starter {
    const fq_limiter *limiter;
    const fq_completions *queue;
    uint64_t total;
};

static void *start_them(void *argument) {
    struct starter *starter = argument;
    for (uint64_t token = 0; token < starter->total; token++) {
        start(starter->limiter, starter->queue, token, NULL);
    }
    return NULL;
}

static void an_event_loop_gets_them_all(int readable, int writable) {
    struct world world = open_world("limit=2 max_queue=unbounded");
    struct starter starter = {world.limiter, new_queue(), rounds(on_memory() ? 20000 : 2000)};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event interest = {EPOLLIN, {0}};
    CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, readable, &interest) == 0);
    CHECK_OK(fq_completions_set_fd(starter.queue, writable, &err));
    pthread_t thread = run_thread(start_them, &starter);
    serve((fq_completions *)starter.queue, readable, epoll, starter.total);
    join(thread);
    no_event(starter.queue);
    CHECK_OK(fq_completions_set_fd(starter.queue, -1, &err));
    fq_completions_free((fq_completions *)starter.queue);
    free_world(&world);
    close(epoll);
}

static void an_event_loop_waits_on_an_eventfd(void) {
    int fd = new_eventfd();
    an_event_loop_gets_them_all(fd, fd);
    close(fd);
}

static void an_event_loop_waits_on_a_pipe(void) {
    int ends[2];
    CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    an_event_loop_gets_them_all(ends[0], ends[1]);
    close(ends[0]);
    close(ends[1]);
}

static void a_descriptor_set_late_hears_of_what_waits_already(void) {
    struct line line;
    int fd = new_eventfd(), another = new_eventfd();
    open_line(&line, 1);
    cancel(&line, 0, 1);
    CHECK_OK(fq_completions_set_fd(line.queue, fd, &err));
    CHECK(is_readable(fd, 0));
    /* ... and so does the one that takes its place */
    CHECK_OK(fq_completions_set_fd(line.queue, another, &err));
    CHECK(is_readable(another, 0));
    take_events(&line, 1);
    free_line(&line);
    close(fd);
    close(another);
}

static void a_descriptor_set_on_an_empty_queue_is_left_alone(void) {
    fq_completions *queue = new_queue();
    int fd = new_eventfd();
    CHECK_OK(fq_completions_set_fd(queue, fd, &err));
    CHECK(!is_readable(fd, 0));
    fq_completions_free(queue);
    CHECK(!is_readable(fd, 0));
    close(fd);
}

static void it_is_written_to_once_until_the_next_poll(void) {
    struct line line;
    int fd = new_eventfd();
    open_line(&line, 100);
    CHECK_OK(fq_completions_set_fd(line.queue, fd, &err));
    cancel(&line, 0, 50);
    CHECK_EQUAL(read_number(fd), 1);
    CHECK(!is_readable(fd, 0));
    take_events(&line, 50);
    cancel(&line, 50, 100);
    CHECK_EQUAL(read_number(fd), 1);
    take_events(&line, 50);
    free_line(&line);
    close(fd);
}

static void what_a_poll_leaves_behind_is_told_again(void) {
    struct line line;
    int fd = new_eventfd();
    fq_event events[3];
    size_t count = 0;
    open_line(&line, 5);
    CHECK_OK(fq_completions_set_fd(line.queue, fd, &err));
    cancel(&line, 0, 5);
    CHECK_EQUAL(read_number(fd), 1);
    CHECK_OK(fq_completions_poll(line.queue, events, 3, 0, &count, &err));
    CHECK_EQUAL(count, 3);
    for (size_t at = 0; at < count; at++) {
        free_event(&events[at]);
    }
    CHECK(is_readable(fd, 0));
    take_events(&line, 2);
    free_line(&line);
    close(fd);
}

static void a_descriptor_taken_away_is_not_written_to(void) {
    struct line line;
    int fd = new_eventfd();
    open_line(&line, 2);
    CHECK_OK(fq_completions_set_fd(line.queue, fd, &err));
    CHECK_OK(fq_completions_set_fd(line.queue, -1, &err));
    cancel(&line, 0, 1);
    CHECK(!is_readable(fd, 0));
    CHECK_OK(fq_completions_set_fd(line.queue, fd, &err));
    CHECK_EQUAL(read_number(fd), 1);
    fq_completions_free(line.queue); /* cancels the other one */
    EVENTUALLY(info_of(line.world.limiter).waiting == 0);
    CHECK(!is_readable(fd, 0));
    fq_ticket_free(line.tickets[1]);
    free_line(&line);
    close(fd);
}

static void what_is_no_descriptor_is_refused(void) {
    fq_completions *queue = new_queue();
    CHECK_STATUS(FQ_INVALID, fq_completions_set_fd(queue, -2, &err));
    CHECK_STATUS(FQ_INVALID, fq_completions_set_fd(queue, INT32_MIN, &err));
    CHECK_OK(fq_completions_set_fd(queue, -1, &err));
    fq_completions_free(queue);
}

/* A mistake of the caller's, and no reason for anything but a wake-up to be lost. */
static void a_descriptor_that_nobody_can_write_to_loses_no_event(void) {
    struct line line;
    open_line(&line, 2);
    CHECK_OK(fq_completions_set_fd(line.queue, 1 << 20, &err));
    cancel(&line, 0, 2);
    take_events(&line, 2);
    free_line(&line);
}

/* A pipe that is full is readable, so that nobody sleeps through it; also one that would block its writer. */
static void a_full_pipe_does_not_block(void) {
    struct line line;
    int ends[2], flags;
    char page[4096] = {0};
    CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
    while (write(ends[1], page, sizeof page) > 0) {
    }
    flags = fcntl(ends[1], F_GETFL);
    CHECK(flags >= 0 && fcntl(ends[1], F_SETFL, flags & ~O_NONBLOCK) == 0);
    open_line(&line, 2);
    CHECK_OK(fq_completions_set_fd(line.queue, ends[1], &err));
    cancel(&line, 0, 2);
    CHECK(is_readable(ends[0], 0));
    take_events(&line, 2);
    free_line(&line);
    close(ends[0]);
    close(ends[1]);
}

const struct test fd_tests[] = {
    TEST(an_event_loop_waits_on_an_eventfd),
    TEST(an_event_loop_waits_on_a_pipe),
    TEST(a_descriptor_set_late_hears_of_what_waits_already),
    TEST(a_descriptor_set_on_an_empty_queue_is_left_alone),
    TEST(it_is_written_to_once_until_the_next_poll),
    TEST(what_a_poll_leaves_behind_is_told_again),
    TEST(a_descriptor_taken_away_is_not_written_to),
    TEST(what_is_no_descriptor_is_refused),
    TEST(a_descriptor_that_nobody_can_write_to_loses_no_event),
    TEST(a_full_pipe_does_not_block),
    TESTS_END,
};
