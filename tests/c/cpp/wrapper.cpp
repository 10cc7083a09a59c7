// What fairq.hpp promises. Compiled as C++17 and as C++20.
#include <fairq.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

fairq::status acquire_elsewhere(const fairq::limiter& limiter); // twice.cpp

// --- Checks --------------------------------------------------------------------------------------------------------------

[[noreturn]] static void fail(const char* what, int line) {
    std::fprintf(stderr, "\nFAILED wrapper.cpp:%d: %s\n", line, what);
    std::_Exit(1);
}

#define CHECK(...) (static_cast<bool>(__VA_ARGS__) ? void() : fail(#__VA_ARGS__, __LINE__))

// It throws that, with that status.
#define THROWS(type, of, ...)                             \
    do {                                                  \
        bool thrown = false;                              \
        try {                                             \
            static_cast<void>(__VA_ARGS__);               \
        } catch (const fairq::type& error) {              \
            CHECK(error.status() == fairq::status::of);   \
            CHECK(error.what()[0] != '\0');               \
            thrown = true;                                \
        }                                                 \
        CHECK(thrown && #__VA_ARGS__);                    \
    } while (false)

template <class Condition>
static void eventually(Condition&& condition) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
        CHECK(std::chrono::steady_clock::now() < until);
        std::this_thread::sleep_for(300us);
    }
}

static std::string url() {
    const char* given = std::getenv("FAIRQ_URL");
    return given != nullptr && given[0] != '\0' ? given : "memory:";
}

static std::string new_name() {
    static std::atomic<unsigned> count{0};
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return "cpp-" + std::to_string(getpid()) + "-" + std::to_string(now) + "-" + std::to_string(++count);
}

struct world {
    fairq::client client{url()};
    fairq::limiter limiter;
    explicit world(const fairq::config& options) : limiter(client.limiter(new_name(), options)) {}
    explicit world(std::uint64_t limit) : world(fairq::config().set("limit", limit)) {}
};

static bool is_idle(const fairq::limiter& limiter) {
    const fairq::limiter_status now = limiter.status();
    return now.used == 0 && now.waiting == 0;
}

static fairq::request waiting(fairq::wait_time time) {
    fairq::request request;
    request.max_wait = time;
    return request;
}

// --- What the types are --------------------------------------------------------------------------------------------------

template <class T>
constexpr bool is_a_handle = std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>
    && std::is_nothrow_destructible_v<T> && !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;

static_assert(is_a_handle<fairq::config> && is_a_handle<fairq::client> && is_a_handle<fairq::limiter>);
static_assert(is_a_handle<fairq::ticket> && is_a_handle<fairq::permit> && is_a_handle<fairq::completions>);
static_assert(std::is_move_constructible_v<fairq::event> && !std::is_copy_constructible_v<fairq::event>);
static_assert(std::is_nothrow_copy_constructible_v<fairq::error> && std::is_base_of_v<std::runtime_error, fairq::error>);
static_assert(sizeof(fairq::permit) == sizeof(void*));

// --- Times: rounded up, never down to nothing (S6) -----------------------------------------------------------------------

template <class Time>
constexpr std::uint64_t ms_of(Time time) {
    return fairq::wait_time(time).ms().value();
}

static_assert(fairq::wait_time().ms() == FQ_DEFAULT);
static_assert(ms_of(0ms) == 0 && ms_of(1ns) == 1 && ms_of(400us) == 1 && ms_of(1ms) == 1 && ms_of(1001us) == 2);
static_assert(ms_of(15s) == 15000 && ms_of(2h) == 7200000);
static_assert(ms_of(std::chrono::duration<double>(0.0004)) == 1 && ms_of(std::chrono::duration<float>(0.5f)) == 500);
static_assert(ms_of(fairq::forever) == FQ_FOREVER && ms_of(std::chrono::hours::max()) == FQ_FOREVER);
static_assert(ms_of(std::chrono::nanoseconds::max()) == 9223372036855); // 292 years, and no number that stands for more
static_assert(ms_of(std::chrono::duration<double>(std::numeric_limits<double>::infinity())) == FQ_FOREVER);
static_assert(ms_of(std::chrono::milliseconds(std::int64_t{FQ_DEFAULT})) == FQ_FOREVER);
static_assert(!fairq::wait_time(-1ns).ms() && !fairq::wait_time(std::chrono::hours::min()).ms());
static_assert(!fairq::wait_time(std::chrono::duration<double>(-0.1)).ms());
static_assert(!fairq::wait_time(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())).ms());

