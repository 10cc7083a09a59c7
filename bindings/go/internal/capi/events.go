package capi

// #include "shim.h"
import "C"

import "unsafe"

// Event is what became of a request; as fq_event, with fence and order of a new permit. It has the layout of the shim's
// fqgo_event, so that the library's answers are written where Go reads them.
type Event struct {
	Token      uint64
	Permit     Handle
	Err        Handle
	Position   uint64
	EstimateMS uint64
	Fence      uint64
	Order      uint64
	Kind       int32
	Status     int32
}

// These do not compile where the two layouts differ.
var (
	_ [unsafe.Sizeof(Event{})]struct{}                               = [C.sizeof_fqgo_event]struct{}{}
	_ [unsafe.Offsetof(Event{}.Fence)]struct{}                       = [unsafe.Offsetof(C.fqgo_event{}.fence)]struct{}{}
	_ [unsafe.Offsetof(Event{}.Status)]struct{}                      = [unsafe.Offsetof(C.fqgo_event{}.status)]struct{}{}
	_ [unsafe.Sizeof(Handle(0)) - unsafe.Sizeof(C.uintptr_t(0))]byte = [0]byte{}
)

// MaxEvents is how many events one call can take.
const MaxEvents = C.FQGO_BATCH

// NewCompletions makes an empty queue.
func NewCompletions() (Handle, *Failure) { return handle(C.fqgo_completions_new()) }

// FreeCompletions frees a queue; who polls it returns.
func FreeCompletions(queue Handle) { C.fqgo_completions_free(C.uintptr_t(queue)) }

// Poll takes what there is, up to the length of events, which must not be 0. It waits up to timeoutMS for the first.
// Not ok: the queue was freed. Blocks.
func Poll(queue Handle, timeoutMS uint64, events []Event) (count int, ok bool) {
	taken := C.fqgo_poll(C.uintptr_t(queue), C.uint64_t(timeoutMS), where(events), C.uint32_t(len(events)))
	return int(taken.count), taken.status == OK
}

// Request is what is asked for.
type Request struct {
	Flags     uint32
	MaxWaitMS uint64
	Cost      uint64
	Label     string
}

// Start starts a request, and takes into events what is told at once, of whatever requests. The ticket may be 0; with
// own the request gets one of its own, which is returned, unless it is among the events that the request has ended.
// Does not block.
func Start(limiter, queue Handle, token uint64, asked *Request, ticket Handle, own bool, events []Event) (
	count int, ownTicket Handle, failure *Failure,
) {
	wantsOwn := C.int(0)
	if own {
		wantsOwn = 1
	}
	started := C.fqgo_acquire_start(C.uintptr_t(limiter), C.uintptr_t(queue), C.uint64_t(token), C.uint32_t(asked.Flags),
		C.uint64_t(asked.MaxWaitMS), C.uint64_t(asked.Cost), asked.Label, C.uintptr_t(ticket), wantsOwn,
		where(events), C.uint32_t(len(events)))
	if started.status != OK {
		return 0, 0, TakeFailure(int32(started.status), Handle(started.err))
	}
	return int(started.count), Handle(started.ticket), nil
}

func where(events []Event) *C.fqgo_event { return (*C.fqgo_event)(unsafe.Pointer(&events[0])) }
