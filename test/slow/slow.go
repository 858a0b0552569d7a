// Package slow marks the tests that `make test` leaves out, so that it stays a matter of
// minutes: those that attack for a while, wait out limits of time, or put many API servers
// through their lives. `make test-slow` runs them, and so does the race detector; both are
// part of .ci/run. A test belongs here by what it costs, never by what it finds.
package slow

import (
	"os"
	"testing"
)

// Variable is the environment variable that, set, has these tests run.
const Variable = "GATEHOUSE_SLOW"

// Skip is the first line of a test that takes long. The Makefile finds those tests by it.
func Skip(t testing.TB) {
	t.Helper()
	if os.Getenv(Variable) == "" {
		t.Skipf("takes long: make test-slow runs it (%s=1)", Variable)
	}
}