static void a_wait_of_less_than_a_millisecond_ends_as_timed_out() {
    const world at(1);
    const fairq::permit held = at.limiter.acquire();
    THROWS(timed_out, timed_out, at.limiter.acquire(waiting(400us)));
    THROWS(timed_out, timed_out, at.limiter.acquire(waiting(1ns)));
    CHECK(at.limiter.try_acquire_for(400us).status() == fairq::status::timed_out);
}

static void negative_times_are_refused() {
    const world at(1);
    const fairq::completions queue;
    THROWS(invalid, invalid, at.limiter.acquire(waiting(-1ms)));
    THROWS(invalid, invalid, at.limiter.start(queue, 1, waiting(-1ms)));
    THROWS(invalid, invalid, queue.poll(-1ms));
    THROWS(invalid, invalid, at.client.close(-1ms));
    THROWS(invalid, invalid, fairq::config().set("lease", -1ms));
    CHECK(at.limiter.try_acquire_for(-1ms).status() == fairq::status::invalid);
    CHECK(queue.poll(0ms).empty());
    at.client.check();
}

// --- Permits -------------------------------------------------------------------------------------------------------------

static void the_end_of_a_permit_gives_the_slot_back() {
    const world at(1);
    {
        const fairq::permit permit = at.limiter.acquire();
        CHECK(permit && permit.is_valid() && permit.state() == fairq::permit_state::valid);
        CHECK(permit.fence() > 0 && permit.order() > 0 && permit.cost() == 1);
        CHECK(acquire_elsewhere(at.limiter) == fairq::status::timed_out);
    }
    eventually([&] { return is_idle(at.limiter); });
    CHECK(acquire_elsewhere(at.limiter) == fairq::status::ok);
}

static void a_permit_is_released_once() {
    const world at(1);
    fairq::permit permit = at.limiter.acquire();
    permit.release();
    CHECK(is_idle(at.limiter));
    CHECK(permit.state() == fairq::permit_state::released);
    THROWS(stale, stale, permit.release());
    permit.reset();
    permit.reset();
    CHECK(!permit && permit.state() == fairq::permit_state::none);
}

static void a_permit_moves_with_its_slot() {
    const world at(2);
    fairq::permit first = at.limiter.acquire(), second = at.limiter.acquire();
    const std::uint64_t fence = second.fence();
    first = std::move(second); // gives the first slot back
    CHECK(!second && first.fence() == fence);
    eventually([&] { return at.limiter.status().used == 1; });
    std::thread([moved = std::move(first)] { CHECK(moved.is_valid()); }).join();
    eventually([&] { return is_idle(at.limiter); });
}

static void an_exception_on_the_way_gives_the_slot_back() {
    const world at(1);
    try {
        const fairq::permit permit = at.limiter.acquire();
        throw std::logic_error("the guarded work failed");
    } catch (const std::logic_error&) {
    }
    eventually([&] { return is_idle(at.limiter); });
}

static void objects_end_in_any_order() {
    fairq::permit permit;
    std::vector<fairq::event> events;
    {
        fairq::completions queue;
        {
            const world at(1);
            permit = at.limiter.acquire();
            at.limiter.start(queue, 9, waiting(fairq::forever));
        }
        CHECK(permit.is_valid());
        permit.release();
        events = queue.poll(fairq::forever);
    }
    CHECK(events.size() == 1 && events[0].token == 9 && events[0].permit.is_valid());
}

// --- Errors --------------------------------------------------------------------------------------------------------------

