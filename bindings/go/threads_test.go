package fairq_test

import (
	"context"
	"errors"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"fairq"
	"fairq/internal/redistest"
)

// many is more goroutines than a Go program may have threads.
const many = 10_000

// few is how many more threads Go may start for itself while so many goroutines are about: for the garbage collector,
// and in the place of threads that the system has put aside in the middle of a call.
const few = 8

// threads are those of the process, the library's included.
func threads(t *testing.T) int { return ofProcess(t, "Threads") }

// watchThreads returns a function that tells the most threads there were.
func watchThreads(t *testing.T) (most func() int) {
	stop, told := make(chan struct{}), make(chan int)
	threads(t) // so that whoever cannot tell says so here
	go func() {
		highest := 0
		for {
			if now := threads(t); now > highest {
				highest = now
			}
			select {
			case <-stop:
				told <- highest
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() int { close(stop); return <-told }
}

// warmUp has all threads started that a client needs in any case, and Go for a few busy goroutines.
func warmUp(t *testing.T, limiter *fairq.Limiter) {
	held := acquire(t, limiter, fairq.Cost(status(t, limiter).Limit))
	waitAndCancel(t, limiter, 50)
	ok(t, held.Release(soon(t)))
}

// waitAndCancel has so many wait at once.
func waitAndCancel(t *testing.T, limiter *fairq.Limiter, waiters int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ends := make(chan error, waiters)
	for i := 0; i < waiters; i++ {
		go func() {
			_, err := limiter.Acquire(ctx, fairq.MaxWait(fairq.Forever))
			ends <- err
		}()
	}
	inLine(t, limiter, uint64(waiters))
	cancel()
	for i := 0; i < waiters; i++ {
		is(t, <-ends, context.Canceled)
	}
}

func TestTenThousandWaitWithoutAThreadEach(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		held := acquire(t, limiter)
		ok(t, held.Close())
		warmUp(t, limiter)
		held = acquire(t, limiter)
		before, most := threads(t), watchThreads(t)
		waitAndCancel(t, limiter, many)
		ok(t, held.Close())
		allGivenBack(t, limiter)
		highest := most()
		t.Logf("%d threads before, %d at most, %d created by Go", before, highest, pprof.Lookup("threadcreate").Count())
		if highest > before+few {
			t.Errorf("%d threads for %d waiters", highest-before, many)
		}
	})
}

func TestTenThousandReleaseWithFewThreads(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(many))
		ok(t, acquire(t, limiter).Close())
		warmUp(t, limiter)
		permits := make([]*fairq.Permit, many)
		var all sync.WaitGroup
		for i := range permits {
			all.Add(1)
			go func(i int) {
				defer all.Done()
				var err error
				if permits[i], err = limiter.Acquire(soon(t), fairq.MaxWait(fairq.Forever)); err != nil {
					t.Error(err)
				}
			}(i)
		}
		all.Wait()
		equal(t, status(t, limiter).Holders, many)
		before, most := threads(t), watchThreads(t)
		for i := range permits {
			all.Add(1)
			go func(permit *fairq.Permit, ctx context.Context) {
				defer all.Done()
				if err := permit.Release(ctx); err != nil {
					t.Error(err)
				}
			}(permits[i], []context.Context{context.Background(), soon(t)}[i%2])
		}
		all.Wait()
		allGivenBack(t, limiter)
		highest := most()
		t.Logf("%d threads before, %d at most", before, highest)
		if highest > before+fairq.MaxCalls+few {
			t.Errorf("%d threads for %d releases", highest-before, many)
		}
	})
}

// A store that stands still: releases come to an end, wherever they wait, and are made up for afterwards.
func TestReleasesWhileTheStoreStandsStill(t *testing.T) {
	const callers = 20 * fairq.MaxCalls
	server := redistest.Start(t)
	client := open(t, server.URL(), fairq.IOTimeout(200*time.Millisecond))
	limiter := limiterOf(t, client, fairq.Limit(callers+1), fairq.Lease(time.Minute))
	permits := make([]*fairq.Permit, callers)
	for i := range permits {
		permits[i] = acquire(t, limiter)
	}
	impatient := acquire(t, limiter)
	before, most := threads(t), watchThreads(t)
	server.Stop()
	ends := make(chan error, callers)
	for _, permit := range permits {
		go func(permit *fairq.Permit) { ends <- permit.Release(context.Background()) }(permit)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	is(t, impatient.Release(ctx), context.DeadlineExceeded)
	for range permits {
		is(t, <-ends, fairq.ErrUnavailable)
	}
	if highest := most(); highest > before+fairq.MaxCalls+few {
		t.Errorf("%d threads for %d releases", highest-before, callers)
	}
	server.Continue()
	eventually(t, "the releases arrive", func() bool {
		s, err := limiter.Status(soon(t))
		return err == nil && s.Used == 0
	})
}

func TestCallsOfTheStoreWaitTheirTurn(t *testing.T) {
	server := redistest.Start(t)
	client := open(t, server.URL(), fairq.IOTimeout(time.Second))
	limiter := limiterOf(t, client, fairq.Limit(1))
	ok(t, acquire(t, limiter).Release(soon(t)))
	before, most := threads(t), watchThreads(t)
	server.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	ends := make(chan error)
	for i := 0; i < 500; i++ {
		go func() {
			_, err := limiter.Status(ctx)
			ends <- err
		}()
	}
	for i := 0; i < 500; i++ {
		if err := <-ends; !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, fairq.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	}
	if highest := most(); highest > before+fairq.MaxCalls+few {
		t.Errorf("%d threads for 500 calls", highest-before)
	}
	server.Continue()
	eventually(t, "it answers", func() bool { _, err := limiter.Status(soon(t)); return err == nil })
}
