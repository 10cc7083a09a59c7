//go:build race

package fairq_test

// The race detector remembers what was done, in memory.
const withRaceDetector = true
