package fairqhttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairq"
)

const patience = 60 * time.Second

var count atomic.Uint64

func newLimiter(t *testing.T, options ...fairq.LimiterOption) *fairq.Limiter {
	t.Helper()
	client, err := fairq.Open(fmt.Sprintf("memory:http-%d-%d", os.Getpid(), count.Add(1)))
	ok(t, err)
	t.Cleanup(func() { ok(t, client.Close()) })
	limiter, err := client.Limiter("http", options...)
	ok(t, err)
	return limiter
}

// serve starts a server. What it logs is read by the function.
func serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func acquire(t *testing.T, limiter *fairq.Limiter) *fairq.Permit {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	permit, err := limiter.Acquire(ctx, fairq.MaxWait(fairq.Forever))
	ok(t, err)
	return permit
}

// request makes a request that ends with the test at the latest.
func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	ok(t, err)
	return r
}

func do(t *testing.T, r *http.Request) *http.Response {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	ok(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func get(t *testing.T, url string) *http.Response { return do(t, request(t, "GET", url, "")) }

func text(t *testing.T, response *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(response.Body)
	ok(t, err)
	return string(all)
}

// event reads the next SSE event, or comment, as its lines.
func event(t *testing.T, from *bufio.Scanner) string {
	t.Helper()
	var lines []string
	for from.Scan() && from.Text() != "" {
		lines = append(lines, from.Text())
	}
	ok(t, from.Err())
	return strings.Join(lines, "\n")
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%v, and not %v", got, want)
	}
}

func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func standing(t testing.TB, limiter *fairq.Limiter, used, waiting uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d are held and %d wait", used, waiting), func() bool {
		s, err := limiter.Status(context.Background())
		ok(t, err)
		return s.Used == used && s.Waiting == waiting
	})
}

type refusal struct {
	Error      string `json:"error"`
	Message    string `json:"message"`
	RetryAfter *int   `json:"retry_after"`
}

func refusalOf(t *testing.T, data string) (r refusal) {
	t.Helper()
	ok(t, json.Unmarshal([]byte(data), &r))
	equal(t, r.Message != "", true)
	return r
}

// lines is a log to be read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
