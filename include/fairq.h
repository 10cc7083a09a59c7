/*
 * fairq: how many long-running requests run at once over a whole cluster, with a strict first-come-first-served line in
 * front. Made by cbindgen from src/ffi; do not edit.
 *
 * What holds for all functions, where they do not say otherwise:
 *
 * - Any thread may call any of them, at any time, with the same handles.
 * - A handle is a name, not an address. Freeing it twice, using it after it was freed, or while another thread frees it is
 *   safe, and answered by FQ_INVALID; objects may be freed in any order. NULL is answered by FQ_INVALID too, and freeing it
 *   does nothing.
 * - Functions that can fail return a status. The last parameter `err` may be NULL; otherwise it receives NULL, or, with any
 *   status but FQ_OK, an error with a message, which the caller frees with fq_error_free. Places for answers are emptied
 *   first.
 * - Each pointer is NULL, where that is allowed, or shows to what the function says, for as long as the call lasts.
 * - Strings in are UTF-8, by pointer and length, and copied. Strings out end with a zero byte and belong to their object.
 * - Times are milliseconds.
 * - Nothing ever calls back. What becomes of requests is polled from a queue, with a descriptor for event loops.
 * - A forked child gets FQ_FORKED for every handle of its parent's, and can neither use nor give back what these stand for;
 *   it may open a client of its own.
 */


#ifndef FAIRQ_H
#define FAIRQ_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define FQ_INIT_CAST_(type) static_cast<type>
#else
#define FQ_INIT_CAST_(type) (type)
#endif

/** A request of cost 1 that waits as long as the limiter says: `fq_request request = FQ_REQUEST_INIT;` */
#define FQ_REQUEST_INIT { FQ_INIT_CAST_(uint32_t)(sizeof(fq_request)), 0, FQ_DEFAULT, 1, NULL, 0 }

/** A place for `fq_limiter_status`: `fq_limiter_info info = FQ_LIMITER_INFO_INIT;` */
#define FQ_LIMITER_INFO_INIT \
    { FQ_INIT_CAST_(uint32_t)(sizeof(fq_limiter_info)), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }


/**
 * The version that this header is of.
 */
#define FQ_VERSION_MAJOR 0

/**
 * The version that this header is of.
 */
#define FQ_VERSION_MINOR 1

/**
 * The version that this header is of.
 */
#define FQ_VERSION_PATCH 0

/**
 * Milliseconds that never end: wait for ever. Also says "unbounded" and "not known" where a number is told.
 */
#define FQ_FOREVER 9223372036854775807

/**
 * In `fq_request.max_wait_ms`: wait as long as the limiter says.
 */
#define FQ_DEFAULT 9223372036854775806

/**
 * An option of a client, set when it is opened.
 */
#define FQ_SCOPE_CLIENT 0

/**
 * An option of a limiter, set when it is opened.
 */
#define FQ_SCOPE_LIMITER 1

/**
 * A setting that an operator may change while a limiter runs.
 */
#define FQ_SCOPE_CHANGE 2

/**
 * In `fq_request.flags`: report each new position in line as an event. For `fq_acquire_start`.
 */
#define FQ_REPORT_POSITION 1

/**
 * In `fq_request.flags`: report what happens to the permit as events. For `fq_acquire_start`.
 */
#define FQ_REPORT_PERMIT 2

/**
 * Held, and confirmed within the lease.
 */
#define FQ_PERMIT_STATE_VALID 0

/**
 * Held as far as is known, but the store has been silent for a lease: others may have the slot.
 */
#define FQ_PERMIT_STATE_UNCONFIRMED 1

/**
 * Lost; guarded work has to stop.
 */
#define FQ_PERMIT_STATE_LOST 2

/**
 * Given back.
 */
#define FQ_PERMIT_STATE_RELEASED 3

/**
 * The handle is none of a permit, or of a parent process.
 */
#define FQ_PERMIT_STATE_NONE 4

/**
 * The request has ended: with `status` FQ_OK and `permit`, or with another status and `error`.
 */
#define FQ_EVENT_DONE 0

/**
 * The request stands at `position` now. With the flag FQ_REPORT_POSITION.
 */
