//go:build !fairq_static

package capi

// #cgo pkg-config: fairq
import "C"
