package fairqhttp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"fairq"
	"fairq/fairqhttp"
)

// gated is a handler that streams until it is told to go on.
type gated struct {
	begun, goOn chan struct{}
}

func newGated() *gated { return &gated{make(chan struct{}, 10), make(chan struct{})} }

func (g *gated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "begin")
	w.(http.Flusher).Flush()
	g.begun <- struct{}{}
	select {
	case <-g.goOn:
		fmt.Fprintln(w, "end")
	case <-r.Context().Done():
	}
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "hello %s", body)
})

func TestThePermitIsHeldWhileTheHandlerStreams(t *testing.T) {
	limiter, handler := newLimiter(t, fairq.Limit(1)), newGated()
	url := serve(t, fairqhttp.Limit(limiter)(handler))
	response := get(t, url)
	<-handler.begun
	standing(t, limiter, 1, 0)
	close(handler.goOn)
	equal(t, text(t, response), "begin\nend\n")
	standing(t, limiter, 0, 0)
}

func TestAClientThatGoesAwayGivesBack(t *testing.T) {
	limiter, handler := newLimiter(t, fairq.Limit(1)), newGated()
	url := serve(t, fairqhttp.Limit(limiter)(handler))
	response := get(t, url)
	<-handler.begun
	response.Body.Close()
	standing(t, limiter, 0, 0)
}

func TestAClientThatGoesAwayLeavesTheLine(t *testing.T) {
	for _, body := range []string{"", "a body that nobody has read", strings.Repeat("x", 50_000)} {
		for _, options := range [][]fairqhttp.Option{nil, {fairqhttp.Positions()}} {
			limiter := newLimiter(t, fairq.Limit(1))
			url := serve(t, fairqhttp.Limit(limiter, options...)(hello))
			held := acquire(t, limiter)
			ctx, cancel := context.WithCancel(context.Background())
			gone := make(chan error)
			go func() {
				response, err := http.DefaultClient.Do(request(t, "POST", url, body).WithContext(ctx))
				if err == nil {
					_, err = io.ReadAll(response.Body)
					response.Body.Close()
				}
				gone <- err
			}()
			standing(t, limiter, 1, 1)
			cancel()
			equal(t, <-gone != nil, true)
			standing(t, limiter, 1, 0)
			ok(t, held.Close())
		}
	}
}

func TestTheHandlerHasTheBodyAndThePermit(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(5))
	url := serve(t, fairqhttp.Limit(limiter, fairqhttp.Cost(func(*http.Request) uint64 { return 3 }))(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			permit := fairqhttp.PermitFrom(r.Context())
			body, err := io.ReadAll(r.Body)
			fmt.Fprint(w, permit.Valid(), permit.Cost(), len(body), err)
		})))
	for _, size := range []int{0, 5, 64 * 1024, 1024 * 1024} {
		equal(t, text(t, do(t, request(t, "POST", url, strings.Repeat("x", size)))), fmt.Sprint(true, 3, size, nil))
	}
	chunked := request(t, "POST", url, "")
	chunked.Body, chunked.ContentLength = io.NopCloser(strings.NewReader("12345")), -1
	equal(t, text(t, do(t, chunked)), fmt.Sprint(true, 3, 5, nil))
	reluctant := request(t, "POST", url, "12345")
	reluctant.Header.Set("Expect", "100-continue")
	equal(t, text(t, do(t, reluctant)), fmt.Sprint(true, 3, 5, nil))
	equal(t, fairqhttp.PermitFrom(context.Background()), nil)
	standing(t, limiter, 0, 0)
}

func TestABodyThatBreaksOffTakesNoPermit(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	url := serve(t, fairqhttp.Limit(limiter)(hello))
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	ok(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
	ok(t, conn.(*net.TCPConn).CloseWrite())
	answer, err := io.ReadAll(conn)
	ok(t, err)
	equal(t, strings.HasPrefix(string(answer), "HTTP/1.1 400"), true)
	s, err := limiter.Status(context.Background())
	ok(t, err)
	equal(t, s.GrantedTotal, 0)
}

func TestAPanicGivesBack(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	url := serve(t, fairqhttp.Limit(limiter)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("handler") })))
	response, err := http.DefaultClient.Do(request(t, "GET", url, ""))
	if err == nil {
		response.Body.Close()
		t.Fatal("there was a response")
	}
	standing(t, limiter, 0, 0)
}

// refusing is a limiter that refuses what a middleware with the option asks for, and how clients are told.
type refusing struct {
	limiter *fairq.Limiter
	option  fairqhttp.Option
	status  int
	error   string
}

func TestRefusals(t *testing.T) {
	full, taken := newLimiter(t, fairq.Limit(1), fairq.MaxQueue(0)), newLimiter(t, fairq.Limit(1))
	held, alsoHeld := acquire(t, full), acquire(t, taken)
	nothing := fairqhttp.KeepAlive(time.Hour)
	costs := func(n uint64) fairqhttp.Option { return fairqhttp.Cost(func(*http.Request) uint64 { return n }) }
	for _, c := range []refusing{
		{full, nothing, 429, "queue_full"},
		{taken, fairqhttp.MaxWait(time.Millisecond), 429, "timed_out"},
		{awayLimiter(t), nothing, 503, "unavailable"},
		{newLimiter(t), nothing, 503, "no_such_limiter"},
		{closedLimiter(t), nothing, 503, "closed"},
		{taken, costs(2), 400, "impossible"},
		{taken, costs(0), 500, "internal"},
	} {
		t.Run(c.error, c.check)
	}
	ok(t, held.Close())
	ok(t, alsoHeld.Close())
}

