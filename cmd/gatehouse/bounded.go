package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// The bounds of flags that several commands have.
const (
	maxPort       = 65535
	leastPort     = 1024 // that needs no privilege
	maxPortOffset = maxPort - 1
	// maxConcurrency is more threads than Envoy has use for anywhere.
	maxConcurrency = 1024
	// maxDrain is longer than anybody waits for a process to stop.
	maxDrain = 24 * time.Hour
)

// number is what a bounded flag may hold.
type number interface{ int | uint32 | time.Duration }

// bounded is a flag's number or duration that lies between two others.
type bounded[T number] struct {
	value       *T
	least, most T
}

// boundedVar defines a flag whose value is refused outside of the bounds.
func boundedVar[T number](fl *pflag.FlagSet, p *T, name string, value, least, most T, usage string) {
	*p = value
	fl.Var(bounded[T]{p, least, most}, name, usage)
}

// boundsError says what is wrong with a bounded flag's value, without the flag's name.
type boundsError struct{ error }

// Set implements pflag.Value.
func (b bounded[T]) Set(text string) error {
	var n int64
	var err error
	want := "a whole number"
	switch any(b.least).(type) {
	case time.Duration:
		var d time.Duration
		d, err = time.ParseDuration(text)
		n, want = int64(d), "a duration such as 5s or 2m,"
	case uint32:
		var u uint64
		u, err = strconv.ParseUint(text, 0, 32)
		n = int64(u)
	default:
		n, err = strconv.ParseInt(text, 0, 64)
	}
	if err != nil {
		return boundsError{fmt.Errorf("%q is not %s between %v and %v", text, want, b.least, b.most)}
	}
	if n < int64(b.least) || n > int64(b.most) {
		return boundsError{fmt.Errorf("%s is not between %v and %v", text, b.least, b.most)}
	}
	*b.value = T(n)
	return nil
}

// String implements pflag.Value.
func (b bounded[T]) String() string {
	if b.value == nil { // the flag package asks a zero value
		return ""
	}
	return fmt.Sprint(*b.value)
}

// Type implements pflag.Value: it is the word for the value in the help.
func (b bounded[T]) Type() string {
	switch any(b.least).(type) {
	case time.Duration:
		return "duration"
	case uint32:
		return "uint32"
	}
	return "int"
}

// withFlag puts the flag's name before what is wrong with its value, where that is for
// its bounds. Other errors are left as they are.
func withFlag(err error) error {
	var invalid *pflag.InvalidValueError
	var bounds boundsError
	if errors.As(err, &invalid) && errors.As(err, &bounds) {
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, bounds)
	}
	return err
}
