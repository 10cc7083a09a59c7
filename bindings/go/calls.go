package fairq

import (
	"context"
	"errors"
	"time"
)

// MaxCalls is how many calls of a client may wait for an answer of the store at once, which takes a thread each. More
// than these wait as goroutines until it is their turn. Requests for permits are not among them: those occupy no
// thread.
const MaxCalls = 32

// call asks the library for something that waits for the store. The context ends the waiting, not the call: that ends
// by itself, and nobody takes its answer.
func (c *Client) call(ctx context.Context, ask func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.calls <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.answer(ctx, ask)
}

// answer is what ask returns. The caller has taken a place in c.calls, which is given up when the call has ended.
func (c *Client) answer(ctx context.Context, ask func() error) error {
	if ctx.Done() == nil || c.inMemory {
		return c.ask(ask)
	}
	answer := make(chan error, 1)
	go func() { answer <- c.ask(ask) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) ask(ask func() error) error {
	defer func() { <-c.calls }()
	err := ask()
	if !errors.Is(err, ErrUnavailable) {
		c.answered.Store(int64(time.Since(c.opened)))
	}
	return err
}

// turn takes a place in c.calls for a release. While the store answers others it waits as long as that takes; when it
// has answered nobody for as long as a release has patience, the place is not worth waiting for.
func (c *Client) turn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.calls <- struct{}{}:
		return nil
	default:
	}
	look := time.NewTimer(c.patience)
	defer look.Stop()
	for {
		select {
		case c.calls <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		silence := time.Since(c.opened) - time.Duration(c.answered.Load())
		if silence >= c.patience {
			return &Error{
				Status: ErrUnavailable, Message: "no answer to the release yet; it goes on in the background",
				Retryable: true, retryAfter: time.Second, known: true,
			}
		}
		look.Reset(c.patience - silence)
	}
}
