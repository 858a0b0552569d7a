package apiserver

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Sharing is the tests of a package that share API servers.
type Sharing struct {
	tests *testing.M

	mu   sync.Mutex
	idle []*machine
}

// sharing is that of this process; nil where each test has a server of its own.
var sharing *Sharing

// Shared has the tests of a package share servers: to start one takes seconds of
// both cores. TestMain is `os.Exit(apiserver.Shared(m).Run())`. A server that a test
// is done with is made as it was at its start, and the next test that asks for the
// same Options gets it. One that is not as before all the same is ended: after Kill,
// after a change of definitions, and after a test that failed.
func Shared(m *testing.M) *Sharing {
	sharing = &Sharing{tests: m}
	return sharing
}

// Run runs the tests, and ends the servers.
func (s *Sharing) Run() int {
	code := s.tests.Run()
	for _, m := range s.idle {
		m.discard()
	}
	return code
}

func (s *Sharing) borrow(t testing.TB, opts Options) *Server {
	t.Helper()
	m := s.take(opts)
	if m == nil {
		m = s.start(t, opts)
	}
	t.Cleanup(func() { s.giveBack(t, m) })
	return m.serve(t)
}

func (s *Sharing) take(opts Options) *machine {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range s.idle {
		if cmp.Equal(m.options, opts) {
			s.idle = slices.Delete(s.idle, i, i+1)
			return m
		}
	}
	return nil
}

func (s *Sharing) start(t testing.TB, opts Options) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("", "apiserver")
	if err != nil {
		t.Fatal(err)
	}
	var m *machine
	defer func() { // also where there is nothing to begin with, and the test is skipped
		switch {
		case m == nil:
			_ = os.RemoveAll(dir)
		case m.fresh == nil:
			m.discard()
		}
	}()
	m = begin(t, dir, opts)
	awaitCRDs(t, m.config, m.crds)
	if m.fresh, err = m.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (s *Sharing) giveBack(t testing.TB, m *machine) {
	t.Helper()
	var err error
	switch {
	case m.killed:
		err = errors.New("it was killed")
	case t.Failed():
		err = errors.New("the test failed")
	default:
		ctx, cancel := context.WithTimeout(context.Background(), startTime)
		defer cancel()
		err = m.clear(ctx)
	}
	if err != nil {
		t.Logf("the API server is not used again: %v", err)
		m.discard()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, m)
}

// discard ends a machine and removes its files.
func (m *machine) discard() {
	m.end()
	_ = os.RemoveAll(m.dir) // a temporary directory
}