func awayLimiter(t *testing.T) *fairq.Limiter {
	client, err := fairq.Open("redis://127.0.0.1:1", fairq.ConnectTimeout(100*time.Millisecond))
	ok(t, err)
	t.Cleanup(func() { ok(t, client.Close()) })
	limiter, err := client.Limiter("x", fairq.Limit(1), fairq.OutageFail())
	ok(t, err)
	return limiter
}

func closedLimiter(t *testing.T) *fairq.Limiter {
	client, err := fairq.Open("memory:")
	ok(t, err)
	limiter, err := client.Limiter("x", fairq.Limit(1))
	ok(t, err)
	ok(t, client.Close())
	return limiter
}

func (c refusing) check(t *testing.T) {
	told := &lines{}
	url := serve(t, fairqhttp.Limit(c.limiter, c.option, fairqhttp.ErrorLog(log.New(told, "", 0)))(hello))
	response := get(t, url)
	equal(t, response.StatusCode, c.status)
	equal(t, response.Header.Get("Content-Type"), "application/json")
	refusal, retry := refusalOf(t, text(t, response)), response.Header.Get("Retry-After")
	equal(t, refusal.Error, c.error)
	equal(t, refusal.RetryAfter != nil, c.status == 429 || c.status == 503)
	if refusal.RetryAfter == nil {
		equal(t, retry, "")
	} else {
		equal(t, retry, strconv.Itoa(*refusal.RetryAfter))
		equal(t, *refusal.RetryAfter >= 1, true)
	}
	equal(t, strings.Contains(told.String(), "refused"), c.status >= 500)

	asEvent := request(t, "GET", url, "")
	asEvent.Header.Set("Accept", "text/html, text/event-stream;q=0.9")
	response = do(t, asEvent)
	equal(t, response.StatusCode, c.status)
	equal(t, response.Header.Get("Content-Type"), "text/event-stream; charset=utf-8")
	equal(t, strings.Contains(text(t, response), "event: rejected\ndata: {\"error\":\""+c.error+"\""), true)
}

func TestRetryAfterIsWholeSecondsAndAtLeastOne(t *testing.T) {
	w := httptest.NewRecorder()
	fairqhttp.Refuse(w, httptest.NewRequest("GET", "/", nil), fairq.ErrQueueFull)
	equal(t, w.Header().Get("Retry-After"), "5") // where nothing better is known
	equal(t, w.Code, 429)
	limiter := newLimiter(t, fairq.Limit(1), fairq.MaxQueue(0))
	ok(t, acquire(t, limiter).Close()) // held for next to no time
	held := acquire(t, limiter)
	defer held.Close()
	_, err := limiter.Acquire(context.Background())
	w = httptest.NewRecorder()
	fairqhttp.Refuse(w, httptest.NewRequest("GET", "/", nil), fmt.Errorf("wrapped: %w", err))
	equal(t, w.Header().Get("Retry-After"), "1")
	w = httptest.NewRecorder()
	fairqhttp.Refuse(w, httptest.NewRequest("GET", "/", nil), context.Canceled)
	equal(t, w.Code, 499)
	w = httptest.NewRecorder()
	fairqhttp.Refuse(w, httptest.NewRequest("GET", "/", nil), context.DeadlineExceeded)
	equal(t, w.Code, 429)
}

func TestALimiterForEachRequest(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	url := serve(t, fairqhttp.LimitBy(func(r *http.Request) *fairq.Limiter {
		if r.URL.Path == "/free" {
			return nil
		}
		return limiter
	}, fairqhttp.MaxWait(0), fairqhttp.Label(func(r *http.Request) string { return r.Header.Get("Tenant") }))(hello))
	long := request(t, "GET", url, "")
	long.Header.Set("Tenant", strings.Repeat("€", 200)+"\xff")
	equal(t, do(t, long).StatusCode, 200)
	standing(t, limiter, 0, 0)
	held := acquire(t, limiter)
	equal(t, get(t, url).StatusCode, 429)
	equal(t, get(t, url+"/free").StatusCode, 200)
	ok(t, held.Close())
}

func TestAPermitIsLostBeforeTheResponse(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1), fairq.MaxHold(20*time.Millisecond))
	told := &lines{}
	url := serve(t, fairqhttp.Limit(limiter, fairqhttp.ErrorLog(log.New(told, "", 0)))(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			<-r.Context().Done()
		})))
	response := get(t, url)
	equal(t, response.StatusCode, 503)
	equal(t, refusalOf(t, text(t, response)).Error, "permit_lost")
	equal(t, strings.Contains(told.String(), "lost"), true)
}

func TestAPermitIsLostInTheMiddleOfTheResponse(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1), fairq.MaxHold(20*time.Millisecond))
	handler := newGated()
	quiet := fairqhttp.ErrorLog(log.New(io.Discard, "", 0))
	_, err := io.ReadAll(get(t, serve(t, fairqhttp.Limit(limiter, quiet)(handler))).Body)
	equal(t, err == io.ErrUnexpectedEOF, true)

	patient := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-fairqhttp.PermitFrom(r.Context()).Lost()
		fmt.Fprint(w, r.Context().Err())
	})
	equal(t, text(t, get(t, serve(t, fairqhttp.Limit(limiter, fairqhttp.IgnoreLoss())(patient)))), "<nil>")
}
