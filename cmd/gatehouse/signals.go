package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// hurryKey is the context's key for the channel of a second Ctrl-C.
type hurryKey struct{}

// exitInterrupted is what shells report for a program that Ctrl-C has ended.
const exitInterrupted = 130

// untilStopped returns a context that ends with the first Ctrl-C, SIGTERM or
// SIGHUP. A second Ctrl-C ends the process, unless the command takes it as a wish
// to hurry; a third always does.
func untilStopped() context.Context {
	again := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), hurryKey{}, again))
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it is
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		cancel()
		for s := range signals {
			if s != os.Interrupt {
				continue
			}
			select {
			case again <- struct{}{}:
				signal.Reset(os.Interrupt)
			default:
				os.Exit(exitInterrupted)
			}
		}
	}()
	return ctx
}

// hurried returns the channel that a second Ctrl-C is sent to while somebody
// receives from it.
func hurried(ctx context.Context) <-chan struct{} {
	again, _ := ctx.Value(hurryKey{}).(chan struct{})
	return again
}
