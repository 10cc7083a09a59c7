package fairq_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"fairq"
	"fairq/internal/redistest"
)

// P6: grants follow the order of arrival.
func TestTheLineIsFirstComeFirstServed(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		const waiters = 300
		limiter := newLimiter(t, url, fairq.Limit(1))
		held := acquire(t, limiter)
		type grant struct {
			who    int
			permit *fairq.Permit
		}
		grants := make(chan grant)
		for i := 0; i < waiters; i++ {
			waits := make(chan struct{})
			go func(i int) {
				permit, err := limiter.Acquire(soon(t), fairq.MaxWait(fairq.Forever),
					fairq.OnPosition(func(fairq.Position) { once(waits) }))
				if err != nil {
					t.Error(err)
				}
				grants <- grant{i, permit}
			}(i)
			<-waits
		}
		equal(t, status(t, limiter).Waiting, waiters)
		for i := 0; i < waiters; i++ {
			fence, order := held.Fence(), held.Order()
			ok(t, held.Close())
			next := <-grants
			equal(t, next.who, i)
			held = next.permit
			equal(t, held.Fence() > fence && held.Order() > order, true)
		}
		ok(t, held.Close())
		allGivenBack(t, limiter)
	})
}

// S53: grants come by message, and not by polling, which is once a minute here: a chain of them is over long before.
func TestGrantsArePrompt(t *testing.T) {
	server := redistest.Shared(t)
	giver := newLimiter(t, server.URL(), fairq.Limit(1), fairq.Poll(time.Minute))
	client := open(t, server.URL())
	taker, err := client.Limiter(giver.Name(), fairq.Limit(1), fairq.Poll(time.Minute))
	ok(t, err)
	for round := 0; round < 200; round++ {
		held := acquire(t, giver)
		waits, got := make(chan struct{}), make(chan error)
		go func() {
			permit, err := taker.Acquire(soon(t), fairq.MaxWait(fairq.Forever),
				fairq.OnPosition(func(fairq.Position) { once(waits) }))
			if permit != nil {
				_ = permit.Close()
			}
			got <- err
		}()
		<-waits
		ok(t, held.Close())
		ok(t, <-got)
	}
}

func TestAPermitThatIsHeldTooLongIsLost(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		before := runtime.NumGoroutine()
		client := open(t, url)
		limiter := limiterOf(t, client, fairq.Limit(2), fairq.MaxHold(50*time.Millisecond))
		watched, unwatched := acquire(t, limiter), acquire(t, limiter)
		ctx, cancel := watched.Context(context.Background())
		defer cancel()
		<-watched.Lost()
		<-ctx.Done()
		<-watched.Lost()
		for _, permit := range []*fairq.Permit{watched, unwatched} {
			eventually(t, "it is lost", func() bool { return permit.State() == fairq.PermitLost })
			is(t, permit.Err(), fairq.ErrPermitLost)
			<-permit.Lost()
			equal(t, permit.Valid(), false)
			is(t, permit.Release(soon(t)), fairq.ErrPermitLost)
			is(t, permit.Release(soon(t)), fairq.ErrPermitLost)
			equal(t, permit.State(), fairq.PermitLost)
		}
		// S49: acquiring works again.
		ok(t, acquire(t, limiter).Release(soon(t)))
		equal(t, fairq.OpenRequests(limiter), 0)
		cancel()
		ok(t, client.Close())
		goroutinesAsBefore(t, before)
	})
}

// Nobody waits and nobody watches, so nobody has taken the news. Whoever asks then gets them, with the reason.
func TestALossThatNobodyHasHeardOf(t *testing.T) {
	for name, ask := range map[string]func(*fairq.Permit) error{
		"Err":     (*fairq.Permit).Err,
		"Release": func(permit *fairq.Permit) error { return permit.Release(context.Background()) },
		"Close":   func(permit *fairq.Permit) error { _ = permit.Close(); return permit.Err() },
	} {
		permit := acquire(t, newLimiter(t, newMemory(), fairq.Limit(1), fairq.MaxHold(10*time.Millisecond)))
		eventually(t, "it is lost", func() bool { return permit.State() == fairq.PermitLost })
		err := ask(permit)
		is(t, err, fairq.ErrPermitLost)
		is(t, permit.Err(), fairq.ErrPermitLost)
		if !strings.Contains(err.Error(), "max_hold") {
			t.Errorf("%s: %v", name, err)
		}
		<-permit.Lost()
	}
}

func TestAPermitThatIsGivenBackIsNotLost(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		permit := acquire(t, limiter)
		lost := permit.Lost()
		ctx, cancel := permit.Context(context.Background())
		defer cancel()
		ok(t, permit.Release(soon(t)))
		ok(t, acquire(t, limiter).Close())
		select {
		case <-lost:
			t.Error("lost")
		case <-permit.Lost():
			t.Error("lost")
		case <-ctx.Done():
			t.Error("ended")
		default:
		}
		ok(t, permit.Err())
	})
}
