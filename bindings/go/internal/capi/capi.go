// Package capi is the C ABI of fairq for Go: the only package that knows that C exists.
//
// Nothing here decides anything. A Handle is a name, never an address: one that is old, or freed by another goroutine
// meanwhile, is refused by the library and harms nobody. Functions block where include/fairq.h says so, and then they
// occupy an operating system thread each; who calls them has to see that there are not too many.
package capi

// #include "shim.h"
import "C"

import "unsafe"

// Handle names an object of the library; 0 is none.
type Handle uintptr

// What include/fairq.h defines, for the packages that do not see it. A test compares it with the header.
const (
	Forever = 1<<63 - 1
	Default = 1<<63 - 2

	ReportPosition = 1
	ReportPermit   = 2

	EventDone              = 0
	EventPosition          = 1
	EventPermitUnconfirmed = 2
	EventPermitConfirmed   = 3
	EventPermitLost        = 4

	PermitValid       = 0
	PermitUnconfirmed = 1
	PermitLost        = 2
	PermitReleased    = 3
	PermitNone        = 4

	ScopeClient  = 0
	ScopeLimiter = 1
	ScopeChange  = 2

	OK = 0
)

// Version is the version of the library that the program runs with.
func Version() string { return C.GoString(C.fq_version()) }

// HeaderVersion is the version of the header that this package was compiled with: major, minor, patch.
func HeaderVersion() [3]int {
	return [3]int{C.FQ_VERSION_MAJOR, C.FQ_VERSION_MINOR, C.FQ_VERSION_PATCH}
}

// StatusName is the library's name for a status, for logs.
func StatusName(status int32) string { return C.GoString(C.fq_status_name(C.fq_status(status))) }

// Failure is why a call or a request failed.
type Failure struct {
	Status       int32
	Message      string
	Retryable    bool
	RetryAfterMS uint64
}

// TakeFailure reads an error of the library, and frees it. There may be none, if the library had no room for it.
func TakeFailure(status int32, err Handle) *Failure {
	message := make([]byte, 256)
	for {
		f := C.fqgo_error_take(C.uintptr_t(err), (*C.char)(unsafe.Pointer(&message[0])), C.size_t(len(message)))
		if length := int(f.length); length > len(message) {
			message = make([]byte, length)
			continue
		}
		return &Failure{
			Status:       status,
			Message:      string(message[:f.length]),
			Retryable:    f.retryable != 0,
			RetryAfterMS: uint64(f.retry_after_ms),
		}
	}
}

// result is nil where all went well.
func result(r C.fqgo_result) *Failure {
	if r.status == OK {
		return nil
	}
	return TakeFailure(int32(r.status), Handle(r.err))
}

func handle(r C.fqgo_result) (Handle, *Failure) { return Handle(r.value), result(r) }

// NewConfig makes an empty set of options.
func NewConfig() (Handle, *Failure) { return handle(C.fqgo_config_new()) }

// SetConfig sets an option.
func SetConfig(config Handle, key, value string) *Failure {
	return result(C.fqgo_config_set(C.uintptr_t(config), key, value))
}

// FreeConfig frees a set of options.
func FreeConfig(config Handle) { C.fqgo_config_free(C.uintptr_t(config)) }

// Option is an option that there is.
type Option struct {
	Scope             int32
	Key, Default, Doc string
}

// Options are all options that there are.
func Options() []Option {
	var count C.size_t
	first := C.fq_options(&count)
	options := make([]Option, 0, int(count))
	for _, option := range unsafe.Slice(first, int(count)) {
		options = append(options, Option{
			Scope:   int32(option.scope),
			Key:     C.GoString(option.key),
			Default: C.GoString(option.default_value),
			Doc:     C.GoString(option.doc),
		})
	}
	return options
}

// OpenClient opens a client. Does not block.
func OpenClient(url string, config Handle) (Handle, *Failure) {
	return handle(C.fqgo_client_open(url, C.uintptr_t(config)))
}

// CheckClient connects and looks whether the server is fit. Blocks.
func CheckClient(client Handle) *Failure { return result(C.fqgo_client_check(C.uintptr_t(client))) }

// CloseClient closes a client. Blocks.
func CloseClient(client Handle, drainMS uint64) *Failure {
	return result(C.fqgo_client_close(C.uintptr_t(client), C.uint64_t(drainMS)))
}

// FreeClient frees the handle.
func FreeClient(client Handle) { C.fqgo_client_free(C.uintptr_t(client)) }

