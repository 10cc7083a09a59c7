package fairq

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairq/internal/cbench"
	"fairq/internal/redistest"
)

func benchLimiter(b *testing.B, url string, options ...LimiterOption) *Limiter {
	b.Helper()
	client, err := Open(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	limiter, err := client.Limiter("bench-"+b.Name(), options...)
	if err != nil {
		b.Fatal(err)
	}
	return limiter
}

// pairs takes and gives back so many permits that nobody else wants.
func pairs(b *testing.B, ctx context.Context, limiter *Limiter, count int, giveBack func(*Permit) error) {
	for i := 0; i < count; i++ {
		permit, err := limiter.Acquire(ctx)
		if err == nil {
			err = giveBack(permit)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// An uncontended pair in memory. added-ns is what Go takes of it: the quickest of many rounds less the quickest of as
// many rounds in C, taken in turns, so that a busy machine does the same to both.
func BenchmarkPair(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ways := map[string]func(*Permit) error{
		"Close":   (*Permit).Close,
		"Release": func(permit *Permit) error { return permit.Release(ctx) },
	}
	for name, giveBack := range ways {
		b.Run(name, func(b *testing.B) {
			const round = 200
			limiter := benchLimiter(b, "memory:"+b.Name(), Limit(4))
			inGo, inC := time.Duration(1<<62), time.Duration(1<<62)
			b.ReportAllocs()
			b.ResetTimer()
			for left := b.N; left > 0; left -= round {
				start := time.Now()
				pairs(b, ctx, limiter, round, giveBack)
				middle := time.Now()
				b.StopTimer()
				if !cbench.Pairs(uintptr(limiter.handle), round) {
					b.Fatal("refused")
				}
				end := time.Now()
				b.StartTimer()
				inGo, inC = shorter(inGo, middle.Sub(start)), shorter(inC, end.Sub(middle))
			}
			b.ReportMetric(float64(inC.Nanoseconds())/round, "core-ns")
			b.ReportMetric(float64((inGo-inC).Nanoseconds())/round, "added-ns")
		})
	}
}

func shorter(a, b time.Duration) time.Duration {
	if b < a {
		return b
	}
	return a
}

// Ten thousand goroutines in line: how many threads they take, and how much memory each.
func BenchmarkTenThousandWait(b *testing.B) {
	const waiters = 10_000
	threads, size := 0, 0
	for i := 0; i < b.N; i++ {
		limiter := benchLimiter(b, "memory:"+b.Name(), Limit(1))
		ctx, cancel := context.WithCancel(context.Background())
		held, err := limiter.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		before, memory := ofProcess("Threads"), ofProcess("VmRSS")
		var all sync.WaitGroup
		for j := 0; j < waiters; j++ {
			all.Add(1)
			go func() {
				defer all.Done()
				_, _ = limiter.Acquire(ctx, MaxWait(Forever))
			}()
		}
		for waiting := uint64(0); waiting < waiters; {
			status, err := limiter.Status(ctx)
			if err != nil {
				b.Fatal(err)
			}
			waiting = status.Waiting
		}
		threads = longer(threads, ofProcess("Threads")-before)
		size = longer(size, ofProcess("VmRSS")-memory) // later rounds use the memory of earlier ones again
		cancel()
		all.Wait()
		_ = held.Close()
	}
	b.ReportMetric(float64(threads), "more-threads")
	b.ReportMetric(float64(size)*1024/waiters, "B/waiter")
}

func longer(a, b int) int {
	if a < b {
		return b
	}
	return a
}

func ofProcess(what string) int {
	text, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(text), "\n") {
		if rest := strings.TrimPrefix(line, what+":"); rest != line {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// A limiter on Redis that is never idle: 64 goroutines take and give back at once.
func BenchmarkSaturated(b *testing.B) {
	limiter := benchLimiter(b, redistest.Shared(b).URL(), Limit(16))
	ctx := context.Background()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for i := 0; i < 64; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for left.Add(-1) >= 0 {
				permit, err := limiter.Acquire(ctx, MaxWait(Forever))
				if err != nil {
					b.Error(err)
					return
				}
				_ = permit.Close()
			}
		}()
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "grants/s")
}