#define FQ_EVENT_POSITION 1

/**
 * The store has not confirmed the permit for a whole lease: others may have the slot. It may come back. With the flag
 * FQ_REPORT_PERMIT, as all that follow.
 */
#define FQ_EVENT_PERMIT_UNCONFIRMED 2

/**
 * The store has confirmed the permit again.
 */
#define FQ_EVENT_PERMIT_CONFIRMED 3

/**
 * The permit is lost for good, for the reason in `status` and `error`; guarded work has to stop.
 */
#define FQ_EVENT_PERMIT_LOST 4

/**
 * An open client: one instance of fairq, with a connection or two and a thread or two, however many limiters and
 * waiters it has.
 */
typedef struct fq_client fq_client;

/**
 * A queue of events. Any number of requests, limiters and clients may report to one, and any number of threads may poll it.
 */
typedef struct fq_completions fq_completions;

/**
 * Options for opening a client or a limiter, or for changing a limiter.
 */
typedef struct fq_config fq_config;

/**
 * Why a call or a request failed. Owned by whoever received it, who frees it with `fq_error_free`.
 */
typedef struct fq_error fq_error;

/**
 * A named limit with a line in front of it.
 */
typedef struct fq_limiter fq_limiter;

/**
 * A held slot of a limiter.
 */
typedef struct fq_permit fq_permit;

/**
 * One request on its way, to be cancelled or watched from any thread.
 */
typedef struct fq_ticket fq_ticket;

/**
 * What a call, or a request, came to. Values are only ever added.
 */
typedef int32_t fq_status;

/**
 * One option that there is. Its strings live for ever.
 */
typedef struct {
  /**
   * One of the `FQ_SCOPE_` constants.
   */
  int32_t scope;
  /**
   * Its key.
   */
  const char *key;
  /**
   * Its default, as it would be set; empty where that is nothing.
   */
  const char *default_value;
  /**
   * What it does.
   */
  const char *doc;
} fq_option;

/**
 * What is asked for. Begin with `FQ_REQUEST_INIT`.
 */
typedef struct {
  /**
   * `sizeof(fq_request)`.
   */
  uint32_t size;
  /**
   * `FQ_REPORT_` bits.
   */
  uint32_t flags;
  /**
   * How long to wait in line; 0: have it at once, or not at all; `FQ_FOREVER`; or `FQ_DEFAULT`, as the limiter says.
   */
  uint64_t max_wait_ms;
  /**
   * How much of the limit the permit takes; at least 1.
   */
  uint64_t cost;
  /**
   * What operators see in the lists of holders and waiters; up to 256 bytes of UTF-8. May be NULL.
   */
  const char *label;
  /**
   * The label's length in bytes.
   */
  size_t label_len;
} fq_request;

/**
 * How a limiter stands. Set `size` to `sizeof(fq_limiter_info)` before it is filled in.
 */
typedef struct {
  /**
   * `sizeof(fq_limiter_info)`.
   */
  uint32_t size;
  /**
   * 1 while an operator has paused it.
   */
  uint32_t paused;
  /**
   * How much cost may be held at once.
   */
  uint64_t limit;
  /**
   * The cost that is held.
   */
  uint64_t used;
  /**
   * Permits that are held.
   */
  uint64_t holders;
  /**
   * Requests in line.
   */
  uint64_t waiting;
  /**
   * How many may wait; `FQ_FOREVER` for no bound.
   */
  uint64_t max_queue;
  /**
   * How long a request waits that does not say so; or `FQ_FOREVER`.
   */
  uint64_t max_wait_ms;
  /**
   * How long the store believes in a process that has stopped talking.
   */
  uint64_t lease_ms;
  /**
   * How long a permit may be held; `FQ_FOREVER` for no bound.
   */
  uint64_t max_hold_ms;
  /**
   * Permits given since the limiter came to be.
   */
  uint64_t granted_total;
  /**
   * Live instances that use it.
   */
  uint64_t instances;
  /**
   * Changes whenever the store has lost state.
   */
  uint64_t epoch;
  /**
   * For how long nobody is admitted yet, after a loss of state; 0 in quiet times.
   */
  uint64_t grace_ms;
  /**
   * Mean time a permit is held; `FQ_FOREVER` while not known.
   */
  uint64_t typical_hold_ms;
  /**
   * How long a newcomer is likely to wait; `FQ_FOREVER` while not known.
   */
  uint64_t estimate_ms;
  /**
   * Cost that came back over the limit since the limiter came to be: after a loss of state everything is taken that was
   * held, also where others had been admitted in the meantime.
   */
  uint64_t overshoot_total;
} fq_limiter_info;

