package fairq_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"fairq"
)

func TestClosingEndsEveryWaiter(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		const waiters = 500
		before := runtime.NumGoroutine()
		client := open(t, url)
		limiter := limiterOf(t, client, fairq.Limit(1))
		held := acquire(t, limiter)
		ends := make(chan error)
		for i := 0; i < waiters; i++ {
			go func() {
				_, err := limiter.Acquire(context.Background(), fairq.MaxWait(fairq.Forever))
				ends <- err
			}()
		}
		inLine(t, limiter, waiters)
		lost := held.Lost()
		go func() { _ = client.Close() }()
		for i := 0; i < waiters; i++ {
			is(t, <-ends, fairq.ErrClosed)
		}
		<-lost
		is(t, held.Err(), fairq.ErrPermitLost)
		equal(t, held.State(), fairq.PermitLost)
		is(t, held.Release(soon(t)), fairq.ErrPermitLost)
		equal(t, held.State(), fairq.PermitLost)
		ok(t, client.Close())
		stacks := make([]byte, 1<<20)
		equal(t, strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "capi.Poll("), false)
		goroutinesAsBefore(t, before)

		_, err := limiter.Acquire(soon(t))
		is(t, err, fairq.ErrClosed)
		_, err = limiter.Status(soon(t))
		is(t, err, fairq.ErrClosed)
		_, err = client.Limiter("another")
		is(t, err, fairq.ErrClosed)
		ok(t, client.Shutdown(soon(t)))
		ok(t, client.Close())
		goroutinesAsBefore(t, before)
	})
}

func TestAHeldPermitThatNobodyWatchesIsLostByClosing(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		client := open(t, url)
		held := acquire(t, limiterOf(t, client, fairq.Limit(1)))
		ok(t, client.Close())
		equal(t, held.Valid(), false)
		is(t, held.Err(), fairq.ErrPermitLost)
		<-held.Lost()
		ok(t, held.Close())
		is(t, held.Err(), fairq.ErrPermitLost)
		is(t, held.Release(soon(t)), fairq.ErrPermitLost)
	})
}

func TestShutdownWaitsForWhatIsHeld(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		client := open(t, url)
		limiter := limiterOf(t, client, fairq.Limit(1))
		held := acquire(t, limiter)
		ends := make(chan error)
		for i := 0; i < 3; i++ {
			go func() { ends <- client.Shutdown(soon(t)) }()
		}
		eventually(t, "nobody is admitted", func() bool {
			_, _, err := limiter.TryAcquire(soon(t))
			return errors.Is(err, fairq.ErrClosed)
		})
		equal(t, held.Valid(), true)
		ok(t, held.Release(soon(t)))
		for i := 0; i < 3; i++ {
			ok(t, <-ends)
		}
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		client := open(t, url)
		held := acquire(t, limiterOf(t, client, fairq.Limit(1)))
		ctx, cancel := context.WithCancel(context.Background())
		end := make(chan error)
		go func() { end <- client.Shutdown(ctx) }()
		cancel()
		is(t, <-end, context.Canceled)
		<-held.Lost()
	})
}

func TestClosingInFullSwing(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		before := runtime.NumGoroutine()
		for round := 0; round < rounds(60); round++ {
			client, err := fairq.Open(url)
			ok(t, err)
			limiter := limiterOf(t, client, fairq.Limit(2))
			var all, first sync.WaitGroup
			for i := 0; i < 8; i++ {
				all.Add(1)
				first.Add(1)
				go func() {
					defer all.Done()
					entered := sync.Once{}
					for {
						permit, err := limiter.Acquire(context.Background(), fairq.MaxWait(fairq.Forever))
						entered.Do(first.Done)
						if err != nil {
							if !errors.Is(err, fairq.ErrClosed) {
								t.Error(err)
							}
							return
						}
						permit.Lost()
						_ = permit.Close()
					}
				}()
			}
			first.Wait()
			ok(t, client.Close())
			all.Wait()
		}
		goroutinesAsBefore(t, before)
	})
}

func TestAClientThatIsForgottenEnds(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		before := runtime.NumGoroutine()
		beside := newLimiter(t, url, fairq.Limit(1))
		func() {
			client, err := fairq.Open(url)
			ok(t, err)
			limiter, err := client.Limiter(beside.Name(), fairq.Limit(1))
			ok(t, err)
			acquire(t, limiter).Lost() // the poller is about, and the permit is forgotten, too
		}()
		eventually(t, "it is collected", func() bool {
			runtime.GC()
			_, free, err := beside.TryAcquire(soon(t))
			ok(t, err)
			return free && status(t, beside).Instances == 1 && runtime.NumGoroutine() <= before+1 // the poller of the one beside
		})
	})
}

func TestLeakedPermitsAreGivenBackAndTold(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		leaks := make(chan fairq.Leak, 1)
		client := open(t, url, fairq.OnLeak(func(leak fairq.Leak) { leaks <- leak }))
		limiter := limiterOf(t, client, fairq.Limit(1))
		fence := acquire(t, limiter).Fence()
		eventually(t, "it is collected", func() bool { runtime.GC(); return client.Leaked() == 1 })
		equal(t, <-leaks, fairq.Leak{Limiter: limiter.Name(), Fence: fence})
		allGivenBack(t, limiter)

		permit := acquire(t, limiter)
		ok(t, permit.Release(soon(t)))
		permit = acquire(t, limiter)
		ok(t, permit.Close())
		permit = nil
		runtime.GC()
		runtime.GC()
		equal(t, client.Leaked(), 1)
		equal(t, fairq.OpenRequests(limiter), 0)
	})
}
