package fairq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"fairq"
)

func TestAContextEndsTheWait(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		held := acquire(t, limiter)

		ctx, cancel := context.WithCancel(context.Background())
		_, err := limiter.Acquire(ctx, fairq.OnPosition(func(fairq.Position) { cancel() }))
		is(t, err, context.Canceled)
		_, err = limiter.Acquire(ctx)
		is(t, err, context.Canceled)
		_, _, err = limiter.TryAcquire(ctx)
		is(t, err, context.Canceled)
		_, err = limiter.Status(ctx)
		is(t, err, context.Canceled)

		ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		_, err = limiter.Acquire(ctx, fairq.MaxWait(fairq.Forever))
		is(t, err, context.DeadlineExceeded)
		equal(t, errors.Is(err, fairq.ErrTimedOut), false)

		is(t, held.Release(ctx), context.DeadlineExceeded) // and given back all the same
		allGivenBack(t, limiter)
	})
}

func TestATicketCancels(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		held := acquire(t, limiter)
		ticket, err := limiter.NewTicket()
		ok(t, err)
		end := make(chan error)
		go func() {
			_, err := limiter.Acquire(context.Background(), fairq.WithTicket(ticket), fairq.MaxWait(fairq.Forever))
			end <- err
		}()
		inLine(t, limiter, 1)
		equal(t, ticket.Cancel(), true)
		is(t, <-end, fairq.ErrCancelled)
		allGivenBackBut(t, limiter, 1)

		early, err := limiter.NewTicket()
		ok(t, err)
		equal(t, early.Cancel(), true)
		_, err = limiter.Acquire(soon(t), fairq.WithTicket(early))
		is(t, err, fairq.ErrCancelled)

		ok(t, held.Close())
		late, err := limiter.NewTicket()
		ok(t, err)
		permit := acquire(t, limiter, fairq.WithTicket(late))
		equal(t, late.Cancel(), false)
		equal(t, permit.Valid(), true)
		_, err = limiter.Acquire(soon(t), fairq.WithTicket(late))
		is(t, err, fairq.ErrInvalid) // a ticket serves once
		ok(t, permit.Close())
	})
}

func allGivenBackBut(t *testing.T, limiter *fairq.Limiter, used uint64) {
	t.Helper()
	eventually(t, "the others are gone", func() bool {
		s := status(t, limiter)
		return s.Used == used && s.Waiting == 0
	})
}

// A context that ends at the moment of a grant: either the permit is there, or the context's error and no permit
// anywhere.
func TestACancelRacesWithAGrant(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		granted, cancelled := 0, 0
		random := rand.New(rand.NewSource(1))
		for round := 0; round < rounds(4000); round++ {
			held := acquire(t, limiter)
			ctx, cancel := context.WithCancel(context.Background())
			waits, end := make(chan struct{}), make(chan error)
			go func() {
				permit, err := limiter.Acquire(ctx, fairq.MaxWait(fairq.Forever),
					fairq.OnPosition(func(fairq.Position) { once(waits) }))
				if permit != nil {
					_ = permit.Close()
				}
				end <- err
			}()
			<-waits
			timer := time.AfterFunc(time.Duration(random.Intn(500))*time.Microsecond, cancel)
			_ = held.Close()
			switch err := <-end; {
			case err == nil:
				granted++
			case errors.Is(err, context.Canceled):
				cancelled++
			default:
				t.Fatal(err)
			}
			timer.Stop()
			cancel()
		}
		t.Logf("%d granted, %d cancelled", granted, cancelled)
		equal(t, granted > 0 && cancelled > 0, true)
		allGivenBack(t, limiter)
	})
}

func once(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// S47: cancelled at random moments, given back by other goroutines. Nothing is left, and memory stays flat.
func TestAHundredThousandCancels(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(2))
		freed := make(chan *fairq.Permit, 100)
		var freers sync.WaitGroup
		freers.Add(1)
		go func() {
			defer freers.Done()
			for permit := range freed {
				_ = permit.Close()
			}
		}()
		total := rounds(100_000)
		cancelOften(t, limiter, total/5, freed)
		grown := growth(t, func() {
			cancelOften(t, limiter, total, freed)
			allGivenBack(t, limiter)
		})
		close(freed)
		freers.Wait()
		if grown > 8*1024 && !withRaceDetector {
			t.Errorf("%d KiB more after each %d rounds", grown, total)
		}
		equal(t, fairq.OpenRequests(limiter), 0)
	})
}