/**
 * Where a request stands in line.
 */
typedef struct {
  /**
   * 1 is next; 0: it does not wait in line.
   */
  uint64_t position;
  /**
   * How long it is likely to wait still; `FQ_FOREVER` while not known.
   */
  uint64_t estimate_ms;
} fq_position;

/**
 * Something that became of a request.
 */
typedef struct {
  /**
   * As given to `fq_acquire_start`.
   */
  uint64_t token;
  /**
   * One of the `FQ_EVENT_` constants.
   */
  int32_t kind;
  /**
   * FQ_OK, or why there is no permit (any more).
   */
  fq_status status;
  /**
   * The permit, which is the receiver's to give back with `fq_permit_free`; or NULL.
   */
  fq_permit *permit;
  /**
   * Why there is none, which is the receiver's to free with `fq_error_free`; or NULL.
   */
  fq_error *error;
  /**
   * Where the request stands in line; 1 is next; 0 in events of another kind.
   */
  uint64_t position;
  /**
   * How long it is likely to wait still; `FQ_FOREVER` while not known, and in events of another kind.
   */
  uint64_t estimate_ms;
} fq_event;

/**
 * It is done.
 */
#define FQ_OK 0

/**
 * The request waited as long as it was allowed to (with `max_wait_ms` 0: nothing was free).
 */
#define FQ_TIMED_OUT 1

/**
 * The request was cancelled.
 */
#define FQ_CANCELLED 2

/**
 * The client, or the completion queue, is closed or closing.
 */
#define FQ_CLOSED 3

/**
 * The line is as long as it may be.
 */
#define FQ_QUEUE_FULL 4

/**
 * The cost is above the limit: the request could never be granted.
 */
#define FQ_IMPOSSIBLE 5

/**
 * An operator took the place in line away.
 */
#define FQ_REVOKED 6

/**
 * The permit was lost; the message says why.
 */
#define FQ_PERMIT_LOST 7

/**
 * What it was about had ended before; nothing was done.
 */
#define FQ_STALE 8

/**
 * The store cannot be reached, or does not take commands now. Whatever was asked is safe to ask again.
 */
#define FQ_UNAVAILABLE 9

/**
 * An operator's order was sent, and its answer was lost: look whether it was carried out.
 */
#define FQ_UNKNOWN_OUTCOME 10

/**
 * The store has no memory for another ticket, or this process has as many as it may (`max_tickets`).
 */
#define FQ_OVERLOADED 11

/**
 * An argument means nothing; nothing was done.
 */
#define FQ_INVALID 12

/**
 * The client or the server is not set up right; trying again does not help.
 */
#define FQ_CONFIGURATION 13

/**
 * The server answered with something that fairq does not understand.
 */
#define FQ_SERVER 14

/**
 * The limiter does not exist, and the caller has not declared a limit for it.
 */
#define FQ_NO_SUCH_LIMITER 15

/**
 * The handle belongs to the parent process: a forked child opens a client of its own.
 */
#define FQ_FORKED 16

/**
 * A bug in fairq: it panicked, and the panic ended here.
 */
#define FQ_PANIC 17

/**
 * Another fault inside of fairq; the message says which.
 */
#define FQ_INTERNAL 18

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the library, such as `0.1.0`. Never NULL; lives for ever. Does not block.
 */
const char *fq_version(void);

/**
 * The name of a status, for logs: `timed out`, `queue full` … Never NULL; lives for ever. Does not block.
 */
const char *fq_status_name(fq_status status);

/**
 * The status of the failure; `FQ_OK` for NULL, `FQ_INVALID` for what is no error. Does not block.
 */
fq_status fq_error_status(const fq_error *error);

