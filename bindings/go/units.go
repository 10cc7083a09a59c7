package fairq

import (
	"fmt"
	"math"
	"time"

	"fairq/internal/capi"
)

const (
	// Forever is a wait or a time without end.
	Forever time.Duration = math.MaxInt64
	// Unknown is an estimate that nobody can make yet.
	Unknown time.Duration = -1
	// Unbounded is a line that may be of any length; see [MaxQueue].
	Unbounded uint64 = math.MaxInt64
)

// millis is d in whole milliseconds, rounded up, so that a short time never becomes none.
func millis(d time.Duration, what string) (uint64, error) {
	switch {
	case d < 0:
		return 0, invalid(fmt.Sprintf("%s: %v means nothing; a time is 0 or more, fairq.Forever for no end", what, d))
	case d == Forever:
		return capi.Forever, nil
	}
	whole := uint64(d / time.Millisecond)
	if d%time.Millisecond != 0 {
		whole++
	}
	return whole, nil
}

// fromMillis is what the library says; for ever, and what exceeds a Duration, is Forever.
func fromMillis(ms uint64) time.Duration {
	if ms > uint64(Forever/time.Millisecond) {
		return Forever
	}
	return time.Duration(ms) * time.Millisecond
}

// estimate is what the library says, or Unknown where it does not know.
func estimate(ms uint64) time.Duration {
	if ms >= capi.Forever {
		return Unknown
	}
	return fromMillis(ms)
}
