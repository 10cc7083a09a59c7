//go:build !race

package fairq_test

const withRaceDetector = false
