package fairqhttp

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"fairq"
)

const (
	usualReadAhead = 64 * 1024
	usualKeepAlive = 15 * time.Second // proxies often cut after 30 s or 60
	longestLabel   = 256
)

// Option is an option of [Limit].
type Option func(*middleware)

// MaxWait is how long a request waits in line; by default as long as the limiter says.
func MaxWait(d time.Duration) Option {
	return func(m *middleware) { m.options = append(m.options, fairq.MaxWait(d)) }
}

// Cost is how much of the limit a request takes; 1 by default.
func Cost(of func(*http.Request) uint64) Option { return func(m *middleware) { m.cost = of } }

// Label is what operators see in the lists of holders and waiters. What is longer than labels are is cut.
func Label(of func(*http.Request) string) Option { return func(m *middleware) { m.label = of } }

// Positions has who waits see its place in line: the response begins as an event stream, with the event position and
// data such as {"position": 3, "estimate": 12.5} (null while not known) each time that it moves. The status 200 has
// gone out then: a refusal comes as the event rejected; the handler's headers are dropped; and if its response is no
// event stream with status 200, its writes fail and the stream ends with the event failed. Who need not wait gets the
// handler's response as it is.
func Positions() Option { return func(m *middleware) { m.positions = true } }

// KeepAlive is after how much quiet a comment is sent to who waits, with [Positions], so that proxies keep the
// connection; 15 s by default.
func KeepAlive(quiet time.Duration) Option { return func(m *middleware) { m.keepAlive = quiet } }

// ReadAhead is how long a request's body may be to be read before the request joins the line; 64 KiB by default. With 0
// none is. A body that the client sends only when told to (Expect: 100-continue) is left alone.
func ReadAhead(bytes int64) Option { return func(m *middleware) { m.readAhead = bytes } }

// IgnoreLoss lets a handler go on, and its response go out, when its permit is lost; it may look at the permit itself.
func IgnoreLoss() Option { return func(m *middleware) { m.ignoreLoss = true } }

// ErrorLog is where to tell what clients are not told; the standard logger by default.
func ErrorLog(logger *log.Logger) Option { return func(m *middleware) { m.log = logger } }

// Limit is a middleware that lets requests to a handler only under a permit of the limiter, which is held until the
// handler has returned. One that hijacks its connection must not return before it is done with it.
func Limit(limiter *fairq.Limiter, options ...Option) func(http.Handler) http.Handler {
	return LimitBy(func(*http.Request) *fairq.Limiter { return limiter }, options...)
}

// LimitBy is as [Limit], with a limiter for each request: of its tenant, say. A request for which there is nil passes
// without a permit.
func LimitBy(limiter func(*http.Request) *fairq.Limiter, options ...Option) func(http.Handler) http.Handler {
	m := middleware{limiter: limiter, keepAlive: usualKeepAlive, readAhead: usualReadAhead, log: log.Default()}
	for _, option := range options {
		option(&m)
	}
	return func(next http.Handler) http.Handler {
		limited := m
		limited.next = next
		return &limited
	}
}

// PermitFrom is the permit that the request with this context holds; nil if it has none.
func PermitFrom(ctx context.Context) *fairq.Permit {
	permit, _ := ctx.Value(permitKey{}).(*fairq.Permit)
	return permit
}

type permitKey struct{}

type middleware struct {
	next       http.Handler
	limiter    func(*http.Request) *fairq.Limiter
	options    []fairq.AcquireOption
	cost       func(*http.Request) uint64
	label      func(*http.Request) string
	positions  bool
	ignoreLoss bool
	keepAlive  time.Duration
	readAhead  int64
	log        *log.Logger
}

// ServeHTTP is as http.Handler has it.
func (m *middleware) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	limiter := m.limiter(r)
	if limiter == nil {
		m.next.ServeHTTP(w, r)
		return
	}
	r, err := m.read(r)
	if err != nil {
		http.Error(w, "the request's body could not be read", http.StatusBadRequest)
		return
	}
	to := newReply(w)
	permit, err := m.acquire(limiter, to, r)
	if err != nil {
		m.refuse(to, r, err)
		return
	}
	defer permit.Close()
	m.serve(permit, to, r)
}

// read reads a small body, so that net/http watches the connection from here on.
func (m *middleware) read(r *http.Request) (*http.Request, error) {
	if r.ProtoMajor != 1 || r.ContentLength <= 0 || r.ContentLength > m.readAhead || r.Header.Get("Expect") != "" {
		return r, nil
	}
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, err
	}
	read := r.WithContext(r.Context()) // a copy: a handler must not change its request
	read.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), r.Body}
	return read, nil
}

func (m *middleware) acquire(limiter *fairq.Limiter, to *reply, r *http.Request) (*fairq.Permit, error) {
	options := m.options[:len(m.options):len(m.options)]
	if m.cost != nil {
		options = append(options, fairq.Cost(m.cost(r)))
	}
	if m.label != nil {
		options = append(options, fairq.Label(fitting(m.label(r))))
	}
	if m.positions {
		return m.acquireShowing(limiter, to, r, options)
	}
	return limiter.Acquire(r.Context(), options...)
}

// fitting is a label that the library takes. What clients send as a path or a header may be longer, or no UTF-8.
func fitting(label string) string {
	label = strings.ToValidUTF8(label, string(utf8.RuneError))
	if len(label) <= longestLabel {
		return label
	}
	end := longestLabel
	for !utf8.RuneStart(label[end]) {
		end--
	}
	return label[:end]
}

// serve has the handler run under the permit.
func (m *middleware) serve(permit *fairq.Permit, to *reply, r *http.Request) {
	ctx := context.WithValue(r.Context(), permitKey{}, permit)
	if m.ignoreLoss {
		m.next.ServeHTTP(to.writer(), r.WithContext(ctx))
		to.finish()
		return
	}
	ctx, cancel := permit.Context(ctx)
	defer cancel()
	m.next.ServeHTTP(to.writer(), r.WithContext(ctx))
	lost := permit.Err()
	switch {
	case lost == nil:
		to.finish()
	case to.begun:
		m.log.Printf("fairqhttp: cut a response: %v", lost)
		panic(http.ErrAbortHandler)
	default:
		m.refuse(to, r, lost)
	}
}

// refuse tells why there is no permit, or none any more.
func (m *middleware) refuse(to *reply, r *http.Request, err error) {
	told := newRefusal(err)
	if told.status >= http.StatusInternalServerError {
		m.log.Printf("fairqhttp: refused a request: %v", err)
	}
	if to.waited {
		_ = to.tell(told.event())
		return
	}
	refuse(to.to, told, m.positions || acceptsEvents(r))
}
