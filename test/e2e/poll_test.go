//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// pollEvery is the pause between two looks at a condition.
const pollEvery = 20 * time.Millisecond

// permanentError ends a poll at once.
type permanentError struct{ err error }

func (e permanentError) Error() string { return e.err.Error() }
func (e permanentError) Unwrap() error { return e.err }

// permanent marks an error that waiting does not cure.
func permanent(err error) error { return permanentError{err} }

// poll calls check until it returns nil, at least once, and returns its last
// error when the time is over.
func poll(timeout time.Duration, check func() error) error {
	deadline := time.Now().Add(timeout)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if final, ok := errors.AsType[permanentError](err); ok {
			return final.err
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("still not so after %s: %w", timeout, err)
		}
		time.Sleep(pollEvery)
	}
}

// eventually fails the test when check does not succeed in time.
func eventually(t *testing.T, timeout time.Duration, check func() error) {
	t.Helper()
	if err := poll(timeout, check); err != nil {
		t.Fatal(err)
	}
}
