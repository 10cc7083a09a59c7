package fairq

import (
	"strconv"
	"time"

	"fairq/internal/capi"
)

// setting is an option as the library takes it.
type setting struct {
	key, value string
	err        error
}

type settings []setting

type clientSettings struct {
	settings
	ioTimeout time.Duration
	onLeak    func(Leak)
}

func number(key string, n uint64) setting {
	return setting{key: key, value: strconv.FormatUint(n, 10)}
}

func truth(key string, on bool) setting {
	return setting{key: key, value: strconv.FormatBool(on)}
}

func duration(key string, d time.Duration) setting {
	ms, err := millis(d, key)
	if ms == capi.Forever {
		return setting{key: key, value: "forever", err: err}
	}
	return setting{key: key, value: strconv.FormatUint(ms, 10) + "ms", err: err}
}

// with makes a set of options for the time of one call. The library judges keys and values.
func (s settings) with(use func(config capi.Handle) *capi.Failure) error {
	config, failure := capi.NewConfig()
	if failure != nil {
		return failed(failure)
	}
	defer capi.FreeConfig(config)
	for _, setting := range s {
		if setting.err != nil {
			return setting.err
		}
		if failure := capi.SetConfig(config, setting.key, setting.value); failure != nil {
			return failed(failure)
		}
	}
	return failed(use(config))
}

type (
	clientOption  setting
	limiterOption setting
	changeOption  setting
	ioTimeout     time.Duration
	leakHook      func(Leak)
)

// SharedOption is an option of a limiter that operators may also change while it runs.
type SharedOption setting

// WaitOption is what [MaxWait] makes.
type WaitOption struct{ wait time.Duration }

// String keeps a password out of what somebody prints.
func (o clientOption) String() string { return o.key }

// GoString is for %#v.
func (o clientOption) GoString() string { return o.key }

func (o clientOption) toClient(s *clientSettings) { s.settings = append(s.settings, setting(o)) }
func (o leakHook) toClient(s *clientSettings)     { s.onLeak = o }

func (o ioTimeout) toClient(s *clientSettings) {
	s.ioTimeout = time.Duration(o)
	s.settings = append(s.settings, duration("io_timeout", s.ioTimeout))
}

func (o limiterOption) toLimiter(s *settings) { *s = append(*s, setting(o)) }
func (o SharedOption) toLimiter(s *settings)  { *s = append(*s, setting(o)) }
func (o SharedOption) toChange(s *settings)   { *s = append(*s, setting(o)) }
func (o changeOption) toChange(s *settings)   { *s = append(*s, setting(o)) }
func (o WaitOption) toLimiter(s *settings)    { *s = append(*s, duration("max_wait", o.wait)) }
func (o WaitOption) toChange(s *settings)     { *s = append(*s, duration("max_wait", o.wait)) }
