package fairqhttp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fairq"
	"fairq/fairqhttp"
)

func streams(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Own", "header")
	w.WriteHeader(http.StatusOK)
	fmt.Fprint(w, "data: answer\n\n")
	w.(http.Flusher).Flush()
}

func positionIn(t *testing.T, event string) (position uint64) {
	t.Helper()
	var told struct {
		Position uint64   `json:"position"`
		Estimate *float64 `json:"estimate"`
	}
	data := strings.TrimPrefix(event, "event: position\ndata: ")
	equal(t, data != event && strings.Contains(data, `"estimate"`), true)
	ok(t, json.Unmarshal([]byte(data), &told))
	return told.Position
}

func TestWhoWaitsSeesItsPlaceInLine(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1), fairq.Poll(20*time.Millisecond))
	url := serve(t, fairqhttp.Limit(limiter, fairqhttp.Positions())(http.HandlerFunc(streams)))
	held := acquire(t, limiter)
	first := get(t, url)
	equal(t, first.StatusCode, 200)
	equal(t, first.Header.Get("Content-Type"), "text/event-stream; charset=utf-8")
	equal(t, first.Header.Get("Own"), "")
	second := get(t, url)
	events := bufio.NewScanner(second.Body)
	equal(t, positionIn(t, event(t, events)), 2)
	first.Body.Close()
	equal(t, positionIn(t, event(t, events)), 1)
	ok(t, held.Close())
	equal(t, event(t, events), "data: answer")
	equal(t, event(t, events), "")
	standing(t, limiter, 0, 0)
}

func TestWhoNeedNotWaitGetsTheResponseAsItIs(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	url := serve(t, fairqhttp.Limit(limiter, fairqhttp.Positions())(http.HandlerFunc(streams)))
	response := get(t, url)
	equal(t, response.Header.Get("Own"), "header")
	equal(t, response.Header.Get("Content-Type"), "text/event-stream")
	equal(t, text(t, response), "data: answer\n\n")
}

func TestARefusalAfterWaitingIsAnEvent(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	held := acquire(t, limiter)
	url := serve(t, fairqhttp.Limit(limiter, fairqhttp.Positions(), fairqhttp.MaxWait(100*time.Millisecond))(hello))
	response := get(t, url)
	equal(t, response.StatusCode, 200)
	events := bufio.NewScanner(response.Body)
	equal(t, positionIn(t, event(t, events)), 1)
	last := event(t, events)
	equal(t, strings.HasPrefix(last, "retry: 5000\nevent: rejected\ndata: "), true)
	data := last[strings.LastIndex(last, "data: ")+len("data: "):]
	equal(t, refusalOf(t, data).Error, "timed_out")
	equal(t, event(t, events), "")
	ok(t, held.Close())

	// Without a word of the line before, it is a response of its own.
	full := newLimiter(t, fairq.Limit(1), fairq.MaxQueue(0))
	held = acquire(t, full)
	response = get(t, serve(t, fairqhttp.Limit(full, fairqhttp.Positions())(hello)))
	equal(t, response.StatusCode, 429)
	equal(t, response.Header.Get("Content-Type"), "text/event-stream; charset=utf-8")
	ok(t, held.Close())
}

func TestWhatIsNoEventStreamDoesNotFitIntoOne(t *testing.T) {
	cases := map[int]http.HandlerFunc{
		200: func(w http.ResponseWriter, _ *http.Request) {
			if _, err := fmt.Fprint(w, "plain text"); err == nil {
				panic("it was sent")
			}
		},
		404: http.NotFound,
		// Nothing said is an empty response of status 200.
		0: func(http.ResponseWriter, *http.Request) {},
	}
	for status, handler := range cases {
		limiter := newLimiter(t, fairq.Limit(1))
		url := serve(t, fairqhttp.Limit(limiter, fairqhttp.Positions())(handler))
		held := acquire(t, limiter)
		response := get(t, url)
		ok(t, held.Close())
		all := text(t, response)
		if status == 0 {
			status = 200
		}
		data := fmt.Sprintf(`{"error":"failed","status":%d,"message":"The answer is no event stream."}`, status)
		failed := "event: failed\ndata: " + data + "\n\n"
		if !strings.HasSuffix(all, failed) || strings.Contains(all, "plain") {
			t.Errorf("%d: %q", status, all)
		}
	}
}

func TestAQuietLineIsKeptAlive(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1))
	held := acquire(t, limiter)
	limit := fairqhttp.Limit(limiter, fairqhttp.Positions(), fairqhttp.KeepAlive(time.Millisecond))
	url := serve(t, limit(http.HandlerFunc(streams)))
	events := bufio.NewScanner(get(t, url).Body)
	for event(t, events) != ": keep-alive" {
	}
	equal(t, event(t, events) != "", true)
	ok(t, held.Close())
	for event(t, events) != "data: answer" {
	}
}

func TestAPermitThatIsLostBeforeAStreamThatWaited(t *testing.T) {
	limiter := newLimiter(t, fairq.Limit(1), fairq.MaxHold(50*time.Millisecond))
	url := serve(t, fairqhttp.Limit(limiter, fairqhttp.Positions())(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })))
	held := acquire(t, limiter)
	response := get(t, url)
	equal(t, response.StatusCode, 200)
	<-held.Lost()
	equal(t, strings.Contains(text(t, response), "event: rejected\ndata: {\"error\":\"permit_lost\""), true)
}
