package fairq

import (
	"context"
	"runtime"
	"time"

	"fairq/internal/capi"
)

// Limiter is a named limit with a line in front of it; from [Client.Limiter]. Any goroutine may use it. It needs no
// closing.
type Limiter struct {
	client *Client // which has to stay as long as its limiters
	handle capi.Handle
	name   string
}

func (l *Limiter) free() { capi.FreeLimiter(l.handle) }

// Name is its name.
func (l *Limiter) Name() string { return l.name }

// Status is how a limiter stands. Times without end are [Forever].
type Status struct {
	// Name is the limiter's name.
	Name string
	// Limit is how much cost may be held at once.
	Limit uint64
	// Used is the cost that is held.
	Used uint64
	// Holders are the permits that are held.
	Holders uint64
	// Waiting are the requests in line.
	Waiting uint64
	// Paused is whether an operator has paused it.
	Paused bool
	// MaxQueue is how many may wait, or [Unbounded].
	MaxQueue uint64
	// MaxWait is how long a request waits that does not say so.
	MaxWait time.Duration
	// Lease is how long the store believes in a process that has stopped talking.
	Lease time.Duration
	// MaxHold is how long a permit may be held.
	MaxHold time.Duration
	// GrantedTotal are the permits given since the limiter came to be.
	GrantedTotal uint64
	// Instances are the live instances that use it.
	Instances uint64
	// Epoch changes whenever the store has lost state.
	Epoch uint64
	// Grace is for how long nobody is admitted yet, after a loss of state; 0 in quiet times.
	Grace time.Duration
	// TypicalHold is the mean time a permit is held, or [Unknown].
	TypicalHold time.Duration
	// Estimate is how long a newcomer is likely to wait, or [Unknown].
	Estimate time.Duration
	// OvershootTotal is the cost that came back over the limit after losses of state, since the limiter came to be.
	OvershootTotal uint64
}

// Status asks how the limiter stands. Blocks for a round trip.
//
// It fails with [ErrNoSuchLimiter] if nobody has declared it, [ErrUnavailable], [ErrClosed], [ErrConfiguration], or the
// context's error.
func (l *Limiter) Status(ctx context.Context) (Status, error) {
	// Not written to by the caller's goroutine: it may have gone when the answer comes.
	told := make(chan capi.Info, 1)
	err := l.client.call(ctx, func() error {
		info, failure := capi.LimiterStatus(l.handle)
		runtime.KeepAlive(l)
		told <- info
		return failed(failure)
	})
	if err != nil {
		return Status{}, err
	}
	return newStatus(l.name, <-told), nil
}

func newStatus(name string, info capi.Info) Status {
	return Status{
		Name: name, Limit: info.Limit, Used: info.Used, Holders: info.Holders, Waiting: info.Waiting,
		Paused: info.Paused, MaxQueue: info.MaxQueue, MaxWait: fromMillis(info.MaxWaitMS),
		Lease: fromMillis(info.LeaseMS), MaxHold: fromMillis(info.MaxHoldMS), GrantedTotal: info.GrantedTotal,
		Instances: info.Instances, Epoch: info.Epoch, Grace: fromMillis(info.GraceMS),
		TypicalHold: estimate(info.TypicalHoldMS), Estimate: estimate(info.EstimateMS),
		OvershootTotal: info.OvershootTotal,
	}
}

// SetLimit changes the limit while the limiter runs, as its operator. Lowering it revokes nothing; nobody is admitted
// until use is below it. Stands above what processes declare, until it is reset. Blocks for two round trips.
//
// It fails as Status does, and with [ErrUnknownOutcome] when the answer was lost. When the context ends before the
// answer comes, the limit may or may not have been changed.
func (l *Limiter) SetLimit(ctx context.Context, limit uint64) error {
	return l.client.call(ctx, func() error {
		failure := capi.SetLimit(l.handle, limit)
		runtime.KeepAlive(l)
		return failed(failure)
	})
}

// Configure changes settings while the limiter runs, as its operator; the others stay as they are. Blocks for two round
// trips.
//
// It fails as SetLimit does, and with [ErrInvalid].
func (l *Limiter) Configure(ctx context.Context, changes ...Change) error {
	var changed settings
	for _, change := range changes {
		change.toChange(&changed)
	}
	return l.client.call(ctx, func() error {
		return changed.with(func(config capi.Handle) *capi.Failure {
			failure := capi.Configure(l.handle, config)
			runtime.KeepAlive(l)
			return failure
		})
	})
}
