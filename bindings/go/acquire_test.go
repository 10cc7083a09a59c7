package fairq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairq"
	"fairq/internal/redistest"
)

func TestAPermitIsTakenAndGivenBack(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(3))
		first := acquire(t, limiter, fairq.Cost(2), fairq.Label("tenant 7"))
		second := acquire(t, limiter)
		equal(t, first.Cost(), 2)
		equal(t, second.Cost(), 1)
		equal(t, first.Valid() && second.Valid(), true)
		equal(t, first.State(), fairq.PermitValid)
		equal(t, first.Fence() > 0 && second.Fence() > first.Fence(), true)
		equal(t, first.Order() > 0 && second.Order() > first.Order(), true)
		s := status(t, limiter)
		equal(t, s.Name, limiter.Name())
		equal(t, s.Limit, 3)
		equal(t, s.Used, 3)
		equal(t, s.Holders, 2)

		ok(t, first.Release(soon(t)))
		equal(t, first.Valid(), false)
		equal(t, first.State(), fairq.PermitReleased)
		is(t, first.Release(soon(t)), fairq.ErrStale)
		ok(t, first.Close())
		ok(t, first.Err())
		ok(t, second.Close())
		ok(t, second.Close())
		equal(t, second.State(), fairq.PermitReleased)
		is(t, second.Release(context.Background()), fairq.ErrStale)
		allGivenBack(t, limiter)
	})
}

// S6, S50: each wait is accepted, or clearly refused, and none is rounded to another.
func TestWaits(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		for _, wait := range []time.Duration{0, time.Hour, math.MaxInt64 - 1, fairq.Forever} {
			permit, err := limiter.Acquire(soon(t), fairq.MaxWait(wait))
			ok(t, err)
			ok(t, permit.Release(soon(t)))
		}
		_, err := limiter.Acquire(soon(t), fairq.MaxWait(-1))
		is(t, err, fairq.ErrInvalid)

		held := acquire(t, limiter)
		for _, wait := range []time.Duration{0, 1, 400 * time.Microsecond, time.Millisecond} {
			_, err := limiter.Acquire(soon(t), fairq.MaxWait(wait))
			is(t, err, fairq.ErrTimedOut)
			var timeout interface{ Timeout() bool }
			equal(t, errors.As(err, &timeout) && timeout.Timeout(), true)
		}
		ok(t, held.Close())
		allGivenBack(t, limiter)
	})
}