// OpenLimiter opens a limiter. Does not block.
func OpenLimiter(client Handle, name string, config Handle) (Handle, *Failure) {
	return handle(C.fqgo_limiter_open(C.uintptr_t(client), name, C.uintptr_t(config)))
}

// Info is how a limiter stands; as fq_limiter_info, without its size.
type Info struct {
	Paused                                  bool
	Limit, Used, Holders, Waiting, MaxQueue uint64
	MaxWaitMS, LeaseMS, MaxHoldMS           uint64
	GrantedTotal, Instances, Epoch          uint64
	GraceMS, TypicalHoldMS, EstimateMS      uint64
	OvershootTotal                          uint64
}

// LimiterStatus asks how a limiter stands. Blocks.
func LimiterStatus(limiter Handle) (Info, *Failure) {
	var i C.fq_limiter_info
	if failure := result(C.fqgo_limiter_status(C.uintptr_t(limiter), &i)); failure != nil {
		return Info{}, failure
	}
	return Info{
		Paused: i.paused != 0,
		Limit:  uint64(i.limit), Used: uint64(i.used), Holders: uint64(i.holders), Waiting: uint64(i.waiting),
		MaxQueue: uint64(i.max_queue), MaxWaitMS: uint64(i.max_wait_ms), LeaseMS: uint64(i.lease_ms),
		MaxHoldMS: uint64(i.max_hold_ms), GrantedTotal: uint64(i.granted_total), Instances: uint64(i.instances),
		Epoch: uint64(i.epoch), GraceMS: uint64(i.grace_ms), TypicalHoldMS: uint64(i.typical_hold_ms),
		EstimateMS: uint64(i.estimate_ms), OvershootTotal: uint64(i.overshoot_total),
	}, nil
}

// SetLimit changes the limit. Blocks.
func SetLimit(limiter Handle, limit uint64) *Failure {
	return result(C.fqgo_limiter_set_limit(C.uintptr_t(limiter), C.uint64_t(limit)))
}

// Configure changes settings. Blocks.
func Configure(limiter, changes Handle) *Failure {
	return result(C.fqgo_limiter_configure(C.uintptr_t(limiter), C.uintptr_t(changes)))
}

// FreeLimiter frees the handle.
func FreeLimiter(limiter Handle) { C.fqgo_limiter_free(C.uintptr_t(limiter)) }

// NewTicket makes a ticket for one request. Does not block.
func NewTicket(limiter Handle) (Handle, *Failure) {
	return handle(C.fqgo_ticket_new(C.uintptr_t(limiter)))
}

// Cancel cancels a request. Does not block.
func Cancel(ticket Handle) *Failure { return result(C.fqgo_cancel(C.uintptr_t(ticket))) }

// Position is where a request stands in line; 0: it does not wait in line.
type Position struct{ Position, EstimateMS uint64 }

// TicketPosition asks the store where a request stands. Blocks.
func TicketPosition(ticket Handle) (Position, *Failure) {
	var p C.fq_position
	failure := result(C.fqgo_ticket_position(C.uintptr_t(ticket), &p))
	return Position{uint64(p.position), uint64(p.estimate_ms)}, failure
}

// TicketLastPosition is where a request stood when the store last told. Does not block.
func TicketLastPosition(ticket Handle) (Position, *Failure) {
	var p C.fq_position
	failure := result(C.fqgo_ticket_last_position(C.uintptr_t(ticket), &p))
	return Position{uint64(p.position), uint64(p.estimate_ms)}, failure
}

// FreeTicket frees the handle; the request goes on.
func FreeTicket(ticket Handle) { C.fqgo_ticket_free(C.uintptr_t(ticket)) }

// Release gives a permit back, waits for the store's answer, and frees the handle. Blocks.
func Release(permit Handle) *Failure { return result(C.fqgo_release(C.uintptr_t(permit))) }

// FreePermit gives a permit back in the background, and frees the handle. It returns how the permit stood before. Does
// not block.
func FreePermit(permit Handle) int32 { return int32(C.fqgo_permit_free(C.uintptr_t(permit))) }

// PermitState is how a permit stands. Does not block.
func PermitState(permit Handle) int32 { return int32(C.fqgo_permit_state(C.uintptr_t(permit))) }

// PermitIsValid is whether nobody else can have the slot. Does not block.
func PermitIsValid(permit Handle) bool { return C.fqgo_permit_is_valid(C.uintptr_t(permit)) != 0 }
