package proxy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"
)

const (
	// termTimeout is what Envoy gets to end after SIGTERM; it takes
	// milliseconds unless its main thread hangs.
	termTimeout = 3 * time.Second
	// killTimeout is what the system gets after SIGKILL.
	killTimeout = 5 * time.Second
	// drainInterval is how often connections are counted.
	drainInterval = 50 * time.Millisecond
	// drainIdle is how long nothing may be under way on the connections that are
	// left before they count as idle: clients keep connections for later, and would
	// hold up every drain until its end.
	drainIdle = 5 * time.Second
)

// stop drains a process and ends it.
func (s *Supervisor) stop(p *process) error {
	s.update(func(st *State) { st.Phase, st.Live = PhaseDraining, false })
	s.markDraining()
	s.drain(p)
	s.lastReport()
	if err := s.end(p); err != nil {
		return err
	}
	s.forget()
	// Its last lines belong before the line below.
	s.lastLines()
	s.log.Info("envoy stopped", "pid", p.pid)
	s.update(func(st *State) { st.Phase, st.PID = PhaseStopped, 0 })
	return nil
}

// lastReport has Envoy report what it has counted since the last time.
func (s *Supervisor) lastReport() {
	ctx, cancel := context.WithTimeout(context.Background(), figuresTimeout)
	defer cancel()
	if err := s.Flush(ctx); err != nil {
		s.log.Debug("envoy has not reported its last figures", "error", err)
	}
}

// end sends SIGTERM, which cuts everything at once (Envoy has no graceful signal), and
// SIGKILL if the process does not end.
func (s *Supervisor) end(p *process) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.wait(termTimeout) {
		return nil
	}
	s.log.Warn("envoy does not end and is killed", "pid", p.pid)
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.wait(killTimeout) {
		return fmt.Errorf("the process %d is still there %s after SIGKILL", p.pid, killTimeout)
	}
	return nil
}

// drainCalls are the calls to Envoy's admin interface, in this order. Failing the
// health check closes every HTTP/1 connection with its next answer and sends GOAWAY to
// HTTP/2. Closing the listeners refuses new connections. No other process takes the
// ports over, and a client that is refused knows that nothing of its request was done,
// while a client that is let in might be cut at the end of the drain.
var drainCalls = []string{"/healthcheck/fail", "/drain_listeners"}

// drain asks clients to go and waits until they have, bounded by DrainTimeout
// and by Hurry. p may be nil.
func (s *Supervisor) drain(p *process) {
	// The context of Run has ended by now, so another one is needed.
	ctx, cancel := context.WithTimeout(s.hurried, s.cfg.DrainTimeout)
	defer cancel()
	for _, path := range drainCalls {
		if _, err := s.admin.do(ctx, http.MethodPost, path); err != nil {
			// An Envoy that is not up yet, or hangs, has no clients to wait for.
			s.log.Debug("envoy can't be drained", "error", err)
			return
		}
	}
	var ended <-chan struct{}
	if p != nil {
		ended = p.done
	}
	began := time.Now()
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	var active clients
	busy := time.Now()
	for {
		if now, err := s.activeClients(ctx); err == nil {
			if active = now; active.connections == 0 {
				return
			}
		}
		if active.underWay() {
			busy = time.Now()
		} else if time.Since(busy) > drainIdle {
			s.log.Info("envoy is stopped with idle connections open", "connections", active.connections)
			return
		}
		select {
		case <-ended:
			return
		case <-ctx.Done():
			s.log.Info("envoy is stopped with connections open", "connections", active.connections,
				"requests", active.requests, "waited", time.Since(began).Round(time.Millisecond))
			return
		case <-tick.C:
		}
	}
}

// clients are what a drain waits for.
type clients struct {
	connections uint64 // of all listeners
	http        uint64 // of these, the ones that carry requests
	requests    uint64
}

// underWay reports whether something would be cut: a request, or a connection of
// which only its ends know whether it is done.
func (c clients) underWay() bool { return c.requests > 0 || c.connections > c.http }

// activeClients counts the clients of all listeners.
func (s *Supervisor) activeClients(ctx context.Context) (clients, error) {
	stats, err := s.admin.stats(ctx, `^(listener\..*\.downstream_cx_active|http\..*\.downstream_(cx|rq)_active)$`)
	if err != nil {
		return clients{}, err
	}
	var c clients
	for name, v := range stats {
		// This call is a connection of the admin listener, and workers count the same
		// connections again.
		switch {
		case strings.HasPrefix(name, "listener.admin."), strings.HasPrefix(name, "http.admin."), strings.Contains(name, ".worker_"):
		case strings.HasPrefix(name, "listener."):
			c.connections += v
		case strings.HasSuffix(name, "_rq_active"):
			c.requests += v
		default:
			c.http += v
		}
	}
	return c, nil
}