template <class Error>
static void raises(fairq::status why) {
    try {
        fairq::failure(why, "why").raise();
    } catch (const Error& error) {
        CHECK(error.status() == why && std::strcmp(error.what(), "why") == 0 && !error.retryable());
        return;
    } catch (...) {
    }
    fail(fairq::name_of(why), __LINE__);
}

static void each_status_has_its_exception() {
    using fairq::status;
    raises<fairq::timed_out>(status::timed_out);
    raises<fairq::cancelled>(status::cancelled);
    raises<fairq::closed>(status::closed);
    raises<fairq::queue_full>(status::queue_full);
    raises<fairq::impossible>(status::impossible);
    raises<fairq::revoked>(status::revoked);
    raises<fairq::permit_lost>(status::permit_lost);
    raises<fairq::stale>(status::stale);
    raises<fairq::unavailable>(status::unavailable);
    raises<fairq::unknown_outcome>(status::unknown_outcome);
    raises<fairq::overloaded>(status::overloaded);
    raises<fairq::invalid>(status::invalid);
    raises<fairq::misconfigured>(status::configuration);
    raises<fairq::no_such_limiter>(status::no_such_limiter);
    raises<fairq::forked>(status::forked);
    raises<fairq::error>(status::server);
    raises<fairq::error>(status::panic);
    raises<fairq::error>(status::internal);
    raises<fairq::error>(static_cast<status>(999));
}

static void errors_say_what_to_do() {
    const world at(fairq::config().set("limit", 1).set("max_queue", 0));
    const fairq::permit held = at.limiter.acquire();
    try {
        at.limiter.acquire();
        fail("there is no place in line", __LINE__);
    } catch (const fairq::error& error) {
        CHECK(error.status() == fairq::status::queue_full && error.retryable());
        CHECK(std::strstr(error.what(), "max_queue") != nullptr);
    }
    fairq::request big;
    big.cost = 2;
    THROWS(impossible, impossible, at.limiter.acquire(big));
    THROWS(no_such_limiter, no_such_limiter, at.client.limiter(new_name()).acquire());
    THROWS(invalid, invalid, at.client.limiter(""));
    THROWS(invalid, invalid, fairq::client("http://example.org/"));
    THROWS(invalid, invalid, fairq::config().set("limt", 1));
}

static void a_server_out_of_reach_is_unavailable() {
    const fairq::client client(
        "redis://user:secret@127.0.0.1:1/", fairq::config().set("connect_timeout", 50ms).set("io_timeout", 50ms));
    try {
        client.check();
        fail("there is nobody", __LINE__);
    } catch (const fairq::unavailable& error) {
        CHECK(error.retryable() && error.retry_after().has_value() && *error.retry_after() > 0ms);
        CHECK(std::strstr(error.what(), "secret") == nullptr);
    }
}

static void results_do_not_throw_until_they_are_asked_to() {
    const world at(1);
    fairq::result<fairq::permit> had = at.limiter.try_acquire();
    CHECK(had && had.has_value() && had.status() == fairq::status::ok && had->is_valid() && (*had).is_valid());
    fairq::result<fairq::permit> none = at.limiter.try_acquire();
    CHECK(!none && none.status() == fairq::status::timed_out && none.error().retryable());
    THROWS(timed_out, timed_out, none.value());
    THROWS(timed_out, timed_out, *none);
    THROWS(timed_out, timed_out, none->fence());
    const fairq::permit taken = std::move(had).value();
    CHECK(taken.is_valid());
    CHECK(taken.release(std::nothrow).has_value());
    CHECK(taken.release(std::nothrow).error().status() == fairq::status::stale);
    CHECK(fairq::client::open(std::nothrow, "nonsense").status() == fairq::status::invalid);
    CHECK(at.client.limiter(std::nothrow, "\xff").status() == fairq::status::invalid);
}

