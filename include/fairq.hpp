/*
 * fairq for C++17 and later: the functions of fairq.h as classes, in a header alone.
 *
 *     #include <fairq.hpp>
 *
 *     fairq::client client("redis://127.0.0.1/"); // or "memory:", for this process alone
 *     fairq::limiter chat = client.limiter("rag:chat", fairq::config().set("limit", 4).set("max_queue", 100));
 *     try {
 *         fairq::request request;
 *         request.max_wait = std::chrono::seconds(15);
 *         request.label = "tenant 7";
 *         fairq::permit permit = chat.acquire(request);
 *         // ... stream; stop when permit.is_valid() is false; hand permit.fence() to what you guard ...
 *     } catch (const fairq::queue_full& busy) {
 *         // ... come back after busy.retry_after() ...
 *     } catch (const fairq::error& error) {
 *         // ... error.status(), error.what() ...
 *     } // the slot was given back at the end of the permit's scope, in the background
 *
 * What holds for all classes:
 *
 * - They can be moved, not copied, and free what they stand for. Their destructors neither throw nor block, and may run in any
 *   order, on any thread. One that was moved from is empty: what is asked of it is refused as invalid.
 * - Any thread may call their const functions at any time; at the end of an object nobody may use it any more.
 * - Each call that can fail is there twice: one throws `fairq::error`, one with `std::nothrow` returns a `fairq::result`, and
 *   throws nothing but `std::bad_alloc`.
 * - Times are of std::chrono, and rounded up to milliseconds: a short wait never becomes none. The largest value of a
 *   type, and `fairq::forever`, never end; a negative time is refused as invalid.
 */
#ifndef FAIRQ_HPP
#define FAIRQ_HPP

#include "fairq.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#if __has_include(<version>)
#include <version>
#endif
#ifdef __cpp_lib_jthread
#include <stop_token>
#endif

namespace fairq {

/** A time that does not end. Also told where a limiter has no bound. */
inline constexpr std::chrono::milliseconds forever = std::chrono::milliseconds::max();
static_assert(forever.count() == FQ_FOREVER, "the library and std::chrono mean the same number");

/** The version of the library, such as `0.1.0`. */
inline const char* version() noexcept { return fq_version(); }

// --- What went wrong -----------------------------------------------------------------------------------------------------

/** What a call, or a request, came to. A newer library may answer with values that have no name here. */
enum class status : std::int32_t {
    ok = FQ_OK,
    timed_out = FQ_TIMED_OUT,
    cancelled = FQ_CANCELLED,
    closed = FQ_CLOSED,
    queue_full = FQ_QUEUE_FULL,
    impossible = FQ_IMPOSSIBLE,
    revoked = FQ_REVOKED,
    permit_lost = FQ_PERMIT_LOST,
    stale = FQ_STALE,
    unavailable = FQ_UNAVAILABLE,
    unknown_outcome = FQ_UNKNOWN_OUTCOME,
    overloaded = FQ_OVERLOADED,
    invalid = FQ_INVALID,
    configuration = FQ_CONFIGURATION,
    server = FQ_SERVER,
    no_such_limiter = FQ_NO_SUCH_LIMITER,
    forked = FQ_FORKED,
    panic = FQ_PANIC,
    internal = FQ_INTERNAL,
};

/** Its name, for logs: `timed out`, `queue full` ... */
inline const char* name_of(status of) noexcept { return fq_status_name(static_cast<fq_status>(of)); }

/** Why there is no result, as a value. */
class failure {
public:
    failure(fairq::status why, std::string message) : message_(std::move(message)), status_(why) {}

    /** Takes the C library's answer, and frees the error. */
    failure(fq_status why, fq_error* error) : status_(static_cast<fairq::status>(why)) {
        const std::unique_ptr<fq_error, void (*)(fq_error*)> owned(error, fq_error_free);
        retryable_ = fq_error_retryable(error) != 0;
        if (const std::uint64_t ms = fq_error_retry_after_ms(error); ms < FQ_FOREVER) {
            retry_after_ = std::chrono::milliseconds(static_cast<std::int64_t>(ms));
        }
        message_ = error == nullptr ? fq_status_name(why) : fq_error_message(error);
    }

    fairq::status status() const noexcept { return status_; }

    /** What went wrong and what to do, in a sentence. */
    const std::string& message() const noexcept { return message_; }