/**
 * What went wrong and what to do, in a sentence; never a password. Belongs to the error: it may be read until
 * `fq_error_free`. Empty for NULL, and for what is no error. Does not block.
 */
const char *fq_error_message(const fq_error *error);

/**
 * 1 when the same request may succeed later without anything being changed, else 0. Does not block.
 */
int32_t fq_error_retryable(const fq_error *error);

/**
 * After how many milliseconds to try again; `FQ_FOREVER` where that is not known. Does not block.
 */
uint64_t fq_error_retry_after_ms(const fq_error *error);

/**
 * Frees an error, and its message with it. NULL, and what is freed already, is left alone. Does not block.
 */
void fq_error_free(fq_error *error);

/**
 * Makes an empty set of options in `*config`, which the caller frees with `fq_config_free`. Does not block.
 *
 * FQ_OK, FQ_INVALID.
 */
fq_status fq_config_new(fq_config **config,
                        fq_error **err);

/**
 * Sets an option. Durations are written `500ms`, `30s`, `2h`; see `fq_options` for all there are. A key of the wrong kind
 * (a limiter's, for a client) is refused when something is opened with it. Does not block.
 *
 * FQ_OK; FQ_INVALID for an unknown key, or a value that means nothing.
 */
fq_status fq_config_set(fq_config *config,
                        const char *key,
                        size_t key_len,
                        const char *value,
                        size_t value_len,
                        fq_error **err);

/**
 * Frees a set of options; what was opened with it stays as it is. NULL, and what is freed already, is left alone. Does not block.
 */
void fq_config_free(fq_config *config);

/**
 * All options that there are, `*count` of them. Lives for ever. Does not block.
 */
const fq_option *fq_options(size_t *count);

/**
 * Opens a client in `*client`, which the caller frees with `fq_client_free`. `url`: `memory:` (or an empty string) for
 * this process alone; `redis://HOST`, `redis-cluster://HOST:PORT,HOST:PORT`, `redis-sentinel://HOST:PORT,HOST:PORT/SERVICE`,
 * each also with `rediss` (TLS), or `unix:///path/to/socket` for a cluster of processes. `config` may be NULL. Connects with the first request. Does not block. The first open of a process looks at the environment variable
 * `FAIRQ_LOG` (`warn`, `info` …), which has the library tell what it has to say on standard error.
 *
 * FQ_OK, FQ_INVALID, FQ_FORKED, FQ_INTERNAL.
 */
fq_status fq_client_open(const char *url,
                         size_t url_len,
                         const fq_config *config,
                         fq_client **client,
                         fq_error **err);

/**
 * Connects now, and looks whether the server is fit: its version, the rights of the user. Blocks for at most the
 * options `connect_timeout` and `io_timeout`.
 *
 * FQ_OK, FQ_UNAVAILABLE, FQ_CONFIGURATION, FQ_SERVER, FQ_CLOSED, FQ_INVALID, FQ_FORKED.
 */
fq_status fq_client_check(const fq_client *client,
                          fq_error **err);

/**
 * Closes a client: every waiter ends with FQ_CLOSED; what is held is renewed until it is given back or `drain_ms` is
 * over, then taken back; all its threads end. Blocks for `drain_ms` and a few seconds at most. Its handles stay valid until
 * they are freed, and answer FQ_CLOSED. Safe to call more than once, from any thread.
 *
 * FQ_OK, FQ_INVALID, FQ_FORKED.
 */
fq_status fq_client_close(const fq_client *client,
                          uint64_t drain_ms,
                          fq_error **err);

/**
 * Frees the handle. The client itself goes on for its limiters, tickets and permits, and for the requests that wait; when
 * the last of them is gone it closes in the background. NULL, and what is freed already, is left alone. Does not block.
 */
void fq_client_free(fq_client *client);

/**
 * Opens a limiter in `*limiter`, which the caller frees with `fq_limiter_free`. `name`: 1 to 256 bytes of UTF-8.
 * `config`: NULL (or without the option `limit`) attaches to a limiter that others have declared. All that open one name on one
 * client have the same limiter. Does not block.
 *
 * FQ_OK, FQ_INVALID, FQ_CLOSED, FQ_FORKED.
 */
