package fairq

import (
	"strconv"
	"time"

	"fairq/internal/capi"
)

// ClientOption is an option of [Open].
type ClientOption interface{ toClient(*clientSettings) }

// LimiterOption is an option of [Client.Limiter].
type LimiterOption interface{ toLimiter(*settings) }

// Change is a change for [Limiter.Configure].
type Change interface{ toChange(*settings) }

// AcquireOption is an option of [Limiter.Acquire] and [Limiter.TryAcquire].
type AcquireOption interface{ toAcquire(*asking) }

// --- options of a client

// ConnectTimeout is how long an attempt to connect may take; 2 s by default.
func ConnectTimeout(d time.Duration) ClientOption {
	return clientOption(duration("connect_timeout", d))
}

// IOTimeout is how long the server may take to answer before the connection is given up; 2 s by default.
func IOTimeout(d time.Duration) ClientOption { return ioTimeout(d) }

// Subscribe is whether to listen for grants by Pub/Sub, as is the default; without it only polling finds them.
func Subscribe(on bool) ClientOption { return clientOption(truth("subscribe", on)) }

// MaxTickets is how many requests and permits this process may have at once, 100,000 by default; more are refused with
// [ErrOverloaded].
func MaxTickets(n uint64) ClientOption { return clientOption(number("max_tickets", n)) }

// Description is what operators see of this instance; host:pid by default.
func Description(text string) ClientOption { return clientOption{key: "description", value: text} }

// Username is the user to log in as, unless the URL names one.
func Username(name string) ClientOption { return clientOption{key: "username", value: name} }

// Password is the password, unless the URL or a file has it.
func Password(password string) ClientOption { return clientOption{key: "password", value: password} }

// PasswordFile names a file that holds the password and nothing else. It is read for each connection, so that a changed
// one is taken over without a restart.
func PasswordFile(path string) ClientOption { return clientOption{key: "password_file", value: path} }

// SentinelPasswordFile is [PasswordFile] for the login of sentinels.
func SentinelPasswordFile(path string) ClientOption {
	return clientOption{key: "sentinel_password_file", value: path}
}

// TLSCAFile names, for rediss://, a PEM file of the authorities to trust in the place of those that the system trusts.
// Like the other two it is read for each connection.
func TLSCAFile(path string) ClientOption { return clientOption{key: "tls_ca_file", value: path} }

// TLSCertFile names, for rediss://, a PEM file with this client's certificate, for servers that want one.
func TLSCertFile(path string) ClientOption { return clientOption{key: "tls_cert_file", value: path} }

// TLSKeyFile names the PEM file with the certificate's private key, not encrypted; it may be the same file.
func TLSKeyFile(path string) ClientOption { return clientOption{key: "tls_key_file", value: path} }

// OnLeak is called for each permit that was collected as garbage before it was given back, which is a mistake in the
// program. The slot is given back by then. It runs in a goroutine of its own.
func OnLeak(report func(Leak)) ClientOption { return leakHook(report) }

// Leak is a permit that was never given back.
type Leak struct {
	// Limiter is the limiter's name.
	Limiter string
	// Fence is the permit's.
	Fence uint64
}

// --- options of a limiter, and changes

// Limit is how much cost may be held at once; 0 admits nobody. A limiter that is opened without it is one that others
// have declared.
func Limit(n uint64) SharedOption { return SharedOption(number("limit", n)) }

// MaxQueue is how many may wait, or [Unbounded]; 10,000 by default. With 0 who cannot be admitted at once is refused.
func MaxQueue(n uint64) SharedOption {
	if n == Unbounded {
		return SharedOption{key: "max_queue", value: "unbounded"}
	}
	return SharedOption(number("max_queue", n))
}

// MaxWait is how long a request waits in line: of a request, or of all that do not say it themselves (30 s by default).
// 0: have a permit at once or not at all; [Forever]. What is less than a millisecond is one; what is negative is
// refused.
func MaxWait(d time.Duration) WaitOption { return WaitOption{d} }

// Lease is after how long a silence of its process a slot is free again; 10 s by default, 100 ms to a day.
func Lease(d time.Duration) SharedOption { return SharedOption(duration("lease", d)) }

// MaxHold is how long a permit may be held; by default, with 0 and with [Forever], as long as its process lives.
func MaxHold(d time.Duration) SharedOption {
	if d == Forever {
		d = 0
	}
	return SharedOption(duration("max_hold", d))
}

// Idle is after how long without any use the store forgets the limiter; 10 min by default, at least two leases.
func Idle(d time.Duration) LimiterOption { return limiterOption(duration("idle", d)) }

// Poll is how often an instance with waiting requests asks, should no message come; 1 s by default, 10 ms to 60 s.
func Poll(d time.Duration) LimiterOption { return limiterOption(duration("poll", d)) }

// OutageWait keeps requests in line while the store is away, until their wait is over. It is the default.
func OutageWait() LimiterOption { return limiterOption{key: "outage", value: "wait"} }

// OutageFail fails requests with [ErrUnavailable] while the store is away.
func OutageFail() LimiterOption { return limiterOption{key: "outage", value: "fail"} }

// OutageLocal has each instance admit up to n by itself while the store is away. Over the cluster more than the limit
// may run then.
func OutageLocal(n uint64) LimiterOption {
	return limiterOption{key: "outage", value: "local:" + strconv.FormatUint(n, 10)}
}

// Paused admits nobody until it is false again; what is held stays held.
func Paused(paused bool) Change { return changeOption(truth("paused", paused)) }

// Reset forgets what operators have set before, so that the declared settings hold again.
func Reset() Change { return changeOption(truth("reset", true)) }

// --- options of a request

// Cost is how much of the limit the permit takes; 1 by default.
func Cost(n uint64) AcquireOption { return cost(n) }

// Label is what operators see in the lists of holders and waiters: up to 256 bytes of UTF-8.
func Label(text string) AcquireOption { return label(text) }

// OnPosition is called with each new position in line, the first as soon as the request has one, by the goroutine that
// acquires, in Acquire. While it runs, neither the permit nor the end of the context is noticed; positions that come
// meanwhile are replaced by the last of them. Not called for who need not wait.
func OnPosition(report func(Position)) AcquireOption { return onPosition(report) }

// WithTicket lets other goroutines cancel the request, or ask for its position. A ticket serves for one request.
func WithTicket(ticket *Ticket) AcquireOption { return withTicket{ticket} }

// --- all options by name

// OptionInfo describes an option that there is.
type OptionInfo struct {
	// Scope is "client" or "limiter" (set when it is opened), or "change" (by [Limiter.Configure]).
	Scope string
	// Key is its name, as configuration files would have it.
	Key string
	// Default is its default, as it would be written there.
	Default string
	// Doc is what it does.
	Doc string
}

// Options are all options that there are, with their defaults.
func Options() []OptionInfo {
	scopes := map[int32]string{
		capi.ScopeClient: "client", capi.ScopeLimiter: "limiter", capi.ScopeChange: "change",
	}
	var infos []OptionInfo
	for _, option := range capi.Options() {
		infos = append(infos, OptionInfo{scopes[option.Scope], option.Key, option.Default, option.Doc})
	}
	return infos
}