func TestWhatIsNoWaitFails(t *testing.T) {
	client := open(t, newMemory())
	for name, option := range map[string]fairq.LimiterOption{
		"max_wait": fairq.MaxWait(-time.Second), "lease": fairq.Lease(-1), "poll": fairq.Poll(0), "max_hold": fairq.MaxHold(-1),
		"idle": fairq.Idle(time.Second), "forever": fairq.Lease(fairq.Forever),
	} {
		_, err := client.Limiter("x", fairq.Limit(1), option)
		if !errors.Is(err, fairq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := client.Limiter("", fairq.Limit(1))
	is(t, err, fairq.ErrInvalid)
	_, err = client.Limiter(strings.Repeat("n", 257), fairq.Limit(1))
	is(t, err, fairq.ErrInvalid)
	_, err = limiterOf(t, client, fairq.Limit(1)).Acquire(soon(t), fairq.Label(strings.Repeat("l", 257)))
	is(t, err, fairq.ErrInvalid)
	_, err = limiterOf(t, client, fairq.Limit(1)).Acquire(soon(t), fairq.Cost(0))
	is(t, err, fairq.ErrInvalid)
	_, err = fairq.Open("http://x")
	is(t, err, fairq.ErrInvalid)
	_, err = fairq.Open("memory:", fairq.IOTimeout(-1))
	is(t, err, fairq.ErrInvalid)
}

func TestALoginAndCertificatesReachTheLibrary(t *testing.T) {
	for _, option := range []fairq.ClientOption{
		fairq.Username("u"), fairq.Password("s3cret"), fairq.PasswordFile("/f"), fairq.SentinelPasswordFile("/f"),
		fairq.TLSCAFile("/f"), fairq.TLSCertFile("/f"), fairq.TLSKeyFile("/f"),
	} {
		_, err := fairq.Open("memory:", option)
		is(t, err, fairq.ErrInvalid)
		said := fmt.Sprintf("%v %+v %#v %s %v", option, option, option, option, err)
		equal(t, strings.Contains(said, "s3cret"), false)
		equal(t, strings.Contains(err.Error(), fmt.Sprint(option)), true)
	}
	client := open(t, "rediss-cluster://h:1,i:2", fairq.Username("u"), fairq.PasswordFile("/nowhere/f"))
	is(t, client.Check(soon(t)), fairq.ErrConfiguration)
}

func TestEveryOptionReachesTheLibrary(t *testing.T) {
	client := open(t, newMemory(), fairq.ConnectTimeout(time.Second), fairq.IOTimeout(time.Second), fairq.Subscribe(true),
		fairq.Description("test"))
	limiter := limiterOf(t, client, fairq.Limit(5), fairq.MaxQueue(7), fairq.MaxWait(1500*time.Millisecond),
		fairq.Lease(3*time.Second), fairq.MaxHold(time.Minute), fairq.Idle(time.Hour), fairq.Poll(time.Second),
		fairq.OutageLocal(2))
	ok(t, acquire(t, limiter).Close())
	s := status(t, limiter)
	equal(t, s.Limit, 5)
	equal(t, s.MaxQueue, 7)
	equal(t, s.MaxWait, 1500*time.Millisecond)
	equal(t, s.Lease, 3*time.Second)
	equal(t, s.MaxHold, time.Minute)

	limiter = limiterOf(t, client, fairq.Limit(5), fairq.MaxQueue(fairq.Unbounded), fairq.MaxWait(fairq.Forever),
		fairq.MaxHold(fairq.Forever), fairq.OutageWait(), fairq.OutageFail())
	ok(t, acquire(t, limiter).Close())
	s = status(t, limiter)
	equal(t, s.MaxQueue, fairq.Unbounded)
	equal(t, s.MaxWait, fairq.Forever)
	equal(t, s.MaxHold, fairq.Forever)
	equal(t, len(fairq.Options()) > 10, true)
	equal(t, fairq.Options()[0].Scope, "client")
}

func TestAnOperatorChangesALimiter(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		held := acquire(t, limiter)
		ok(t, limiter.SetLimit(soon(t), 2))
		more := acquire(t, limiter)
		ok(t, limiter.Configure(soon(t), fairq.Paused(true), fairq.MaxQueue(3), fairq.MaxWait(time.Second)))
		s := status(t, limiter)
		equal(t, s.Paused, true)
		equal(t, s.MaxQueue, 3)
		equal(t, s.MaxWait, time.Second)
		equal(t, s.Limit, 2)
		ok(t, limiter.Configure(soon(t), fairq.Paused(false), fairq.Reset()))
		equal(t, status(t, limiter).Limit, 1)
		is(t, limiter.Configure(soon(t), fairq.Lease(-1)), fairq.ErrInvalid)
		ok(t, held.Close())
		ok(t, more.Close())
	})
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1), fairq.MaxQueue(1))
		ok(t, acquire(t, limiter).Release(soon(t))) // so that it knows how long they are held
		held := acquire(t, limiter)
		ctx, cancel := context.WithCancel(soon(t))
		waiter := make(chan error)
		go func() {
			_, err := limiter.Acquire(ctx)
			waiter <- err
		}()
		inLine(t, limiter, 1)
		_, err := limiter.Acquire(soon(t))
		is(t, err, fairq.ErrQueueFull)
		var full *fairq.Error
		equal(t, errors.As(err, &full), true)
		equal(t, full.Status, fairq.ErrQueueFull)
		equal(t, full.Retryable, true)
		equal(t, full.Timeout(), false)
		if !strings.Contains(full.Message, "max_queue") {
			t.Error(full.Message)
		}
		after, known := full.RetryAfter()
		equal(t, known && after >= 0, true)

		_, got, err := limiter.TryAcquire(soon(t))
		equal(t, got, false)
		ok(t, err)
		_, err = limiter.Acquire(soon(t), fairq.Cost(2))
		is(t, err, fairq.ErrImpossible)
		cancel()
		is(t, <-waiter, context.Canceled)
		ok(t, held.Close())
		eventually(t, "it is free", func() bool {
			permit, got, err := limiter.TryAcquire(soon(t), fairq.Label("quick"))
			ok(t, err)
			if got {
				ok(t, permit.Close())
			}
			return got
		})
	})
}

