//go:build fairq_static

package capi

// The archive comes first and has everything, so that the shared library, which pkg-config names after it, is not
// needed.

// #cgo pkg-config: fairq
// #cgo LDFLAGS: -Wl,--as-needed -l:libfairq.a -lutil -lrt -lpthread -lm -ldl
import "C"
