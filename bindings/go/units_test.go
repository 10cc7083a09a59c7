package fairq

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"fairq/internal/capi"
)

// S6
func TestTimesAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]uint64{
		0: 0, 1: 1, 400 * time.Microsecond: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Hour: 3_600_000,
		math.MaxInt64 - 1: 9_223_372_036_855, Forever: capi.Forever,
	} {
		if got, err := millis(d, "wait"); got != want || err != nil {
			t.Errorf("%v: %d, %v", d, got, err)
		}
	}
	for _, d := range []time.Duration{-1, math.MinInt64} {
		if _, err := millis(d, "wait"); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", d, err)
		}
	}
}

func TestTimesOfTheLibrary(t *testing.T) {
	for ms, want := range map[uint64]time.Duration{
		0: 0, 1500: 1500 * time.Millisecond, capi.Forever: Forever, math.MaxUint64: Forever, 9_223_372_036_855: Forever,
	} {
		if got := fromMillis(ms); got != want {
			t.Errorf("%d: %v", ms, got)
		}
	}
	if got := estimate(capi.Forever); got != Unknown {
		t.Error(got)
	}
	if got := estimate(20); got != 20*time.Millisecond {
		t.Error(got)
	}
}

func TestErrorsSayWhatTheyAre(t *testing.T) {
	err := failed(&capi.Failure{Status: int32(ErrQueueFull), Message: "full", Retryable: true, RetryAfterMS: 1500})
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, ErrQueueFull) || errors.Is(err, ErrTimedOut) || e.Timeout() {
		t.Error(err)
	}
	if after, known := e.RetryAfter(); after != 1500*time.Millisecond || !known || err.Error() != "fairq: full" {
		t.Error(err)
	}
	err = failed(&capi.Failure{Status: int32(ErrTimedOut), RetryAfterMS: capi.Forever})
	if !errors.As(err, &e) || !e.Timeout() || err.Error() != "fairq: timed out" {
		t.Error(err)
	}
	if _, known := e.RetryAfter(); known {
		t.Error("nobody knows")
	}
	if failed(nil) != nil {
		t.Error("no failure is no error")
	}
	for state, word := range map[PermitState]string{
		PermitValid: "valid", PermitUnconfirmed: "unconfirmed", PermitLost: "lost", PermitReleased: "released",
	} {
		if state.String() != word {
			t.Errorf("%d is %s", state, state)
		}
	}
}

// A message longer than most is read whole.
func TestALongMessage(t *testing.T) {
	name := string(make([]byte, 200)) // each shown as \0
	client, err := Open("memory:long")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	limiter, err := client.Limiter(name)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = limiter.TryAcquire(context.Background())
	if !errors.Is(err, ErrNoSuchLimiter) || len(err.Error()) < 400 || err.Error()[len(err.Error())-len("first"):] != "first" {
		t.Error(err)
	}
}