func TestAnUndeclaredLimiterIsRefused(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url)
		_, err := limiter.Acquire(soon(t))
		is(t, err, fairq.ErrNoSuchLimiter)
		_, err = limiter.Status(soon(t))
		is(t, err, fairq.ErrNoSuchLimiter)
	})
}

// P1, P2, P6 in one: many goroutines that take, wait, cancel and time out. Each ends once, and never hold too many.
func TestEveryAcquireEndsOnce(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		const workers, limit = 50, 3
		limiter := newLimiter(t, url, fairq.Limit(limit), fairq.MaxQueue(workers/2))
		var held, ends atomic.Int64
		var all sync.WaitGroup
		each := rounds(100)
		for worker := 0; worker < workers; worker++ {
			all.Add(1)
			go func(worker int) {
				defer all.Done()
				for round := 0; round < each; round++ {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(worker*round%7)*time.Millisecond+1)
					permit, err := limiter.Acquire(ctx, fairq.MaxWait(time.Duration(worker%5)*time.Millisecond))
					cancel()
					ends.Add(1)
					if (permit == nil) == (err == nil) {
						t.Errorf("%v, %v", permit, err)
					}
					if permit != nil {
						if now := held.Add(1); now > limit {
							t.Errorf("%d are held", now)
						}
						held.Add(-1)
						_ = permit.Close()
					}
				}
			}(worker)
		}
		all.Wait()
		equal(t, ends.Load(), int64(workers*each))
		allGivenBack(t, limiter)
	})
}

// S48
func TestAHundredFirstAcquiresOnAColdClient(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		for round := 0; round < 5; round++ {
			client, err := fairq.Open(url)
			ok(t, err)
			limiter := limiterOf(t, client, fairq.Limit(10))
			start, all := make(chan struct{}), sync.WaitGroup{}
			for i := 0; i < 100; i++ {
				all.Add(1)
				go func() {
					defer all.Done()
					<-start
					permit, err := limiter.Acquire(soon(t), fairq.MaxWait(fairq.Forever))
					if err != nil {
						t.Error(err)
						return
					}
					_ = permit.Close()
				}()
			}
			close(start)
			all.Wait()
			allGivenBack(t, limiter)
			equal(t, status(t, limiter).GrantedTotal, 100)
			ok(t, client.Close())
		}
	})
}

func TestTheStoreIsAway(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	client := open(t, server.URL(), fairq.ConnectTimeout(100*time.Millisecond))
	is(t, client.Check(soon(t)), fairq.ErrUnavailable)
	_, err := limiterOf(t, client, fairq.Limit(1), fairq.OutageFail()).Acquire(soon(t))
	is(t, err, fairq.ErrUnavailable)
	var away *fairq.Error
	equal(t, errors.As(err, &away) && away.Retryable, true)
	_, known := away.RetryAfter()
	equal(t, known, true)
	_, err = limiterOf(t, client, fairq.Limit(1)).Acquire(soon(t), fairq.MaxWait(20*time.Millisecond))
	is(t, err, fairq.ErrUnavailable) // at the end of the wait, not before
	permit, err := limiterOf(t, client, fairq.Limit(1), fairq.OutageLocal(1)).Acquire(soon(t))
	ok(t, err)
	equal(t, permit.Fence(), 0)
	ok(t, permit.Close())
	server.Restart(t)
	eventually(t, "it is back", func() bool { return client.Check(soon(t)) == nil })
}