fq_status fq_limiter_open(const fq_client *client,
                          const char *name,
                          size_t name_len,
                          const fq_config *config,
                          fq_limiter **limiter,
                          fq_error **err);

/**
 * Waits in line for a permit, and puts it into `*permit`, which the caller gives back with `fq_permit_free`. `request` may
 * be NULL: cost 1, and the limiter's own wait. `ticket` may be NULL; one from `fq_ticket_new` lets other threads cancel or
 * watch, and serves for one request. Blocks until the request has ended: never longer than its wait and a little, whatever
 * the store does.
 *
 * FQ_OK, FQ_TIMED_OUT, FQ_CANCELLED, FQ_CLOSED, FQ_QUEUE_FULL, FQ_IMPOSSIBLE, FQ_REVOKED, FQ_UNAVAILABLE, FQ_OVERLOADED,
 * FQ_INVALID, FQ_CONFIGURATION, FQ_SERVER, FQ_NO_SUCH_LIMITER, FQ_FORKED.
 */
fq_status fq_acquire(const fq_limiter *limiter,
                     const fq_request *request,
                     const fq_ticket *ticket,
                     fq_permit **permit,
                     fq_error **err);

/**
 * Starts a request and returns; it does not wait for the network. FQ_OK means exactly one event of kind FQ_EVENT_DONE with
 * this token in `completions`, whatever happens, unless the queue itself is freed. `request` and `ticket` as for `fq_acquire`.
 *
 * FQ_OK, FQ_INVALID, FQ_FORKED, FQ_INTERNAL. With any but FQ_OK there is no event.
 */
fq_status fq_acquire_start(const fq_limiter *limiter,
                           const fq_request *request,
                           const fq_ticket *ticket,
                           const fq_completions *completions,
                           uint64_t token,
                           fq_error **err);

/**
 * Asks how the limiter stands. Blocks for a round trip.
 *
 * FQ_OK, FQ_NO_SUCH_LIMITER, FQ_UNAVAILABLE, FQ_CLOSED, FQ_CONFIGURATION, FQ_INVALID, FQ_FORKED.
 */
fq_status fq_limiter_status(const fq_limiter *limiter, fq_limiter_info *info, fq_error **err);

/**
 * Changes the limit while the limiter runs, as its operator. Lowering it revokes nothing; nobody is admitted until use is
 * below it. Stands above what processes declare, until it is reset. Blocks for two round trips.
 *
 * FQ_OK, FQ_INVALID, FQ_UNKNOWN_OUTCOME, and as `fq_limiter_status`.
 */
fq_status fq_limiter_set_limit(const fq_limiter *limiter,
                               uint64_t limit,
                               fq_error **err);

/**
 * Changes settings while the limiter runs, as its operator: the options of scope FQ_SCOPE_CHANGE. Blocks for two round
 * trips.
 *
 * FQ_OK, FQ_INVALID, FQ_UNKNOWN_OUTCOME, and as `fq_limiter_status`.
 */
fq_status fq_limiter_configure(const fq_limiter *limiter,
                               const fq_config *changes,
                               fq_error **err);

/**
 * Frees the handle; requests that wait, and permits, are not touched. NULL, and what is freed already, is left alone. Does
 * not block.
 */
void fq_limiter_free(fq_limiter *limiter);

/**
 * Makes a ticket in `*ticket` for one request, which the caller frees with `fq_ticket_free`. Cancelling it is sticky: a
 * request that is started with it afterwards ends as cancelled. Does not block.
 *
 * FQ_OK, FQ_INVALID, FQ_FORKED.
 */
fq_status fq_ticket_new(const fq_limiter *limiter,
                        fq_ticket **ticket,
                        fq_error **err);

/**
 * Cancels the request, also one that is not started yet, or waits in another thread. FQ_OK: it is cancelled and will not be
 * granted. FQ_STALE: it had ended otherwise. Does not block; the store is told in the background.
 *
 * FQ_OK, FQ_STALE, FQ_INVALID, FQ_FORKED.
 */
fq_status fq_cancel(const fq_ticket *ticket,
                    fq_error **err);

