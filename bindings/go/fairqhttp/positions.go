package fairqhttp

import (
	"context"
	"net/http"
	"time"

	"fairq"
)

// line is where a request stands, as clients are told.
type line struct {
	Position uint64   `json:"position"`
	Estimate *float64 `json:"estimate"` // in seconds; null while not known
}

func newLine(p fairq.Position) line {
	if p.Estimate == fairq.Unknown {
		return line{Position: p.Position}
	}
	seconds := p.Estimate.Seconds()
	return line{p.Position, &seconds}
}

type acquired struct {
	permit *fairq.Permit
	err    error
}

// acquireShowing acquires, and shows the client its place in line meanwhile. Another goroutine waits, since this one
// has to write, which may take its time.
func (m *middleware) acquireShowing(
	limiter *fairq.Limiter, to *reply, r *http.Request, options []fairq.AcquireOption,
) (*fairq.Permit, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	positions, end := make(chan fairq.Position, 1), make(chan acquired, 1)
	options = append(options, fairq.OnPosition(func(p fairq.Position) { replace(positions, p) }))
	go func() {
		permit, err := limiter.Acquire(ctx, options...)
		end <- acquired{permit, err}
	}()
	ended := false
	defer func() {
		if !ended { // the client cannot be reached, or writing to it has panicked
			cancel()
			if got := <-end; got.permit != nil {
				_ = got.permit.Close()
			}
		}
	}()
	got, err := m.show(to, positions, end)
	if err != nil {
		return nil, context.Canceled
	}
	ended = true
	return got.permit, got.err
}

// show writes the positions that come, until the end does.
func (m *middleware) show(to *reply, positions <-chan fairq.Position, end <-chan acquired) (acquired, error) {
	for {
		quiet := time.NewTimer(m.keepAlive)
		var err error
		select {
		case got := <-end:
			quiet.Stop()
			return got, nil
		case position := <-positions:
			err = to.tell(event("position", newLine(position)))
		case <-quiet.C:
			err = to.tell(": keep-alive\n\n")
		}
		quiet.Stop()
		if err != nil {
			return acquired{}, err
		}
	}
}

// replace puts p in the place of an older one that nobody has taken.
func replace(positions chan fairq.Position, p fairq.Position) {
	select {
	case <-positions:
	default:
	}
	positions <- p
}
