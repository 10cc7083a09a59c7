package fairq

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"fairq/internal/capi"
)

// PermitState is how a permit stands: a local, conservative judgement.
type PermitState int32

const (
	// PermitValid: held, and confirmed within the lease.
	PermitValid PermitState = capi.PermitValid
	// PermitUnconfirmed: held as far as is known, but the store has been silent for a lease: others may have the slot.
	PermitUnconfirmed PermitState = capi.PermitUnconfirmed
	// PermitLost: lost; guarded work has to stop.
	PermitLost PermitState = capi.PermitLost
	// PermitReleased: given back.
	PermitReleased PermitState = capi.PermitReleased
)

// String is the state in a word.
func (s PermitState) String() string {
	switch s {
	case PermitValid:
		return "valid"
	case PermitUnconfirmed:
		return "unconfirmed"
	case PermitLost:
		return "lost"
	}
	return "released"
}

// Permit is a held slot of a limiter; from [Limiter.Acquire]. It has to be kept and to be given back. One that is
// collected as garbage before that is given back then, and counted; see [OnLeak]. Any goroutine may use it.
type Permit struct {
	limiter *Limiter
	request *request
	handle  capi.Handle
	fence   uint64
	order   uint64
	cost    uint64
	gone    atomic.Bool // somebody gives it back, or has
	wasLost atomic.Bool // when it was given back
}

func newPermit(l *Limiter, r *request, g granted, cost uint64) *Permit {
	p := &Permit{limiter: l, request: r, handle: g.handle, fence: g.fence, order: g.order, cost: cost}
	runtime.SetFinalizer(p, (*Permit).leak)
	return p
}

// Fence is a number that grows with every grant of the limiter, for the guarded resource to refuse whoever comes with a
// smaller one. 0 for a permit admitted locally while the store was away.
func (p *Permit) Fence() uint64 { return p.fence }

// Order is the request's place in line, given once at its arrival: microseconds of the store's clock.
func (p *Permit) Order() uint64 { return p.order }

// Cost is how much of the limit it takes.
func (p *Permit) Cost() uint64 { return p.cost }

// Valid is whether nobody else can have the slot: it was neither lost nor given back, and the store has confirmed it
// within the lease. A local, conservative judgement; does not block.
func (p *Permit) Valid() bool {
	valid := capi.PermitIsValid(p.handle)
	runtime.KeepAlive(p)
	return valid
}

// State is how it stands. Does not block.
func (p *Permit) State() PermitState {
	state := capi.PermitState(p.handle)
	runtime.KeepAlive(p)
	if state != capi.PermitNone {
		return PermitState(state)
	}
	if p.wasLost.Load() {
		return PermitLost
	}
	return PermitReleased
}

// Lost is a channel that is closed when the permit is lost, so that guarded work has to stop; Err says why then. It
// stays open for one that is given back. Does not block.
func (p *Permit) Lost() <-chan struct{} { return p.request.watch() }

// Err is why the permit was lost, an [*Error] with [ErrPermitLost]; nil while it is not. Does not block.
func (p *Permit) Err() error {
	if p.State() != PermitLost {
		return nil
	}
	return p.learn()
}

// Context is a context that ends when the permit is lost, too. The function ends it, and frees what it needs: call it
// when the work is done. Err of the permit says whether it was lost.
func (p *Permit) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	lost := p.Lost()
	go func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Close gives the slot back in the background, if that has not been done. Made for defer: it never blocks, may be
// called again and after Release, and always returns nil.
func (p *Permit) Close() error {
	if p.take() {
		p.giveBack()
	}
	return nil
}

// Release gives the slot back, and waits for the store's answer until the context ends. The slot is given back in any
// case: when the waiting ends before the answer, that goes on in the background. It ends by itself after at most twice
// the option [IOTimeout]; that begins when it is the call's turn (see [MaxCalls]), or when the store answers nobody any
// more.
//
// It fails with [ErrStale] or [ErrPermitLost] when the slot had been given or taken back before, [ErrUnavailable] when
// there was no answer in time, [ErrClosed], or the context's error.
func (p *Permit) Release(ctx context.Context) error {
	if !p.take() {
		if err := p.Err(); err != nil {
			return err
		}
		return &Error{Status: ErrStale, Message: "the permit had been given back already"}
	}
	c := p.limiter.client
	if err := c.turn(ctx); err != nil {
		p.giveBack()
		return err
	}
	return c.answer(ctx, p.release)
}

func (p *Permit) release() error {
	err := failed(capi.Release(p.handle))
	if errors.Is(err, ErrPermitLost) {
		p.wasLost.Store(true)
		p.request.queue.lose(p.request, err)
	}
	p.request.queue.forget(p.request)
	return err
}

// take returns true to the one who has to give the slot back.
func (p *Permit) take() bool {
	if p.gone.Swap(true) {
		return false
	}
	runtime.SetFinalizer(p, nil)
	return true
}

func (p *Permit) giveBack() {
	q := p.request.queue
	if q.giveBack(p.handle) == capi.PermitLost {
		p.wasLost.Store(true)
		p.learn()
	}
	q.forget(p.request)
}

// learn finds out why the permit was lost, for whoever asks later.
func (p *Permit) learn() error {
	q := p.request.queue
	if why := p.request.whyLost(); why != nil {
		return why
	}
	q.collect() // nobody has looked yet
	q.lose(p.request, &Error{Status: ErrPermitLost, Message: "the permit was lost"})
	return p.request.whyLost()
}

// leak gives back what is garbage. It runs among the finalizers, where nobody may tarry.
func (p *Permit) leak() {
	if p.gone.Swap(true) {
		return
	}
	p.giveBack()
	c := p.limiter.client
	c.leaked.Add(1)
	if c.onLeak != nil {
		go c.onLeak(Leak{Limiter: p.limiter.name, Fence: p.fence})
	}
}
