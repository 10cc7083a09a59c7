package fairq

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fairq/internal/capi"
)

// Client is one instance of fairq: it has a connection or two and a thread or two, however many limiters and waiters it
// has. Any goroutine may use it. It has to be closed, or what it holds is held until it is collected as garbage, or the
// process has ended and its lease is over.
type Client struct {
	handle   capi.Handle
	queue    *queue
	calls    chan struct{} // one in it for each call that waits for the store
	inMemory bool
	patience time.Duration // how long the store may answer nobody before a release is left to the background
	opened   time.Time
	answered atomic.Int64 // when the store last answered a call: nanoseconds after opened
	onLeak   func(Leak)
	leaked   atomic.Uint64

	drain sync.Once
	end   sync.Once
	ended chan struct{}
}

// Open opens a client. The URL is memory: for this process alone (memory:NAME is a world of its own); for a cluster of
// processes redis://host or unix:///path/to/socket, redis-cluster://host:port,host:port for a Redis Cluster,
// redis-sentinel://host:port,host:port/SERVICE for a master that sentinels know, and each of these with rediss in the
// place of redis by TLS. It connects with the first request, and does not block; see [Client.Check]. The environment variable FAIRQ_LOG (warn, info …) has the library tell what it has to
// say on standard error.
//
// It fails with [ErrInvalid] for what means nothing, and with [ErrConfiguration] if the library is of another version
// than this package was compiled for.
func Open(url string, options ...ClientOption) (*Client, error) {
	if err := versionProblem; err != nil {
		return nil, err
	}
	opened := clientSettings{ioTimeout: 2 * time.Second}
	for _, option := range options {
		option.toClient(&opened)
	}
	c := &Client{
		calls:    make(chan struct{}, MaxCalls),
		inMemory: url == "" || strings.HasPrefix(url, "memory:"),
		patience: patience(opened.ioTimeout),
		opened:   time.Now(),
		onLeak:   opened.onLeak,
		ended:    make(chan struct{}),
	}
	err := opened.with(func(config capi.Handle) (failure *capi.Failure) {
		c.handle, failure = capi.OpenClient(url, config)
		return failure
	})
	if err != nil {
		return nil, err
	}
	if c.queue, err = newQueue(); err != nil {
		capi.FreeClient(c.handle)
		return nil, err
	}
	runtime.SetFinalizer(c, (*Client).free)
	return c, nil
}

// patience is the library's own for a release, which it may well need in full.
func patience(ioTimeout time.Duration) time.Duration {
	if ioTimeout < 0 || ioTimeout > Forever/2 {
		return Forever
	}
	return 2 * ioTimeout
}

// free is for a client that was forgotten: nobody waits, and nothing is held.
func (c *Client) free() {
	capi.FreeClient(c.handle)
	// In the background, since it waits for the poller, and finalizers wait for one another.
	go c.queue.close()
}

// Limiter opens the limiter with this name, 1 to 256 bytes of UTF-8. Without [Limit] it is one that others have
// declared. All that open one name on one client have the same limiter. Does not block.
//
// It fails with [ErrInvalid] or [ErrClosed].
func (c *Client) Limiter(name string, options ...LimiterOption) (*Limiter, error) {
	var declared settings
	for _, option := range options {
		option.toLimiter(&declared)
	}
	l := &Limiter{client: c, name: name}
	err := declared.with(func(config capi.Handle) (failure *capi.Failure) {
		l.handle, failure = capi.OpenLimiter(c.handle, name, config)
		return failure
	})
	runtime.KeepAlive(c)
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(l, (*Limiter).free)
	return l, nil
}

// Check connects now, and looks whether the server is fit: its version, the rights of the user. Blocks until the
// context ends, and for at most the options [ConnectTimeout] and [IOTimeout] together.
//
// It fails with [ErrUnavailable], [ErrConfiguration], [ErrServer], [ErrClosed], or the context's error.
func (c *Client) Check(ctx context.Context) error {
	return c.call(ctx, func() error { return failed(capi.CheckClient(c.handle)) })
}

// Leaked is how many permits were collected as garbage before they were given back; see [OnLeak].
func (c *Client) Leaked() uint64 { return c.leaked.Load() }

// Close closes the client at once: every waiter gets [ErrClosed], what is held is taken back and lost, all threads and
// goroutines of the client end. Blocks for a few seconds at most, for as long as the store takes to answer. May be
// called more than once, and during a [Client.Shutdown], which it cuts short. It always returns nil.
func (c *Client) Close() error {
	c.end.Do(func() { c.finish(0) })
	return nil
}

// Shutdown closes the client in peace: every waiter gets [ErrClosed], and nobody is admitted any more; what is held
// stays so until it is given back. Blocks until all is, or the context ends: then the rest is taken back, as by
// [Client.Close], and the context's error returned.
func (c *Client) Shutdown(ctx context.Context) error {
	c.drain.Do(func() {
		go func() {
			c.finish(capi.Forever)
			close(c.ended)
		}()
	})
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		_ = c.Close()
		<-c.ended
		return ctx.Err()
	}
}

// finish closes what the library has of the client, and then what Go has.
func (c *Client) finish(drainMS uint64) {
	// It could only say that this is no client, or a parent's.
	_ = capi.CloseClient(c.handle, drainMS)
	c.queue.collect()
	c.queue.close()
	runtime.KeepAlive(c)
}

// versionProblem is found once, when the program starts, and told to whoever opens a client.
var versionProblem = checkVersion(capi.Version(), capi.HeaderVersion())

// checkVersion compares the library's version with that of the header that this package was compiled with.
func checkVersion(library string, header [3]int) error {
	var major, minor, patch int
	_, err := fmt.Sscanf(library, "%d.%d.%d", &major, &minor, &patch)
	fits := err == nil && major == header[0] && minor >= header[1]
	// While the major version is 0, a minor one may change what this package relies on.
	if fits && (major > 0 || minor == header[1]) {
		return nil
	}
	return &Error{Status: ErrConfiguration, Message: fmt.Sprintf(
		"the library is version %s, and this program was compiled for %d.%d.%d", library, header[0], header[1], header[2])}
}