static long resident_kb() {
    std::ifstream file("/proc/self/statm");
    long total = 0, resident = 0;
    CHECK(file >> total >> resident);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// The library keeps what was not freed, where no tool sees it as lost.
static void a_hundred_thousand_failures_leave_nothing() {
    const char* scale = std::getenv("FAIRQ_TEST_SCALE");
    const bool is_full = scale == nullptr || std::atoi(scale) >= 100;
    fairq::config options;
    long before = 0;
    for (int round = 0, rounds = is_full ? 110000 : 100; round < rounds; ++round) {
        CHECK(options.set(std::nothrow, "limt", "1").status() == fairq::status::invalid);
        before = round == 10000 ? resident_kb() : before;
    }
    CHECK(!is_full || resident_kb() < before + 8192);
}

static void what_was_moved_from_is_refused() {
    world at(1);
    fairq::completions queue;
    fairq::ticket ticket = at.limiter.new_ticket();
    const fairq::client client = std::move(at.client);
    const fairq::limiter limiter = std::move(at.limiter);
    const fairq::completions moved = std::move(queue);
    const fairq::ticket other = std::move(ticket);
    THROWS(invalid, invalid, at.client.check());
    THROWS(invalid, invalid, at.limiter.acquire());
    THROWS(invalid, invalid, limiter.acquire(ticket));
    THROWS(invalid, invalid, limiter.start(queue, 1));
    THROWS(invalid, invalid, limiter.start(ticket, moved, 1));
    THROWS(invalid, invalid, queue.poll(0ms));
    THROWS(invalid, invalid, ticket.position());
    CHECK(!ticket.cancel());
    CHECK(fairq::permit().state() == fairq::permit_state::none && !fairq::permit().is_valid());
    CHECK(limiter.acquire(other).is_valid());
}

static void a_closed_client_says_so() {
    const world at(1);
    const fairq::permit permit = at.limiter.acquire();
    at.client.close();
    at.client.close(5ms);
    THROWS(closed, closed, at.limiter.acquire());
    THROWS(permit_lost, permit_lost, permit.release());
}

// --- Tickets -------------------------------------------------------------------------------------------------------------

static void a_ticket_cancels_from_another_thread() {
    const world at(1);
    const fairq::permit held = at.limiter.acquire();
    const fairq::ticket ticket = at.limiter.new_ticket();
    std::thread waiter([&] { THROWS(cancelled, cancelled, at.limiter.acquire(ticket, waiting(fairq::forever))); });
    eventually([&] { return at.limiter.status().waiting == 1; });
    CHECK(ticket.position()->place == 1 && ticket.last_position().has_value());
    CHECK(ticket.cancel());
    waiter.join();
    CHECK(!ticket.position() && !ticket.last_position());
}

static void a_ticket_whose_request_has_ended_cancels_nothing() {
    const world at(1);
    const fairq::ticket ticket = at.limiter.new_ticket();
    const fairq::permit permit = at.limiter.acquire(ticket);
    CHECK(!ticket.cancel() && permit.is_valid());
}

#ifdef __cpp_lib_jthread
static void a_stop_ends_a_wait() {
    const world at(1);
    const fairq::permit held = at.limiter.acquire();
    std::jthread waiter([&](const std::stop_token& stop) {
        THROWS(cancelled, cancelled, at.limiter.acquire(stop, waiting(fairq::forever)));
    });
    eventually([&] { return at.limiter.status().waiting == 1; });
    waiter.request_stop();
    waiter.join();
    eventually([&] { return at.limiter.status().waiting == 0; });
}

static void a_stop_before_the_request_ends_it_as_well() {
    const world at(1);
    std::stop_source source;
    source.request_stop();
    CHECK(at.limiter.acquire(std::nothrow, source.get_token()).status() == fairq::status::cancelled);
    CHECK(is_idle(at.limiter));
}

static void without_a_stop_it_is_granted() {
    const world at(1);
    std::stop_source source;
    const fairq::permit permit = at.limiter.acquire(source.get_token());
    source.request_stop(); // concerns the request no more
    CHECK(permit.is_valid());
    CHECK(at.limiter.acquire(std::nothrow, std::stop_token(), {.max_wait = 1ms}).status() == fairq::status::timed_out);
}

static void stops_at_any_moment_lose_no_permit() {
    const world at(1);
    for (int round = 0; round < 300; ++round) {
        std::stop_source source;
        std::thread stopper([&, round] {
            for (int step = 0; step < round; ++step) {
                std::atomic_signal_fence(std::memory_order_seq_cst);
            }
            source.request_stop();
        });
        const auto permit = at.limiter.acquire(std::nothrow, source.get_token(), {.max_wait = fairq::forever});
        CHECK(permit || permit.status() == fairq::status::cancelled);
        stopper.join();
    }
    eventually([&] { return is_idle(at.limiter); });
}
#endif

// --- Completions ---------------------------------------------------------------------------------------------------------

static void completions_bring_permits_and_errors() {
    const world at(1);
    const fairq::completions queue;
    at.limiter.start(queue, 1);
    std::vector<fairq::event> events = queue.poll(fairq::forever);
    CHECK(events.size() == 1 && events[0].token == 1 && events[0].kind == fairq::event_kind::done);
    CHECK(events[0].permit.is_valid() && !events[0].error && events[0].status() == fairq::status::ok);
    at.limiter.start(queue, 2, waiting(0ms));
    const std::vector<fairq::event> refused = queue.poll(1h);
    CHECK(refused.size() == 1 && refused[0].token == 2 && refused[0].status() == fairq::status::timed_out);
    CHECK(refused[0].error->retryable() && !refused[0].permit);
    const fairq::permit taken = std::move(events[0].permit);
    events.clear();
    CHECK(taken.is_valid());
    CHECK(queue.poll(0ms).empty());
    THROWS(invalid, invalid, queue.poll(0ms, 0));
}

static void events_that_nobody_takes_give_their_permits_back() {
    const world at(8);
    const fairq::completions queue;
    for (std::uint64_t token = 0; token < 8; ++token) {
        at.limiter.start(queue, token);
    }
    for (std::size_t seen = 0; seen < 8;) {
        seen += queue.poll(fairq::forever, 3).size();
    }
    eventually([&] { return is_idle(at.limiter); });
}

static void a_ticket_cancels_what_was_started() {
    const world at(1);
    const fairq::completions queue;
    const fairq::permit held = at.limiter.acquire();
    const fairq::ticket ticket = at.limiter.new_ticket();
    at.limiter.start(ticket, queue, 5, waiting(fairq::forever));
    CHECK(ticket.cancel());
    CHECK(queue.poll(fairq::forever).at(0).status() == fairq::status::cancelled);
}

static void positions_and_lost_permits_are_events() {
    const world at(fairq::config().set("limit", 1).set("max_hold", 100ms).set("poll", 20ms));
    const fairq::completions queue;
    fairq::request request = waiting(fairq::forever);
    request.report_position = request.report_permit = true;
    const fairq::permit held = at.limiter.acquire();
    at.limiter.start(queue, 3, request);
    bool placed = false, granted = false, lost = false;
    std::vector<fairq::permit> permits;
    while (!lost) {
        for (fairq::event& event : queue.poll(60s)) {
            CHECK(event.token == 3);
            placed |= event.kind == fairq::event_kind::position && event.position->place == 1;
            granted |= event.kind == fairq::event_kind::done && event.permit;
            lost |= event.kind == fairq::event_kind::permit_lost && event.status() == fairq::status::permit_lost;
            permits.push_back(std::move(event.permit));
        }
    }
    CHECK(placed && granted);
}

static void a_descriptor_wakes_an_event_loop() {
    const world at(1);
    const fairq::completions queue;
    const int fd = eventfd(0, EFD_CLOEXEC);
    std::uint64_t number = 0;
    queue.set_fd(fd);
    at.limiter.start(queue, 1);
    CHECK(read(fd, &number, sizeof number) == sizeof number && number == 1);
    CHECK(queue.poll(0ms).size() == 1);
    queue.set_fd(-1);
    close(fd);
    THROWS(invalid, invalid, queue.set_fd(-5));
}

// --- Limiters and options ------------------------------------------------------------------------------------------------

static void options_are_set_as_what_they_are() {
    fairq::config options;
    const std::string text = "limit_and_more";
    options.set(std::string_view(text).substr(0, 5), "3").set("limit", std::uint8_t{4}).set("max_queue", 7L);
    options.set("max_wait", 1500us).set("lease", 4s).set("max_hold", fairq::forever).set("outage", "fail");
    const fairq::client client(url(), {{"subscribe", "true"}, {"io_timeout", "1s"}});
    fairq::client(url(), fairq::config().set("subscribe", false)).check();
    const fairq::limiter limiter = client.limiter(new_name(), options);
    const fairq::permit permit = limiter.acquire(waiting(1min));
    const fairq::limiter_status now = limiter.status();
    CHECK(now.limit == 4 && now.used == 1 && now.holders == 1 && now.waiting == 0 && now.max_queue == 7U);
    CHECK(now.max_wait == 2ms && now.lease == 4s && now.max_hold == fairq::forever && now.grace == 0ms);
    CHECK(now.instances == 1 && now.granted_total == 1 && now.epoch != 0 && !now.paused);
}

static void operators_change_a_limiter_that_runs() {
    const world at(1);
    const fairq::permit permit = at.limiter.acquire();
    CHECK(at.limiter.status().max_queue == 10000U && at.limiter.status().max_wait == 30s);
    at.limiter.set_limit(2);
    CHECK(at.limiter.try_acquire().has_value());
    at.limiter.configure({{"paused", "true"}, {"max_wait", "forever"}});
    CHECK(at.limiter.status().paused && at.limiter.status().max_wait == fairq::forever);
    CHECK(at.limiter.try_acquire().status() == fairq::status::timed_out);
}

static void the_version_is_the_header_s() {
    const std::string version = std::to_string(FQ_VERSION_MAJOR) + "." + std::to_string(FQ_VERSION_MINOR);
    CHECK(std::string(fairq::version()).rfind(version, 0) == 0);
}

// --- The program ---------------------------------------------------------------------------------------------------------

#define TEST(function) test{#function, function}

int main() {
    struct test {
        const char* name;
        void (*run)();
    };
    const std::vector<test> tests = {
        TEST(a_wait_of_less_than_a_millisecond_ends_as_timed_out),
        TEST(negative_times_are_refused),
        TEST(the_end_of_a_permit_gives_the_slot_back),
        TEST(a_permit_is_released_once),
        TEST(a_permit_moves_with_its_slot),
        TEST(an_exception_on_the_way_gives_the_slot_back),
        TEST(objects_end_in_any_order),
        TEST(each_status_has_its_exception),
        TEST(errors_say_what_to_do),
        TEST(a_server_out_of_reach_is_unavailable),
        TEST(results_do_not_throw_until_they_are_asked_to),
        TEST(a_hundred_thousand_failures_leave_nothing),
        TEST(what_was_moved_from_is_refused),
        TEST(a_closed_client_says_so),
        TEST(a_ticket_cancels_from_another_thread),
        TEST(a_ticket_whose_request_has_ended_cancels_nothing),
#ifdef __cpp_lib_jthread
        TEST(a_stop_ends_a_wait),
        TEST(a_stop_before_the_request_ends_it_as_well),
        TEST(without_a_stop_it_is_granted),
        TEST(stops_at_any_moment_lose_no_permit),
#endif
        TEST(completions_bring_permits_and_errors),
        TEST(events_that_nobody_takes_give_their_permits_back),
        TEST(a_ticket_cancels_what_was_started),
        TEST(positions_and_lost_permits_are_events),
        TEST(a_descriptor_wakes_an_event_loop),
        TEST(options_are_set_as_what_they_are),
        TEST(operators_change_a_limiter_that_runs),
        TEST(the_version_is_the_header_s),
    };
    for (const test& test : tests) {
        alarm(400); // a hang is a failure
        test.run();
        std::printf("  %s\n", test.name);
        std::fflush(stdout);
    }
    std::printf("%zu passed on %s, C++%ld\n", tests.size(), url().substr(0, 7).c_str(), __cplusplus / 100 % 100);
}
