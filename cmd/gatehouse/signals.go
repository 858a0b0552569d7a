package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// stopsKey is the context's key for its stops.
type stopsKey struct{}

// stops is what happens when somebody is not content with the first Ctrl-C.
type stops struct {
	again chan struct{} // takes the second one

	mu   sync.Mutex
	last func() // called before the process ends without the command's doing
}

func (s *stops) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last()
	os.Exit(exitInterrupted)
}

// exitInterrupted is what shells report for a program that Ctrl-C has ended.
const exitInterrupted = 130

// untilStopped returns a context that ends with the first Ctrl-C, SIGTERM or
// SIGHUP. A second Ctrl-C ends the process, unless the command takes it as a wish
// to hurry; a third always does.
func untilStopped() context.Context {
	s := &stops{again: make(chan struct{}), last: func() {}}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), stopsKey{}, s))
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // under nohup it is
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		cancel()
		for hurried := false; ; {
			if <-signals != os.Interrupt {
				continue
			}
			if hurried {
				s.exit()
			}
			select {
			case s.again <- struct{}{}:
				hurried = true
			default:
				s.exit()
			}
		}
	}()
	return ctx
}

// hurried returns the channel that a second Ctrl-C is sent to while somebody
// receives from it.
func hurried(ctx context.Context) <-chan struct{} {
	if s, ok := ctx.Value(stopsKey{}).(*stops); ok {
		return s.again
	}
	return nil
}

// beforeExit makes the process do something before a Ctrl-C ends it that the command does
// not take.
func beforeExit(ctx context.Context, do func()) {
	s, ok := ctx.Value(stopsKey{}).(*stops)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = do
}