    /** Whether the same request may succeed later without anything being changed. */
    bool retryable() const noexcept { return retryable_; }

    /** When to try again, where that is known. */
    std::optional<std::chrono::milliseconds> retry_after() const noexcept { return retry_after_; }

    /** Throws it, as the exception for its status. */
    [[noreturn]] void raise() const;

private:
    std::string message_;
    std::optional<std::chrono::milliseconds> retry_after_;
    fairq::status status_;
    bool retryable_ = false;
};

/** What is thrown; the commoner kinds have names of their own below. */
class error : public std::runtime_error {
public:
    explicit error(const failure& why)
        : std::runtime_error(why.message()),
          retry_after_(why.retry_after()),
          status_(why.status()),
          retryable_(why.retryable()) {}

    fairq::status status() const noexcept { return status_; }

    /** Whether the same request may succeed later without anything being changed. */
    bool retryable() const noexcept { return retryable_; }

    /** When to try again, where that is known. */
    std::optional<std::chrono::milliseconds> retry_after() const noexcept { return retry_after_; }

private:
    std::optional<std::chrono::milliseconds> retry_after_;
    fairq::status status_;
    bool retryable_;
};

/* One for each status that callers are likely to tell apart. */
struct timed_out : error { using error::error; };
struct cancelled : error { using error::error; };
struct closed : error { using error::error; };
struct queue_full : error { using error::error; };
struct impossible : error { using error::error; };
struct revoked : error { using error::error; };
struct permit_lost : error { using error::error; };
struct stale : error { using error::error; };
struct unavailable : error { using error::error; };
struct unknown_outcome : error { using error::error; };
struct overloaded : error { using error::error; };
struct invalid : error { using error::error; };
struct misconfigured : error { using error::error; };
struct no_such_limiter : error { using error::error; };
struct forked : error { using error::error; };

inline void failure::raise() const {
    switch (status_) {
        case status::timed_out: throw timed_out(*this);
        case status::cancelled: throw cancelled(*this);
        case status::closed: throw closed(*this);
        case status::queue_full: throw queue_full(*this);
        case status::impossible: throw impossible(*this);
        case status::revoked: throw revoked(*this);
        case status::permit_lost: throw permit_lost(*this);
        case status::stale: throw stale(*this);
        case status::unavailable: throw unavailable(*this);
        case status::unknown_outcome: throw unknown_outcome(*this);
        case status::overloaded: throw overloaded(*this);
        case status::invalid: throw invalid(*this);
        case status::configuration: throw misconfigured(*this);
        case status::no_such_limiter: throw no_such_limiter(*this);
        case status::forked: throw forked(*this);
        case status::ok:
        case status::server:
        case status::panic:
        case status::internal: break;
    }
    throw error(*this);
}

/**
 * A value, or why there is none.
 *
 *     if (fairq::result<fairq::permit> permit = chat.try_acquire()) {
 *         // ... *permit ...
 *     } else {
 *         // ... permit.error().message() ...
 *     }
 */
template <class T>
class [[nodiscard]] result {
public:
    result(T value) : is_(std::in_place_index<0>, std::move(value)) {}
    result(failure why) : is_(std::in_place_index<1>, std::move(why)) {}

