package fairq

import (
	"time"

	"fairq/internal/capi"
)

// StatusCode is what a call, or a request, came to. It is an error, so that the constants can be what errors.Is looks
// for. Values are only ever added.
type StatusCode int32

// What can go wrong: errors.Is(err, fairq.ErrQueueFull).
const (
	// ErrTimedOut: the request waited as long as it was allowed to (with MaxWait(0): nothing was free).
	ErrTimedOut StatusCode = 1
	// ErrCancelled: the request was cancelled by its [Ticket]. A context that ends is reported as its own error.
	ErrCancelled StatusCode = 2
	// ErrClosed: the client is closed or closing.
	ErrClosed StatusCode = 3
	// ErrQueueFull: the line is as long as it may be. RetryAfter says when to come back, where that is known.
	ErrQueueFull StatusCode = 4
	// ErrImpossible: the cost is above the limit, so the request could never be granted.
	ErrImpossible StatusCode = 5
	// ErrRevoked: an operator took the place in line away.
	ErrRevoked StatusCode = 6
	// ErrPermitLost: the permit was lost; the message says why.
	ErrPermitLost StatusCode = 7
	// ErrStale: what it was about had ended before; nothing was done.
	ErrStale StatusCode = 8
	// ErrUnavailable: the store cannot be reached, or does not take commands now. Whatever was asked is safe to ask
	// again.
	ErrUnavailable StatusCode = 9
	// ErrUnknownOutcome: an operator's order was sent, and its answer was lost: look whether it was carried out.
	ErrUnknownOutcome StatusCode = 10
	// ErrOverloaded: the store has no memory for another request, or this process has as many as it may ([MaxTickets]).
	ErrOverloaded StatusCode = 11
	// ErrInvalid: an argument means nothing; nothing was done.
	ErrInvalid StatusCode = 12
	// ErrConfiguration: the client or the server is not set up right; trying again does not help.
	ErrConfiguration StatusCode = 13
	// ErrServer: the server answered with something that fairq does not understand.
	ErrServer StatusCode = 14
	// ErrNoSuchLimiter: the limiter does not exist, and nobody has declared a limit for it.
	ErrNoSuchLimiter StatusCode = 15
	// ErrForked: the process is a fork of the one that opened the client. Go programs do not fork without exec.
	ErrForked StatusCode = 16
	// ErrPanic: a bug in fairq; it panicked, and the panic ended at the border to Go.
	ErrPanic StatusCode = 17
	// ErrInternal: another fault inside of fairq; the message says which.
	ErrInternal StatusCode = 18
)

// String is the status in words: "queue full".
func (s StatusCode) String() string { return capi.StatusName(int32(s)) }

// Error is the status in words, as an error has them: "fairq: queue full".
func (s StatusCode) Error() string { return "fairq: " + s.String() }

// Timeout is true for ErrTimedOut, as net.Error has it.
func (s StatusCode) Timeout() bool { return s == ErrTimedOut }

// Error is why a request ended without a permit, or a call without a result. It is immutable.
type Error struct {
	// Status is what errors.Is compares.
	Status StatusCode
	// Message says what went wrong and what to do, in a sentence; never a password.
	Message string
	// Retryable: the same request may succeed later without anything being changed.
	Retryable bool

	retryAfter time.Duration
	known      bool
}

// Error is the message.
func (e *Error) Error() string { return "fairq: " + e.Message }

// Unwrap is the status, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Status }

// Timeout is true for ErrTimedOut, as net.Error has it.
func (e *Error) Timeout() bool { return e.Status.Timeout() }

// RetryAfter is after how long to try again; not ok where that is not known.
func (e *Error) RetryAfter() (after time.Duration, ok bool) { return e.retryAfter, e.known }

func newError(failure *capi.Failure) *Error {
	e := &Error{Status: StatusCode(failure.Status), Message: failure.Message, Retryable: failure.Retryable}
	if e.Message == "" {
		e.Message = e.Status.String() // the library had no room for the error itself
	}
	if failure.RetryAfterMS < capi.Forever {
		e.retryAfter, e.known = fromMillis(failure.RetryAfterMS), true
	}
	return e
}

// failed makes an error of a failure; not a nil *Error in an error, which is not nil.
func failed(failure *capi.Failure) error {
	if failure == nil {
		return nil
	}
	return newError(failure)
}

func invalid(message string) *Error { return &Error{Status: ErrInvalid, Message: message} }

func closedError() *Error { return &Error{Status: ErrClosed, Message: "the client is closed"} }