func cancelOften(t *testing.T, limiter *fairq.Limiter, total int, freed chan<- *fairq.Permit) {
	const workers = 32
	var all sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		all.Add(1)
		go func(seed int64) {
			defer all.Done()
			random := rand.New(rand.NewSource(seed))
			for round := 0; round < total/workers; round++ {
				ctx, cancel := context.WithCancel(context.Background())
				timer := time.AfterFunc(time.Duration(random.Intn(1000))*time.Microsecond, cancel)
				permit, err := limiter.Acquire(ctx, fairq.MaxWait(fairq.Forever))
				timer.Stop()
				cancel()
				if permit != nil {
					freed <- permit
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		}(int64(worker))
	}
	all.Wait()
}

// growth is by how many KiB memory grows, at least, each time that something is done. A new thread, say, may take some
// memory for good, but that is not what grows again.
func growth(t *testing.T, do func()) (least int) {
	least = 1 << 30
	for attempt := 0; attempt < 4 && least > 2048; attempt++ {
		before := rss(t)
		do()
		if grown := rss(t) - before; grown < least {
			least = grown
		}
	}
	return least
}

// rss is what the process has in memory, in KiB, without what is garbage.
func rss(t *testing.T) int {
	debug.FreeOSMemory()
	return ofProcess(t, "VmRSS")
}

func TestAPanicInTheCallbackLeavesNothingBehind(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		held := acquire(t, limiter)
		func() {
			defer func() { equal(t, fmt.Sprint(recover()), "callback") }()
			_, _ = limiter.Acquire(context.Background(), fairq.OnPosition(func(fairq.Position) { panic("callback") }))
		}()
		ok(t, held.Close())
		allGivenBack(t, limiter)
		equal(t, fairq.OpenRequests(limiter), 0)
	})
}

func TestPositionsAreReported(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1), fairq.Poll(20*time.Millisecond))
		held := acquire(t, limiter)
		leave := twoInLine(t, limiter)
		positions, end := make(chan fairq.Position, 10), make(chan error)
		go func() {
			permit, err := limiter.Acquire(soon(t), fairq.MaxWait(fairq.Forever),
				fairq.OnPosition(func(p fairq.Position) { positions <- p }))
			if permit != nil {
				_ = permit.Close()
			}
			end <- err
		}()
		last := <-positions
		equal(t, last.Position, 3)
		equal(t, last.Estimate >= fairq.Unknown, true)
		leave()
		for last.Position > 1 {
			next := <-positions
			equal(t, next.Position < last.Position, true)
			last = next
		}
		ok(t, held.Close())
		ok(t, <-end)
		allGivenBack(t, limiter)
	})
}

// twoInLine has two wait, until the function is called.
func twoInLine(t *testing.T, limiter *fairq.Limiter) (leave func()) {
	ctx, cancel := context.WithCancel(soon(t))
	gone := make(chan error)
	for i := uint64(1); i <= 2; i++ {
		go func() {
			_, err := limiter.Acquire(ctx, fairq.MaxWait(fairq.Forever))
			gone <- err
		}()
		inLine(t, limiter, i)
	}
	return func() {
		cancel()
		is(t, <-gone, context.Canceled)
		is(t, <-gone, context.Canceled)
	}
}

func TestATicketTellsItsPosition(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		held := acquire(t, limiter)
		leave := twoInLine(t, limiter)
		ticket, err := limiter.NewTicket()
		ok(t, err)
		equal(t, ticket.LastPosition(), fairq.Position{Position: 0, Estimate: fairq.Unknown})
		end := make(chan *fairq.Permit)
		go func() {
			permit, err := limiter.Acquire(soon(t), fairq.MaxWait(fairq.Forever), fairq.WithTicket(ticket))
			if err != nil {
				t.Error(err)
			}
			end <- permit
		}()
		inLine(t, limiter, 3)
		asked, err := ticket.Position(soon(t))
		ok(t, err)
		equal(t, asked.Position, 3)
		equal(t, ticket.LastPosition().Position, 3)
		leave()
		ok(t, held.Close())
		permit := <-end
		equal(t, ticket.LastPosition().Position, 0)
		asked, err = ticket.Position(soon(t))
		ok(t, err)
		equal(t, asked.Position, 0)
		ok(t, permit.Close())
		allGivenBack(t, limiter)
	})
}

func TestNobodyWhoNeedNotWaitIsToldAPosition(t *testing.T) {
	onStores(t, func(t *testing.T, url string) {
		limiter := newLimiter(t, url, fairq.Limit(1))
		permit := acquire(t, limiter, fairq.OnPosition(func(p fairq.Position) { t.Errorf("told %v", p) }))
		ok(t, permit.Close())
	})
}