    bool has_value() const noexcept { return is_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    /** `status::ok`, or the failure's. */
    fairq::status status() const noexcept { return has_value() ? status::ok : std::get_if<1>(&is_)->status(); }

    /** The value; throws the failure, if it is one. */
    T& value() & { return check(), *std::get_if<0>(&is_); }
    const T& value() const& { return check(), *std::get_if<0>(&is_); }
    T value() && { return check(), std::move(*std::get_if<0>(&is_)); }

    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T operator*() && { return std::move(*this).value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    /** Why there is no value; there has to be none. */
    const failure& error() const { return std::get<1>(is_); }

private:
    void check() const {
        if (const failure* why = std::get_if<1>(&is_)) {
            why->raise();
        }
    }

    std::variant<T, failure> is_;
};

/** Nothing, or why it did not work. */
template <>
class [[nodiscard]] result<void> {
public:
    result() = default;
    result(failure why) : why_(std::move(why)) {}

    bool has_value() const noexcept { return !why_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }

    /** `status::ok`, or the failure's. */
    fairq::status status() const noexcept { return has_value() ? status::ok : why_->status(); }

    /** Throws the failure, if it is one. */
    void value() const {
        if (why_) {
            why_->raise();
        }
    }

    /** Why it did not work; it must not have worked. */
    const failure& error() const { return why_.value(); }

private:
    std::optional<failure> why_;
};

// --- What the rest is made of --------------------------------------------------------------------------------------------

namespace detail {

template <auto Free>
struct freer {
    template <class T>
    void operator()(T* handle) const noexcept {
        Free(handle);
    }
};

template <class T, auto Free>
using owned = std::unique_ptr<T, freer<Free>>;

/** Runs a C function that takes a place for an error. */
template <class Call>
result<void> call(Call&& body) {
    fq_error* error = nullptr;
    const fq_status status = body(&error);
    if (status != FQ_OK) {
        return failure(status, error);
    }
    return {};
}

/** Runs a C function that makes a handle, and puts it into its class. */
template <class Wrapper, class Handle, class Call>
result<Wrapper> make(Call&& body) {
    Handle* handle = nullptr;
    if (result<void> done = call([&](fq_error** error) { return body(&handle, error); }); !done) {
        return done.error();
    }
    return Wrapper(handle);
}

/** From here on a number of milliseconds stands for no end. */
inline constexpr std::uint64_t endless = (std::uint64_t{1} << 53) - 1;

/** A time in whole milliseconds, rounded up; nothing for one that is negative, or no number. */
template <class Rep, class Period>
constexpr std::optional<std::uint64_t> millis(const std::chrono::duration<Rep, Period>& time) noexcept {
    const long double exact = std::chrono::duration<long double, std::milli>(time).count();
    if (!(exact >= 0)) {
        return std::nullopt;
    }
    if (exact >= static_cast<long double>(endless)) {
        return std::uint64_t{FQ_FOREVER};
    }
    return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

inline std::chrono::milliseconds time(std::uint64_t ms) noexcept {
    return ms >= FQ_FOREVER ? forever : std::chrono::milliseconds(static_cast<std::int64_t>(ms));
}

inline std::optional<std::chrono::milliseconds> known_time(std::uint64_t ms) noexcept {
    return ms >= FQ_FOREVER ? std::nullopt : std::optional(time(ms));
}

inline failure negative(const char* what) {
    return failure(status::invalid, std::string(what) + ": it has to be a time that is not negative");
}

} // namespace detail

// --- Options -------------------------------------------------------------------------------------------------------------

/**
 * Options for opening a client or a limiter, or for changing a limiter; `fq_options` tells all there are.
 *
 *     auto exports = client.limiter("exports", fairq::config().set("limit", 4).set("lease", std::chrono::seconds(5)));
 */
class config {
public:
    config() : handle_(make().value().release()) {}

    /** Options as they would be written: `{{"limit", "4"}, {"lease", "5s"}}`. */
    config(std::initializer_list<std::pair<std::string_view, std::string_view>> options) : config() {
        for (const auto& [key, value] : options) {
            set(key, value);
        }
    }

    /** Sets an option as it would be written: `set("outage", "local:2")`. */
    config& set(std::string_view key, std::string_view value) {
        set(std::nothrow, key, value).value();
        return *this;
    }

    /** Sets an option that is a whole number, or true or false. */
    template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
    config& set(std::string_view key, T value) {
        if constexpr (std::is_same_v<T, bool>) {
            return set(key, std::string_view(value ? "true" : "false"));
        } else {
            return set(key, std::string_view(std::to_string(value)));
        }
    }

    /** Sets an option that is a time. */
    template <class Rep, class Period>
    config& set(std::string_view key, const std::chrono::duration<Rep, Period>& value) {
        const std::optional<std::uint64_t> ms = detail::millis(value);
        if (!ms) {
            detail::negative(std::string(key).c_str()).raise();
        }
        return set(key, *ms == FQ_FOREVER ? std::string("forever") : std::to_string(*ms) + "ms");
    }

    result<void> set(std::nothrow_t, std::string_view key, std::string_view value) {
        return detail::call([&](fq_error** error) {
            return fq_config_set(handle_.get(), key.data(), key.size(), value.data(), value.size(), error);
        });
    }

    /** For use with fairq.h; stays this object's. */
    fq_config* handle() const noexcept { return handle_.get(); }

private:
    using owned = detail::owned<fq_config, &fq_config_free>;

    static result<owned> make() {
        return detail::make<owned, fq_config>(fq_config_new);
    }

    owned handle_;
};

/** How long to wait in line: any time of std::chrono, zero for not at all; by default as long as the limiter says. */
class wait_time {
public:
    constexpr wait_time() noexcept = default;

    template <class Rep, class Period>
    constexpr wait_time(const std::chrono::duration<Rep, Period>& time) noexcept
        : ms_(detail::millis(time).value_or(bad)) {}

    /** As the C library takes it; nothing for a negative time. */
    constexpr std::optional<std::uint64_t> ms() const noexcept {
        return ms_ == bad ? std::nullopt : std::optional(ms_);
    }

private:
    static constexpr std::uint64_t bad = UINT64_MAX;
    std::uint64_t ms_ = FQ_DEFAULT;
};

/** What is asked for. */
struct request {
    wait_time max_wait = {};
    /** How much of the limit the permit takes; at least 1. */
    std::uint64_t cost = 1;
    /** What operators see in the lists of holders and waiters; up to 256 bytes of UTF-8. */
    std::string label = {};
    /** Whether each new position in line is an event; for `limiter::start`. */
    bool report_position = false;
    /** Whether what happens to the permit is an event; for `limiter::start`. */
    bool report_permit = false;
};

/** Where a request stands in line. */
struct position {
    /** 1 is next. */
    std::uint64_t place = 0;
    /** How long it is likely to wait still, where that is known. */
    std::optional<std::chrono::milliseconds> estimate = {};
};

// --- Permits and tickets -------------------------------------------------------------------------------------------------

enum class permit_state : std::int32_t {
    /** Held, and confirmed within the lease. */
    valid = FQ_PERMIT_STATE_VALID,
    /** Held as far as is known, but the store has been silent for a lease: others may have the slot. */
    unconfirmed = FQ_PERMIT_STATE_UNCONFIRMED,
    /** Lost; guarded work has to stop. */
    lost = FQ_PERMIT_STATE_LOST,
    /** Given back. */
    released = FQ_PERMIT_STATE_RELEASED,
    /** The object is empty, or belongs to a parent process. */
    none = FQ_PERMIT_STATE_NONE,
};

/** A held slot. Its end gives the slot back in the background. */
class permit {
public:
    /** An empty one, that holds nothing. */
    permit() noexcept = default;

    /** Takes over a permit of fairq.h. */
    explicit permit(fq_permit* handle) noexcept : handle_(handle) {}

    /** Whether there is one; `is_valid` says whether it still holds the slot. */
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /** Whether nobody else can have the slot now. Local and conservative; does not block. */
    bool is_valid() const noexcept { return fq_permit_is_valid(handle_.get()) != 0; }
    permit_state state() const noexcept { return static_cast<permit_state>(fq_permit_state(handle_.get())); }

    /** Grows with every grant of the limiter: the guarded resource can refuse whoever comes with a smaller one. */
    std::uint64_t fence() const noexcept { return fq_permit_fence(handle_.get()); }

    /** The request's place in line, given once at its arrival: microseconds of the store's clock. */
    std::uint64_t order() const noexcept { return fq_permit_order(handle_.get()); }
    std::uint64_t cost() const noexcept { return fq_permit_cost(handle_.get()); }

    /** Gives the slot back now, and waits for the store's answer. Throws `stale` or `permit_lost` if it was gone before. */
    void release() const { release(std::nothrow).value(); }
    result<void> release(std::nothrow_t) const {
        return detail::call([&](fq_error** error) { return fq_release(handle_.get(), error); });
    }

    /** Gives the slot back now, in the background, as the end of the object would. */
    void reset() noexcept { handle_.reset(); }

    /** For use with fairq.h; stays this object's. */
    fq_permit* handle() const noexcept { return handle_.get(); }

private:
    detail::owned<fq_permit, &fq_permit_free> handle_;
};

/** One request on its way, to be cancelled or watched from any thread. Its end does not end the request. */
class ticket {
public:
    explicit ticket(fq_ticket* handle) noexcept : handle_(handle) {}

    /** Cancels the request, also one that is not started yet. True: it will not be granted; false: it had ended otherwise. */
    bool cancel() const noexcept { return fq_cancel(handle_.get(), nullptr) == FQ_OK; }

    /** Asks the store where the request stands; nothing if it does not wait in line. Blocks for a round trip. */
    std::optional<fairq::position> position() const { return position(std::nothrow).value(); }
    result<std::optional<fairq::position>> position(std::nothrow_t) const { return ask(fq_ticket_position); }

    /** Where it stood when the store last told. Does not block. */
    std::optional<fairq::position> last_position() const { return ask(fq_ticket_last_position).value(); }

    /** For use with fairq.h; stays this object's. */
    fq_ticket* handle() const noexcept { return handle_.get(); }

private:
    template <class Ask>
    result<std::optional<fairq::position>> ask(Ask&& asked) const {
        fq_position told = {0, FQ_FOREVER};
        if (auto done = detail::call([&](fq_error** e) { return asked(handle_.get(), &told, e); }); !done) {
            return done.error();
        }
        if (told.position == 0) {
            return std::optional<fairq::position>();
        }
        return std::optional(fairq::position{told.position, detail::known_time(told.estimate_ms)});
    }

    detail::owned<fq_ticket, &fq_ticket_free> handle_;
};

// --- Completions ---------------------------------------------------------------------------------------------------------

enum class event_kind : std::int32_t {
    /** The request has ended: with a permit, or an error. */
    done = FQ_EVENT_DONE,
    /** It stands at `position` now. */
    position = FQ_EVENT_POSITION,
    /** The store has not confirmed the permit for a whole lease: others may have the slot. It may come back. */
    permit_unconfirmed = FQ_EVENT_PERMIT_UNCONFIRMED,
    /** The store has confirmed it again. */
    permit_confirmed = FQ_EVENT_PERMIT_CONFIRMED,
    /** The permit is lost for good; guarded work has to stop. */
    permit_lost = FQ_EVENT_PERMIT_LOST,
};

/** Something that became of a request. */
struct event {
    /** As given to `limiter::start`. */
    std::uint64_t token = 0;
    event_kind kind = event_kind::done;
    /** What a request that is done was granted; else empty. */
    fairq::permit permit = {};
    /** Why it was not, or why the permit is lost. */
    std::optional<failure> error = {};
    std::optional<fairq::position> position = {};

    /** `status::ok`, or the error's. */
    fairq::status status() const noexcept { return error ? error->status() : status::ok; }
};

/**
 * A queue of events: what became of requests that were started. Its end cancels the requests that would have reported to it.
 *
 *     fairq::completions done;
 *     chat.start(done, 42);
 *     for (fairq::event& event : done.poll(fairq::forever)) {
 *         // ... event.token, event.permit, event.error ...
 *     }
 */
class completions {
public:
    completions() : handle_(make().value().release()) {}

    /**
     * Writes the eight bytes of the number 1 to `fd` (an eventfd, or the write end of a pipe) when there is something to poll
     * for; -1 ends that. See `fq_completions_set_fd`.
     */
    void set_fd(int fd) const { set_fd(std::nothrow, fd).value(); }
    result<void> set_fd(std::nothrow_t, int fd) const {
        return detail::call([&](fq_error** error) { return fq_completions_set_fd(handle_.get(), fd, error); });
    }

    /** Takes up to `max` events; waits up to `timeout` for the first, and not for more. */
    template <class Rep, class Period>
    std::vector<event> poll(const std::chrono::duration<Rep, Period>& timeout, std::size_t max = 64) const {
        return poll(std::nothrow, timeout, max).value();
    }

    template <class Rep, class Period>
    result<std::vector<event>> poll(
        std::nothrow_t, const std::chrono::duration<Rep, Period>& timeout, std::size_t max = 64) const {
        const std::optional<std::uint64_t> ms = detail::millis(timeout);
        if (!ms) {
            return detail::negative("timeout");
        }
        return poll_ms(*ms, max);
    }

    /** For use with fairq.h; stays this object's. */
    fq_completions* handle() const noexcept { return handle_.get(); }

private:
    using owned = detail::owned<fq_completions, &fq_completions_free>;

    static result<owned> make() {
        return detail::make<owned, fq_completions>(fq_completions_new);
    }

    /** Events as they come, freed unless somebody takes them. */
    struct batch {
        std::vector<fq_event> events;
        std::size_t count = 0, taken = 0;

        explicit batch(std::size_t max) : events(max) {}
        batch(const batch&) = delete;
        batch& operator=(const batch&) = delete;
        ~batch() {
            for (; taken < count; ++taken) {
                fq_permit_free(events[taken].permit);
                fq_error_free(events[taken].error);
            }
        }

        event take() {
            fq_event& from = events[taken];
            event to;
            to.token = from.token;
            to.kind = static_cast<event_kind>(from.kind);
            to.permit = fairq::permit(std::exchange(from.permit, nullptr));
            if (from.status != FQ_OK) {
                to.error.emplace(from.status, std::exchange(from.error, nullptr));
            }
            if (from.kind == FQ_EVENT_POSITION) {
                to.position = fairq::position{from.position, detail::known_time(from.estimate_ms)};
            }
            ++taken;
            return to;
        }
    };

    result<std::vector<event>> poll_ms(std::uint64_t ms, std::size_t max) const {
        batch got(std::min<std::size_t>(max, 1024)); // more has to be polled again anyway
        const auto poll = [&](fq_error** error) {
            return fq_completions_poll(handle_.get(), got.events.data(), max, ms, &got.count, error);
        };
        if (result<void> done = detail::call(poll); !done) {
            return done.error();
        }
        std::vector<event> events;
        events.reserve(got.count);
        while (got.taken < got.count) {
            events.push_back(got.take());
        }
        return events;
    }

    owned handle_;
};

// --- Limiters and clients ------------------------------------------------------------------------------------------------

/** How a limiter stands. */
struct limiter_status {
    /** Whether an operator has paused it. */
    bool paused = false;
    /** How much cost may be held at once, and how much is. */
    std::uint64_t limit = 0, used = 0;
    /** Permits that are held, and requests in line. */
    std::uint64_t holders = 0, waiting = 0;
    /** How many may wait; nothing for no bound. */
    std::optional<std::uint64_t> max_queue = {};
    /** How long a request waits that does not say so; or `forever`. */
    std::chrono::milliseconds max_wait = {};
    /** How long the store believes in a process that has stopped talking. */
    std::chrono::milliseconds lease = {};
    /** How long a permit may be held; or `forever`. */
    std::chrono::milliseconds max_hold = {};
    /** Permits given since the limiter came to be, and live instances that use it. */
    std::uint64_t granted_total = 0, instances = 0;
    /** Changes whenever the store has lost state. */
    std::uint64_t epoch = 0;
    /** For how long nobody is admitted yet, after a loss of state; zero in quiet times. */
    std::chrono::milliseconds grace = {};
    /** Mean time that a permit is held, where that is known. */
    std::optional<std::chrono::milliseconds> typical_hold = {};
    /** How long a newcomer is likely to wait, where that is known. */
    std::optional<std::chrono::milliseconds> estimate = {};
    /** Cost that came back over the limit after losses of state, since the limiter came to be. */
    std::uint64_t overshoot_total = 0;
};

/** A named limit with a line in front of it. */
class limiter {
public:
    explicit limiter(fq_limiter* handle) noexcept : handle_(handle) {}

    /** Waits in line for a permit. Blocks until the request has ended: not longer than its wait and a little. */
    permit acquire(const request& what = {}) const { return acquire(std::nothrow, what).value(); }
    result<permit> acquire(std::nothrow_t, const request& what = {}) const { return ask(what, nullptr); }

    /** As above, with a ticket by which other threads may cancel or watch; it serves for one request. */
    permit acquire(const ticket& with, const request& what = {}) const {
        return acquire(std::nothrow, with, what).value();
    }
    result<permit> acquire(std::nothrow_t, const ticket& with, const request& what = {}) const {
        if (with.handle() == nullptr) {
            return failure(status::invalid, "ticket: it is empty");
        }
        return ask(what, with.handle());
    }

#ifdef __cpp_lib_jthread
    /** As above; a stop, now or later, cancels the request: `cancelled`. */
    permit acquire(const std::stop_token& stop, const request& what = {}) const {
        return acquire(std::nothrow, stop, what).value();
    }
    result<permit> acquire(std::nothrow_t, const std::stop_token& stop, const request& what = {}) const {
        const result<ticket> with = new_ticket(std::nothrow);
        if (!with) {
            return with.error();
        }
        const ticket& stopped = *with;
        const std::stop_callback cancel(stop, [&stopped]() noexcept { stopped.cancel(); });
        return acquire(std::nothrow, stopped, what);
    }
#endif

    /** Takes a permit if that needs no waiting, and passes nobody; otherwise `timed_out` or `queue_full`. Throws none of them. */
    result<permit> try_acquire(const request& what = {}) const {
        return try_acquire_for(std::chrono::milliseconds::zero(), what);
    }

    /** As `acquire`, waiting for so long at most; throws none of its errors. */
    result<permit> try_acquire_for(wait_time wait, request what = {}) const {
        what.max_wait = wait;
        return ask(what, nullptr);
    }

    /**
     * Starts a request and returns. After that there is exactly one event of kind `done` with this token in the queue,
     * unless the queue ends.
     */
    void start(const completions& to, std::uint64_t token, const request& what = {}) const {
        start(std::nothrow, to, token, what).value();
    }
    result<void> start(std::nothrow_t, const completions& to, std::uint64_t token, const request& what = {}) const {
        return begin(what, nullptr, to, token);
    }

    /** As above, with a ticket by which any thread may cancel or watch; it serves for one request. */
    void start(const ticket& with, const completions& to, std::uint64_t token, const request& what = {}) const {
        start(std::nothrow, with, to, token, what).value();
    }
    result<void> start(
        std::nothrow_t, const ticket& with, const completions& to, std::uint64_t token, const request& what = {}) const {
        if (with.handle() == nullptr) {
            return failure(status::invalid, "ticket: it is empty");
        }
        return begin(what, with.handle(), to, token);
    }

    /** A ticket for one request. Cancelling it is sticky: what is started with it afterwards ends as cancelled. */
    ticket new_ticket() const { return new_ticket(std::nothrow).value(); }
    result<ticket> new_ticket(std::nothrow_t) const {
        return detail::make<ticket, fq_ticket>([&](fq_ticket** made, fq_error** error) {
            return fq_ticket_new(handle_.get(), made, error);
        });
    }

    /** Asks how the limiter stands. Blocks for a round trip. */
    limiter_status status() const { return status(std::nothrow).value(); }
    result<limiter_status> status(std::nothrow_t) const {
        fq_limiter_info info = FQ_LIMITER_INFO_INIT;
        const auto ask = [&](fq_error** error) { return fq_limiter_status(handle_.get(), &info, error); };
        if (result<void> done = detail::call(ask); !done) {
            return done.error();
        }
        return told(info);
    }

    /** Changes the limit while the limiter runs, as its operator. */
    void set_limit(std::uint64_t limit) const { set_limit(std::nothrow, limit).value(); }
    result<void> set_limit(std::nothrow_t, std::uint64_t limit) const {
        return detail::call([&](fq_error** error) { return fq_limiter_set_limit(handle_.get(), limit, error); });
    }

    /** Changes settings while the limiter runs, as its operator: `configure({{"paused", "true"}})`. */
    void configure(const config& changes) const { configure(std::nothrow, changes).value(); }
    result<void> configure(std::nothrow_t, const config& changes) const {
        return detail::call([&](fq_error** error) {
            return fq_limiter_configure(handle_.get(), changes.handle(), error);
        });
    }

    /** For use with fairq.h; stays this object's. */
    fq_limiter* handle() const noexcept { return handle_.get(); }

private:
    /** As the C library takes it; the label is still the request's. */
    static result<fq_request> raw(const request& what) {
        const std::optional<std::uint64_t> ms = what.max_wait.ms();
        if (!ms) {
            return detail::negative("max_wait");
        }
        fq_request raw = FQ_REQUEST_INIT;
        raw.max_wait_ms = *ms;
        raw.cost = what.cost;
        raw.label = what.label.data();
        raw.label_len = what.label.size();
        raw.flags = (what.report_position ? std::uint32_t{FQ_REPORT_POSITION} : 0U)
            | (what.report_permit ? std::uint32_t{FQ_REPORT_PERMIT} : 0U);
        return raw;
    }

    result<permit> ask(const request& what, const fq_ticket* with) const {
        const result<fq_request> asked = raw(what);
        if (!asked) {
            return asked.error();
        }
        return detail::make<permit, fq_permit>([&](fq_permit** granted, fq_error** error) {
            return fq_acquire(handle_.get(), &*asked, with, granted, error);
        });
    }

    result<void> begin(const request& what, const fq_ticket* with, const completions& to, std::uint64_t token) const {
        const result<fq_request> asked = raw(what);
        if (!asked) {
            return asked.error();
        }
        return detail::call([&](fq_error** error) {
            return fq_acquire_start(handle_.get(), &*asked, with, to.handle(), token, error);
        });
    }

    static limiter_status told(const fq_limiter_info& info) {
        limiter_status now;
        now.paused = info.paused != 0;
        now.limit = info.limit;
        now.used = info.used;
        now.holders = info.holders;
        now.waiting = info.waiting;
        now.max_queue = info.max_queue >= FQ_FOREVER ? std::nullopt : std::optional(info.max_queue);
        now.max_wait = detail::time(info.max_wait_ms);
        now.lease = detail::time(info.lease_ms);
        now.max_hold = detail::time(info.max_hold_ms);
        now.granted_total = info.granted_total;
        now.instances = info.instances;
        now.epoch = info.epoch;
        now.grace = detail::time(info.grace_ms);
        now.typical_hold = detail::known_time(info.typical_hold_ms);
        now.estimate = detail::known_time(info.estimate_ms);
        now.overshoot_total = info.overshoot_total;
        return now;
    }

    detail::owned<fq_limiter, &fq_limiter_free> handle_;
};

/**
 * An open client: one instance of fairq. When it and its limiters, tickets and permits have ended, it closes in the background.
 */
class client {
public:
    /**
     * Opens a client: `memory:` for this process alone, `redis://`, `redis-cluster://`, `redis-sentinel://` (with
     * `rediss` by TLS; see fq_client_open) or `unix:///path/to/socket` for a
     * cluster of processes. Connects with the first request.
     */
    explicit client(std::string_view url = "memory:") : client(open(std::nothrow, url).value()) {}
    client(std::string_view url, const config& options) : client(open(std::nothrow, url, options).value()) {}
    explicit client(fq_client* handle) noexcept : handle_(handle) {}

    static result<client> open(std::nothrow_t, std::string_view url) { return open(url, nullptr); }
    static result<client> open(std::nothrow_t, std::string_view url, const config& options) {
        return open(url, options.handle());
    }

    /** Connects now, and looks whether the server is fit. Blocks for `connect_timeout` and `io_timeout` at most. */
    void check() const { check(std::nothrow).value(); }
    result<void> check(std::nothrow_t) const {
        return detail::call([&](fq_error** error) { return fq_client_check(handle_.get(), error); });
    }

    /** Attaches to a limiter that others have declared; `name` is 1 to 256 bytes of UTF-8. */
    fairq::limiter limiter(std::string_view name) const { return limiter(std::nothrow, name).value(); }
    result<fairq::limiter> limiter(std::nothrow_t, std::string_view name) const { return open_limiter(name, nullptr); }

    /** Opens a limiter, and declares it: `limiter("rag:chat", {{"limit", "4"}})`. */
    fairq::limiter limiter(std::string_view name, const config& options) const {
        return limiter(std::nothrow, name, options).value();
    }
    result<fairq::limiter> limiter(std::nothrow_t, std::string_view name, const config& options) const {
        return open_limiter(name, options.handle());
    }

    /**
     * Closes it: every waiter ends as closed, what is held is renewed until it is given back or `drain` is over. Blocks
     * for `drain` and a few seconds at most. Without this call the client closes in the background when its last object ends.
     */
    template <class Rep, class Period>
    void close(const std::chrono::duration<Rep, Period>& drain) const {
        close(std::nothrow, drain).value();
    }
    void close() const { close(std::chrono::milliseconds::zero()); }

    template <class Rep, class Period>
    result<void> close(std::nothrow_t, const std::chrono::duration<Rep, Period>& drain) const {
        const std::optional<std::uint64_t> ms = detail::millis(drain);
        if (!ms) {
            return detail::negative("drain");
        }
        return detail::call([&](fq_error** error) { return fq_client_close(handle_.get(), *ms, error); });
    }

    /** For use with fairq.h; stays this object's. */
    fq_client* handle() const noexcept { return handle_.get(); }

private:
    static result<client> open(std::string_view url, const fq_config* options) {
        return detail::make<client, fq_client>([&](fq_client** made, fq_error** error) {
            return fq_client_open(url.data(), url.size(), options, made, error);
        });
    }

    result<fairq::limiter> open_limiter(std::string_view name, const fq_config* options) const {
        return detail::make<fairq::limiter, fq_limiter>([&](fq_limiter** made, fq_error** error) {
            return fq_limiter_open(handle_.get(), name.data(), name.size(), options, made, error);
        });
    }

    detail::owned<fq_client, &fq_client_free> handle_;
};

} // namespace fairq

#endif // FAIRQ_HPP