/**
 * Asks the store where the request stands. Blocks for a round trip.
 *
 * FQ_OK, and as `fq_limiter_status`.
 */
fq_status fq_ticket_position(const fq_ticket *ticket, fq_position *position, fq_error **err);

/**
 * Where the request stood when the store last told. Does not block.
 *
 * FQ_OK, FQ_INVALID, FQ_FORKED.
 */
fq_status fq_ticket_last_position(const fq_ticket *ticket, fq_position *position, fq_error **err);

/**
 * Frees the handle; the request goes on. NULL, and what is freed already, is left alone. Does not block.
 */
void fq_ticket_free(fq_ticket *ticket);

/**
 * Gives the slot back, and waits for the store's answer, at most about twice the option `io_timeout`; after that the release
 * goes on in the background. The handle stays, to be freed; a second release answers FQ_STALE.
 *
 * FQ_OK; FQ_STALE and FQ_PERMIT_LOST when it had been given or taken back before; FQ_UNAVAILABLE when there was no answer in
 * time; FQ_CLOSED, FQ_INVALID, FQ_FORKED.
 */
fq_status fq_release(const fq_permit *permit,
                     fq_error **err);

/**
 * Gives the slot back in the background, if that has not been done, and frees the handle. NULL, and what is freed already,
 * is left alone. Does not block.
 */
void fq_permit_free(fq_permit *permit);

/**
 * A number that grows with every grant of the limiter, for the guarded resource to refuse whoever comes with a smaller one.
 * 0 for a permit admitted locally while the store was away, and for what is no permit. Does not block.
 */
uint64_t fq_permit_fence(const fq_permit *permit);

/**
 * The request's place in line, given once at its arrival: microseconds of the store's clock. 0 for what is no permit.
 * Does not block.
 */
uint64_t fq_permit_order(const fq_permit *permit);

/**
 * How much of the limit it takes; 0 for what is no permit. Does not block.
 */
uint64_t fq_permit_cost(const fq_permit *permit);

/**
 * 1 while nobody else can have the slot: it was neither lost nor given back, and the store has confirmed it within the
 * lease. Else 0. A local, conservative judgement; does not block.
 */
int32_t fq_permit_is_valid(const fq_permit *permit);

/**
 * How it stands: one of the `FQ_PERMIT_STATE_` constants. A local, conservative judgement; does not block.
 */
int32_t fq_permit_state(const fq_permit *permit);

/**
 * Makes an empty queue in `*completions`, which the caller frees with `fq_completions_free`. Does not block.
 *
 * FQ_OK, FQ_INVALID.
 */
fq_status fq_completions_new(fq_completions **completions,
                             fq_error **err);

/**
 * From now on, writes the eight bytes of the number 1 to `fd` (an eventfd, or the write end of a pipe) when there is something
 * to poll for, so that an event loop can wait for it: once, and then not again before the next poll. On a wake-up read `fd`
 * first (of a pipe, all that is in it), then poll until nothing is left. The descriptor stays the caller's: it has to stay
 * open, and its pipe's read end too, until this was called with -1, or the queue is freed; after either returns it is not
 * written to any more. Does not block.
 *
 * FQ_OK, FQ_INVALID, FQ_FORKED.
 */
fq_status fq_completions_set_fd(const fq_completions *completions,
                                int32_t fd,
                                fq_error **err);

/**
 * Takes up to `capacity` events into `events`, and their number into `*count`. Blocks up to `timeout_ms` for the first (0: not
 * at all; FQ_FOREVER) and not for more; none in time is FQ_OK with a count of 0.
 *
 * FQ_OK; FQ_CLOSED when the queue was freed meanwhile; FQ_INVALID, FQ_FORKED.
 */
fq_status fq_completions_poll(const fq_completions *completions,
                              fq_event *events,
                              size_t capacity,
                              uint64_t timeout_ms,
                              size_t *count,
                              fq_error **err);

/**
 * Frees a queue. Requests that would have reported to it are cancelled, permits that nobody has taken are given back, a
 * thread that polls returns with FQ_CLOSED. NULL, and what is freed already, is left alone. Does not block.
 */
void fq_completions_free(fq_completions *completions);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* FAIRQ_H */
