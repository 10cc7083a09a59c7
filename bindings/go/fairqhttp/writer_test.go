package fairqhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairq"
	"fairq/fairqhttp"
)

// plain is a ResponseWriter without any of the optional interfaces.
type plain struct{ to *httptest.ResponseRecorder }

func (p plain) Header() http.Header            { return p.to.Header() }
func (p plain) Write(data []byte) (int, error) { return p.to.Write(data) }
func (p plain) WriteHeader(status int)         { p.to.WriteHeader(status) }

func TestTheWriterCanDoWhatTheServersCan(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	can := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, flushes := w.(http.Flusher)
		_, hijacks := w.(http.Hijacker)
		fmt.Fprint(w, flushes, hijacks)
	})
	limited := fairqhttp.Limit(limiter)(can)
	equal(t, text(t, get(t, serve(t, limited))), "true true")
	recorder := httptest.NewRecorder()
	limited.ServeHTTP(recorder, httptest.NewRequest("GET", "/", nil))
	equal(t, recorder.Body.String(), "true false")
	recorder = httptest.NewRecorder()
	limited.ServeHTTP(plain{recorder}, httptest.NewRequest("GET", "/", nil))
	equal(t, recorder.Body.String(), "false false")
}

func TestAConnectionIsHijacked(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	url := serve(t, fairqhttp.Limit(limiter)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")
	})))
	equal(t, text(t, get(t, url)), "own")
	standing(t, limiter, 0, 0)
}

func TestAFileIsServed(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	file := filepath.Join(t.TempDir(), "file")
	ok(t, os.WriteFile(file, []byte(strings.Repeat("text ", 100_000)), 0o600))
	url := serve(t, fairqhttp.Limit(limiter)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, is := w.(io.ReaderFrom); !is {
			panic("no sendfile")
		}
		http.ServeFile(w, r, file)
	})))
	response := get(t, url)
	equal(t, response.Header.Get("Content-Type"), "text/plain; charset=utf-8")
	equal(t, len(text(t, response)), 500_000)
}

func TestInformationDoesNotBeginTheResponse(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	url := serve(t, fairqhttp.Limit(limiter)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
	})))
	equal(t, get(t, url).StatusCode, http.StatusTeapot)
}

// broken is a ResponseWriter whose client cannot be reached.
type broken struct {
	plain
	fail func() error
}

func (b broken) Write([]byte) (int, error) { return 0, b.fail() }

func TestAWriterThatFailsLeavesTheLine(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	held := acquire(t, limiter)
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was let in") })
	limited := fairqhttp.Limit(limiter, fairqhttp.Positions())(never)
	fails := func() error { return io.ErrClosedPipe }
	panics := func() error { panic(http.ErrAbortHandler) }
	for _, fail := range []func() error{fails, panics} {
		func() {
			defer func() { _ = recover() }()
			limited.ServeHTTP(broken{plain{httptest.NewRecorder()}, fail}, httptest.NewRequest("GET", "/", nil))
		}()
		standing(t, limiter, 1, 0)
	}
	ok(t, held.Close())
	standing(t, limiter, 0, 0)
}
