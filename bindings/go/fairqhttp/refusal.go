package fairqhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"fairq"
)

// usualRetry is for Retry-After where nothing better is known.
const usualRetry = 5 * time.Second

const away = "The service is not available at the moment."

// refusals are the statuses that clients are told of, and how. All others are mistakes in the program.
var refusals = map[fairq.StatusCode]struct {
	status  int
	message string
}{
	fairq.ErrQueueFull:     {http.StatusTooManyRequests, "Too many are waiting already."},
	fairq.ErrTimedOut:      {http.StatusTooManyRequests, "No place became free in time."},
	fairq.ErrClosed:        {http.StatusServiceUnavailable, "The service is shutting down."},
	fairq.ErrUnavailable:   {http.StatusServiceUnavailable, away},
	fairq.ErrOverloaded:    {http.StatusServiceUnavailable, away},
	fairq.ErrConfiguration: {http.StatusServiceUnavailable, away},
	fairq.ErrNoSuchLimiter: {http.StatusServiceUnavailable, away},
	fairq.ErrServer:        {http.StatusServiceUnavailable, away},
	fairq.ErrRevoked:       {http.StatusServiceUnavailable, "An operator took the place in line away."},
	fairq.ErrPermitLost:    {http.StatusServiceUnavailable, "The request lost its place."},
	fairq.ErrImpossible:    {http.StatusBadRequest, "The request costs more than is ever admitted."},
	fairq.ErrCancelled:     {statusClientGone, "The client went away."},
}

// statusClientGone is what access logs know as "client closed request".
const statusClientGone = 499

// refusal is an error as HTTP has it.
type refusal struct {
	status     int
	Error      string `json:"error"`
	Message    string `json:"message"`
	RetryAfter *int64 `json:"retry_after"` // in whole seconds; null where trying again does not help
}

func newRefusal(err error) refusal {
	code := codeOf(err)
	told, known := refusals[code]
	if !known {
		return refusal{status: http.StatusInternalServerError, Error: "internal", Message: "The service has failed."}
	}
	r := refusal{status: told.status, Error: strings.ReplaceAll(code.String(), " ", "_"), Message: told.message}
	if told.status == http.StatusTooManyRequests || told.status == http.StatusServiceUnavailable {
		seconds := retryAfter(err)
		r.RetryAfter = &seconds
	}
	return r
}

// codeOf is the status of an error; 0 for what is none of ours.
func codeOf(err error) (code fairq.StatusCode) {
	switch {
	case errors.As(err, &code):
		return code
	case errors.Is(err, context.Canceled):
		return fairq.ErrCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return fairq.ErrTimedOut
	}
	return 0
}

func retryAfter(err error) int64 {
	after := usualRetry
	var known *fairq.Error
	if errors.As(err, &known) {
		if told, ok := known.RetryAfter(); ok {
			after = told
		}
	}
	return int64(math.Max(1, math.Ceil(after.Seconds())))
}

// event is the refusal as an SSE event. An EventSource that is not closed comes back after retry.
func (r refusal) event() string {
	retry := ""
	if r.RetryAfter != nil {
		retry = fmt.Sprintf("retry: %d\n", *r.RetryAfter*1000)
	}
	return retry + event("rejected", r)
}

// event is an SSE event.
func event(name string, data any) string {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // our own structs can be marshalled
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", name, text)
}

// Refuse answers a request with what err, of [fairq.Limiter.Acquire], means to its client: see the package's
// documentation. It is for handlers that acquire by themselves, and have not begun their response.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	refuse(w, newRefusal(err), acceptsEvents(r))
}

func refuse(w http.ResponseWriter, told refusal, asEvent bool) {
	header := w.Header()
	header.Del("Content-Length") // of a response that has not come about
	header.Del("Content-Encoding")
	if told.RetryAfter != nil {
		header.Set("Retry-After", strconv.FormatInt(*told.RetryAfter, 10))
	}
	if asEvent {
		setStreamHeaders(header)
		w.WriteHeader(told.status)
		_, _ = w.Write([]byte(told.event()))
		return
	}
	header.Set("Content-Type", "application/json")
	w.WriteHeader(told.status)
	_ = json.NewEncoder(w).Encode(told)
}

func setStreamHeaders(header http.Header) {
	header.Set("Content-Type", "text/event-stream; charset=utf-8")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no") // nginx would collect the events
}

func acceptsEvents(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/event-stream")
}
