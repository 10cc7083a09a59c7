package fairq

import (
	"context"
	"errors"
	"runtime"
	"time"

	"fairq/internal/capi"
)

// asking is what a request asks for.
type asking struct {
	capi.Request
	onPosition func(Position)
	ticket     *Ticket
	err        error
}

type (
	cost       uint64
	label      string
	onPosition func(Position)
	withTicket struct{ ticket *Ticket }
)

func (o cost) toAcquire(a *asking)       { a.Cost = uint64(o) }
func (o label) toAcquire(a *asking)      { a.Label = string(o) }
func (o withTicket) toAcquire(a *asking) { a.ticket = o.ticket }

func (o onPosition) toAcquire(a *asking) {
	a.onPosition = o
	a.Flags |= capi.ReportPosition
}

func (o WaitOption) toAcquire(a *asking) {
	a.MaxWaitMS, a.err = millis(o.wait, "max_wait")
}

func (a *asking) ticketHandle() capi.Handle {
	if a.ticket == nil {
		return 0
	}
	return a.ticket.handle
}

func newAsking(options []AcquireOption) *asking {
	a := &asking{Request: capi.Request{Flags: capi.ReportPermit, MaxWaitMS: capi.Default, Cost: 1}}
	for _, option := range options {
		option.toAcquire(a)
	}
	return a
}

// Acquire waits in line for a permit, which has to be given back by [Permit.Release] or [Permit.Close].
//
// It blocks until there is one, the request's [MaxWait] is over (by default the limiter's own), or the context ends. No
// thread waits, and any number of goroutines may. When the context ends, the request leaves the line, and a grant that
// was on its way goes back.
//
// It fails with the context's error, or with an [*Error]: [ErrTimedOut], [ErrQueueFull], [ErrCancelled] (by a
// [Ticket]), [ErrClosed], [ErrImpossible], [ErrRevoked], [ErrUnavailable], [ErrOverloaded], [ErrInvalid],
// [ErrConfiguration], [ErrServer], [ErrNoSuchLimiter].
func (l *Limiter) Acquire(ctx context.Context, options ...AcquireOption) (*Permit, error) {
	return l.acquire(ctx, newAsking(options))
}

// TryAcquire takes a permit if that needs no waiting, passing nobody who waits; not ok if it does. Blocks for a round
// trip.
//
// It fails as Acquire does, but neither with [ErrTimedOut] nor with [ErrQueueFull]. A [MaxWait] among the options is
// passed over.
func (l *Limiter) TryAcquire(ctx context.Context, options ...AcquireOption) (permit *Permit, ok bool, err error) {
	asked := newAsking(append(options[:len(options):len(options)], MaxWait(0)))
	permit, err = l.acquire(ctx, asked)
	if errors.Is(err, ErrTimedOut) || errors.Is(err, ErrQueueFull) {
		return nil, false, nil
	}
	return permit, err == nil, err
}

func (l *Limiter) acquire(ctx context.Context, asked *asking) (*Permit, error) {
	if asked.err != nil {
		return nil, asked.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	needsTicket := ctx.Done() != nil || asked.onPosition != nil // to be cancelled by
	r, ticket, err := l.client.queue.start(l.handle, asked, needsTicket && asked.ticket == nil)
	if err != nil {
		return nil, err
	}
	if ticket != 0 {
		defer l.client.queue.freeTicket(ticket)
	} else {
		ticket = asked.ticketHandle()
	}
	if err := r.await(ctx, ticket, asked.onPosition); err != nil {
		return nil, err
	}
	runtime.KeepAlive(asked)
	permit, err := r.take()
	if err != nil {
		return nil, err
	}
	return newPermit(l, r, permit, asked.Cost), nil
}

// await waits for the end of r, and reports positions. An error is the context's, and then r has been given up.
func (r *request) await(ctx context.Context, ticket capi.Handle, report func(Position)) error {
	returned := false
	defer func() {
		if !returned { // report has panicked
			r.giveUp(ticket)
		}
	}()
	for {
		ended, position, moved := r.look()
		switch {
		case ended:
			returned = true
			return nil
		case moved:
			report(position)
			continue
		}
		select {
		case <-r.news:
		case <-ctx.Done():
			returned = true
			r.giveUp(ticket)
			return ctx.Err()
		}
	}
}

// Position is where a request stands in line.
type Position struct {
	// Position is 1 for who is next, and 0 for who does not wait in line.
	Position uint64
	// Estimate is how long it is likely to wait still, or [Unknown].
	Estimate time.Duration
}

// Ticket is one request, to be cancelled or watched by any goroutine while another acquires with it; see [WithTicket].
type Ticket struct {
	limiter *Limiter
	handle  capi.Handle
}

// NewTicket makes a ticket for one request. Does not block.
//
// It fails with [ErrInternal] when there are too many.
func (l *Limiter) NewTicket() (*Ticket, error) {
	handle, failure := capi.NewTicket(l.handle)
	if failure != nil {
		return nil, newError(failure)
	}
	t := &Ticket{limiter: l, handle: handle}
	runtime.SetFinalizer(t, func(t *Ticket) { capi.FreeTicket(t.handle) })
	return t, nil
}

// Cancel cancels the request, also one that is not started yet: it ends with [ErrCancelled]. It returns false if the
// request had ended before. Does not block; the store is told in the background.
func (t *Ticket) Cancel() bool {
	cancelled := t.limiter.client.queue.cancel(t.handle)
	runtime.KeepAlive(t)
	return cancelled
}

// Position asks the store where the request stands. Blocks for a round trip.
//
// It fails as [Limiter.Status] does.
func (t *Ticket) Position(ctx context.Context) (Position, error) {
	told := make(chan capi.Position, 1)
	err := t.limiter.client.call(ctx, func() error {
		position, failure := capi.TicketPosition(t.handle)
		runtime.KeepAlive(t)
		told <- position
		return failed(failure)
	})
	if err != nil {
		return Position{Estimate: Unknown}, err
	}
	return newPosition(<-told), nil
}

// LastPosition is where the request stood when the store last told. Does not block.
func (t *Ticket) LastPosition() Position {
	position, _ := capi.TicketLastPosition(t.handle) // which can only fail for what is no ticket
	runtime.KeepAlive(t)
	return newPosition(position)
}

func newPosition(p capi.Position) Position { return Position{p.Position, estimate(p.EstimateMS)} }
