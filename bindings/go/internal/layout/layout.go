// Package layout tells the structs and constants of include/fairq.h as cgo sees them, for a test to compare with the
// table that all bindings are held against. Tests cannot use C themselves.
package layout

// #cgo pkg-config: fairq
// #include <fairq.h>
import "C"

import "reflect"

// Structs are the structs by their C names; their fields have C's names, too.
func Structs() map[string]reflect.Type {
	return map[string]reflect.Type{
		"fq_option":       reflect.TypeOf(C.fq_option{}),
		"fq_request":      reflect.TypeOf(C.fq_request{}),
		"fq_limiter_info": reflect.TypeOf(C.fq_limiter_info{}),
		"fq_position":     reflect.TypeOf(C.fq_position{}),
		"fq_event":        reflect.TypeOf(C.fq_event{}),
	}
}

// Constants are the constants by their C names.
func Constants() map[string]uint64 {
	return map[string]uint64{
		"FQ_FOREVER": C.FQ_FOREVER,
		"FQ_DEFAULT": C.FQ_DEFAULT,

		"FQ_SCOPE_CLIENT":  C.FQ_SCOPE_CLIENT,
		"FQ_SCOPE_LIMITER": C.FQ_SCOPE_LIMITER,
		"FQ_SCOPE_CHANGE":  C.FQ_SCOPE_CHANGE,

		"FQ_REPORT_POSITION": C.FQ_REPORT_POSITION,
		"FQ_REPORT_PERMIT":   C.FQ_REPORT_PERMIT,

		"FQ_PERMIT_STATE_VALID":       C.FQ_PERMIT_STATE_VALID,
		"FQ_PERMIT_STATE_UNCONFIRMED": C.FQ_PERMIT_STATE_UNCONFIRMED,
		"FQ_PERMIT_STATE_LOST":        C.FQ_PERMIT_STATE_LOST,
		"FQ_PERMIT_STATE_RELEASED":    C.FQ_PERMIT_STATE_RELEASED,
		"FQ_PERMIT_STATE_NONE":        C.FQ_PERMIT_STATE_NONE,

		"FQ_EVENT_DONE":               C.FQ_EVENT_DONE,
		"FQ_EVENT_POSITION":           C.FQ_EVENT_POSITION,
		"FQ_EVENT_PERMIT_UNCONFIRMED": C.FQ_EVENT_PERMIT_UNCONFIRMED,
		"FQ_EVENT_PERMIT_CONFIRMED":   C.FQ_EVENT_PERMIT_CONFIRMED,
		"FQ_EVENT_PERMIT_LOST":        C.FQ_EVENT_PERMIT_LOST,

		"FQ_OK":              C.FQ_OK,
		"FQ_TIMED_OUT":       C.FQ_TIMED_OUT,
		"FQ_CANCELLED":       C.FQ_CANCELLED,
		"FQ_CLOSED":          C.FQ_CLOSED,
		"FQ_QUEUE_FULL":      C.FQ_QUEUE_FULL,
		"FQ_IMPOSSIBLE":      C.FQ_IMPOSSIBLE,
		"FQ_REVOKED":         C.FQ_REVOKED,
		"FQ_PERMIT_LOST":     C.FQ_PERMIT_LOST,
		"FQ_STALE":           C.FQ_STALE,
		"FQ_UNAVAILABLE":     C.FQ_UNAVAILABLE,
		"FQ_UNKNOWN_OUTCOME": C.FQ_UNKNOWN_OUTCOME,
		"FQ_OVERLOADED":      C.FQ_OVERLOADED,
		"FQ_INVALID":         C.FQ_INVALID,
		"FQ_CONFIGURATION":   C.FQ_CONFIGURATION,
		"FQ_SERVER":          C.FQ_SERVER,
		"FQ_NO_SUCH_LIMITER": C.FQ_NO_SUCH_LIMITER,
		"FQ_FORKED":          C.FQ_FORKED,
		"FQ_PANIC":           C.FQ_PANIC,
		"FQ_INTERNAL":        C.FQ_INTERNAL,
	}
}
