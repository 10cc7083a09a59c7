package fairq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fairq"
	"fairq/internal/redistest"
)

// patience is after how long something is broken.
const patience = redistest.Patience

func TestMain(m *testing.M) {
	if role := os.Getenv("FAIRQ_TEST_CHILD"); role != "" {
		child(role)
		return
	}
	fairq.SetPollMS(100)
	code := m.Run()
	redistest.EndShared()
	os.Exit(code)
}

// onStores runs a test in memory, and on a Redis server.
func onStores(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("memory", func(t *testing.T) { test(t, newMemory()) })
	t.Run("redis", func(t *testing.T) { test(t, redistest.Shared(t).URL()) })
}

var count atomic.Uint64

func newName() string { return fmt.Sprintf("%d-%d", os.Getpid(), count.Add(1)) }

// newMemory is a world of its own.
func newMemory() string { return "memory:" + newName() }

// soon is a context for what must not take for ever.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, url string, options ...fairq.ClientOption) *fairq.Client {
	t.Helper()
	client, err := fairq.Open(url, options...)
	ok(t, err)
	t.Cleanup(func() { ok(t, client.Close()) })
	return client
}

// limiterOf opens a new limiter on a client.
func limiterOf(t testing.TB, client *fairq.Client, options ...fairq.LimiterOption) *fairq.Limiter {
	t.Helper()
	limiter, err := client.Limiter(newName(), options...)
	ok(t, err)
	return limiter
}

// newLimiter opens a client and a new limiter.
func newLimiter(t testing.TB, url string, options ...fairq.LimiterOption) *fairq.Limiter {
	t.Helper()
	return limiterOf(t, open(t, url), options...)
}

func acquire(t testing.TB, limiter *fairq.Limiter, options ...fairq.AcquireOption) *fairq.Permit {
	t.Helper()
	permit, err := limiter.Acquire(soon(t), append([]fairq.AcquireOption{fairq.MaxWait(fairq.Forever)}, options...)...)
	ok(t, err)
	return permit
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, and not %v", err, want)
	}
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%v, and not %v", got, want)
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// status asks until there is an answer: on a busy machine the server may take its time.
func status(t testing.TB, limiter *fairq.Limiter) (status fairq.Status) {
	t.Helper()
	eventually(t, "the store answers", func() bool {
		var err error
		status, err = limiter.Status(soon(t))
		if errors.Is(err, fairq.ErrUnavailable) {
			return false
		}
		ok(t, err)
		return true
	})
	return status
}

// inLine waits until so many wait.
func inLine(t testing.TB, limiter *fairq.Limiter, waiting uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d wait", waiting), func() bool { return status(t, limiter).Waiting == waiting })
}

// allGivenBack waits until nothing is held and nobody waits.
func allGivenBack(t testing.TB, limiter *fairq.Limiter) {
	t.Helper()
	eventually(t, "nothing is held", func() bool {
		s := status(t, limiter)
		return s.Used == 0 && s.Holders == 0 && s.Waiting == 0
	})
}

// rounds is how often a test does something: less where each round is slower, or time is short.
func rounds(n int) int {
	if testing.Short() {
		return n / 20
	}
	return n
}

// ofProcess reads a number of /proc/self/status: Threads, VmRSS (in KiB).
func ofProcess(t testing.TB, what string) int {
	t.Helper()
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skipf("only Linux tells: %v", err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if words[0] == what+":" {
			n, err := strconv.Atoi(words[1])
			ok(t, err)
			return n
		}
	}
	t.Fatalf("no %s", what)
	return 0
}

// goroutinesAsBefore waits until there are not more than before.
func goroutinesAsBefore(t testing.TB, before int) {
	t.Helper()
	eventually(t, "no goroutine is left over", func() bool { return runtime.NumGoroutine() <= before })
}
