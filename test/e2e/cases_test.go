//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// changeTimeout is how long a change may take until the first step after it
	// holds; the other steps then have settleTimeout for what is still under way, such as the
	// Envoy of a second Gateway that starts.
	changeTimeout = 20 * time.Second
	settleTimeout = 5 * time.Second
	// shareAttempts is how often a share may miss its tolerance.
	shareAttempts = 5
	// shareWorkers is how many of a step's counted requests run at a time.
	shareWorkers = 10
)

// shared is the one process that serves all cases.
var shared struct {
	sync.Mutex
	process *process
	address string // of the shared Gateway
	err     error
}

// sharedProcess starts the shared process when the first case needs it.
func sharedProcess(t *testing.T) (*process, string) {
	t.Helper()
	found := needTools(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.process == nil && shared.err == nil {
		shared.err = startShared(t, found)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.process, shared.address
}

func startShared(t *testing.T, found tools) error {
	shared.address = newAddress()
	p, err := newProcess(found, "--experimental", "--bind", shared.address, "--port-offset", strconv.Itoa(portOffset))
	if err != nil {
		return err
	}
	wildcard, err := secretManifest(sharedNamespace, "wildcard", "", "*.test")
	if err != nil {
		return err
	}
	p.write(t, "shared.yaml", fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: %s, namespace: %s}
spec:
  gatewayClassName: gatehouse
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: alt, port: 8080, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - name: https
    port: 443
    protocol: HTTPS
    tls: {certificateRefs: [{name: wildcard}]}
    allowedRoutes: {namespaces: {from: All}}
%s`, sharedGateway, sharedNamespace, wildcard))
	if err := p.start(); err != nil {
		return err
	}
	shared.process = p
	return p.waitReady()
}

// stopShared ends the shared process after all tests.
func stopShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.process != nil {
		shared.process.end()
	}
}

// TestCases runs every file of testdata: each feature of the Gateway API, from
// the manifest to what the backend sees.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no cases under testdata")
	}
	p, address := sharedProcess(t)
	for _, file := range files {
		name := filepath.Base(file[:len(file)-len(".txtar")])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := parseCase(file, newBindings(t, name, address))
			if err != nil {
				t.Fatal(err)
			}
			c.run(t, p)
		})
	}
}

// run applies the case's objects and takes its steps in order.
func (c *testCase) run(t *testing.T, p *process) {
	select {
	case <-p.finished:
		t.Fatalf("gatehouse has ended: %s", p.cmd.ProcessState)
	default:
	}
	path := func(name string) string { return filepath.Join(c.name, name) }
	t.Cleanup(func() {
		p.remove(t, c.name)
		closeSessions(c.steps)
	})
	p.write(t, path(objectsFile), c.files[objectsFile])
	deadline, settled := time.Now().Add(changeTimeout), false
	for i, s := range c.steps {
		if s.call == nil && s.Conditions == "" {
			for _, name := range s.Apply {
				p.write(t, path(name), c.files[name])
			}
			for _, name := range s.Remove {
				p.remove(t, path(name))
			}
			deadline, settled = time.Now().Add(changeTimeout), false
			continue
		}
		err := poll(time.Until(deadline), func() error {
			if s.Conditions != "" {
				report, err := p.status()
				if err != nil {
					return err
				}
				return s.checkStatus(report, c.name)
			}
			return s.try(t.Context(), fmt.Sprintf("%s-%d", c.name, i+1))
		})
		if err != nil {
			t.Errorf("step %d, %s: %v", i+1, s.title(), err)
			// What follows would only wait in vain as well; one round each.
			deadline = time.Now()
			continue
		}
		if !settled {
			deadline, settled = time.Now().Add(settleTimeout), true
		}
	}
	if t.Failed() {
		t.Logf("this case protects: %s", c.purpose)
		if report, err := p.status(); err == nil {
			for _, problem := range report.Problems {
				if filepath.Base(filepath.Dir(problem.File)) == c.name {
					t.Logf("problem: %s:%d: %s: %s", problem.File, problem.Line, problem.Field, problem.Message)
				}
			}
		}
	}
}

// closeSessions closes the connections that steps have kept.
func closeSessions(steps []step) {
	for _, s := range steps {
		if call, ok := s.call.(*clientCall); ok && call.session != nil {
			call.session.close()
		}
	}
}

// keyCount makes the keys of requests unique over the test run.
var keyCount atomic.Uint64

// try sends a step's requests and compares. Shares are a matter of chance, so
// that a miss counts only when it happens repeatedly.
func (s *step) try(ctx context.Context, name string) error {
	attempts := 1
	if s.Count > 0 {
		attempts = shareAttempts
	}
	var err error
	for range attempts {
		call, key := s.call, ""
		if countable, ok := call.(keyedCaller); ok && s.wantsKey() {
			key = fmt.Sprintf("%s-%d", name, keyCount.Add(1))
			call = countable.keyed(key)
		}
		var off missed
		if err = s.send(ctx, call, key); !errors.As(err, &off) {
			return err
		}
	}
	return err
}

// wantsKey reports whether the backends have to count the step's requests.
func (s *step) wantsKey() bool {
	_, times := s.Metadata["echo-times"]
	return s.Expect.Arrived != nil || times || strings.Contains(s.Request, "times=")
}

// missed is a share that is off its tolerance.
type missed struct{ error }

// send sends the requests of a step once.
func (s *step) send(ctx context.Context, call caller, key string) error {
	if s.Expect.Share != nil {
		got, err := countAnswers(ctx, call, s.Count, s.Expect.Share)
		if err != nil {
			return err
		}
		if err := checkShare(s.Expect.Share, got); err != nil {
			return missed{err}
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(shareWorkers)
	for range max(1, s.Count) {
		group.Go(func() error {
			o, err := call.do(ctx)
			switch {
			case s.Expect.Failure && err == nil:
				return fmt.Errorf("answered by %q, want no answer at all", o.who())
			case s.Expect.Failure && failed(err):
				return nil
			case err != nil:
				return err
			}
			return s.Expect.check(o)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.checkArrived(key); err != nil {
		return missed{err}
	}
	return nil
}

// countAnswers sends n requests and counts the answers by backend, those that
// no backend gave by their status. Failures count only where some are wanted.
func countAnswers(ctx context.Context, call caller, n int, want map[string]int) (map[string]int, error) {
	got := map[string]int{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(shareWorkers)
	for range n {
		group.Go(func() error {
			o, err := call.do(ctx)
			who := whoFailed
			if _, counts := want[who]; err != nil && (!counts || errors.Is(err, errHung)) {
				return err
			} else if err == nil {
				who = o.who()
			}
			mu.Lock()
			defer mu.Unlock()
			got[who]++
			return nil
		})
	}
	err := group.Wait()
	return got, err
}

// checkArrived waits until the backends have had the requests that they should:
// a mirrored request may arrive after the answer.
func (s *step) checkArrived(key string) error {
	return poll(settleTimeout, func() error {
		var all []error
		for name, want := range s.Expect.Arrived {
			if err := want.matches(arrivals(name, key), max(1, s.Count)); err != nil {
				all = append(all, fmt.Errorf("at %s: %w", name, err))
			}
		}
		return errors.Join(all...)
	})
}
