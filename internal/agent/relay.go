package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/lastgood"
)

const (
	// dialTimeout bounds the way to the control plane: its name, the connection,
	// the handshake.
	dialTimeout = 10 * time.Second

	pauseBase = 100 * time.Millisecond
	// pauseMax is how late a change may come after the control plane is back.
	pauseMax = 5 * time.Second
	// steadyAfter is how long a connection must have lasted for its end not to
	// be one of a row of failures.
	steadyAfter = 10 * time.Second

	// acceptPause is for a process that is out of files, which passes.
	acceptPause = 100 * time.Millisecond
)

// relay carries connections from a socket of Envoy's to the control plane, or to what counts
// requests. Envoy comes back about once a second when it has lost one; how often the other side
// is asked is decided here.
type relay struct {
	to string // in words
	// prompt is for those whose requests are worth nothing later: none waits until the other
	// side is asked again, and none is watched for silence, of which a request knows itself.
	prompt bool
	dial   func(context.Context) (net.Conn, error)
	log    *slog.Logger
	// kept is what an Envoy that starts is served from when the other side does not answer; nil
	// where nothing is.
	kept *lastgood.Keeper

	mu        sync.Mutex
	failures  int       // in a row, also of connections that were cut soon
	next      time.Time // not before then
	missed    int       // tries since the last that has succeeded
	lastError error     // of the latest of them
	connected map[net.Conn]time.Time
	succeeded int // all that were ever opened
	failed    int
	silent    int // of the opened ones, those that were ended for their silence
}

func newRelay(to string, dial func(context.Context) (net.Conn, error), log *slog.Logger) *relay {
	return &relay{to: to, dial: dial, log: log, connected: map[net.Conn]time.Time{}}
}

// serve carries what comes to the listener until ctx ends. It closes the listener
// and all connections.
func (r *relay) serve(ctx context.Context, l net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			r.log.Warn("envoy can't reach "+r.to, "error", err)
			sleep(ctx, acceptPause)
			continue
		}
		all.Go(func() {
			defer conn.Close()
			r.carry(ctx, conn)
		})
	}
}

// carry joins one connection of Envoy's with one to the control plane.
func (r *relay) carry(ctx context.Context, envoy net.Conn) {
	pause, limit := max(0, r.pause()), dialTimeout
	if r.kept != nil {
		if wait, starts := r.kept.Wait(); starts && wait <= pause {
			if sleep(ctx, wait) {
				r.standIn(ctx, envoy)
			}
			return
		} else if starts {
			limit = min(limit, wait-pause)
		}
	}
	if r.prompt && pause > 0 || !sleep(ctx, pause) {
		return
	}
	dialing, cancel := context.WithTimeout(ctx, limit)
	controller, err := r.dial(dialing)
	cancel()
	if err != nil {
		if ctx.Err() == nil {
			r.refused(err)
		}
		return
	}
	defer controller.Close()
	r.opened(controller)
	defer r.closed(controller)
	if r.prompt {
		join(ctx, envoy, controller)
		return
	}
	heard := &heardConn{Conn: controller}
	ctx, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer end()
	watch.Go(func() {
		if heard.untilSilent(ctx) {
			r.standsStill(controller)
			end()
		}
	})
	if r.kept != nil {
		tap := r.kept.Tap(envoy)
		envoy = tap
		watch.Go(func() {
			if r.untilUnanswered(ctx, tap) {
				r.log.Warn(r.to+" has no configuration for an envoy that starts", "waited", lastgood.StandInAfter.String())
				end()
			}
		})
	}
	join(ctx, envoy, heard)
}

// standsStill notes a connection that is ended because nothing comes over it.
func (r *relay) standsStill(conn net.Conn) {
	r.mu.Lock()
	r.silent++
	r.mu.Unlock()
	r.log.Warn(r.to+" stands still or is cut off; connecting anew, and serving on meanwhile",
		"address", conn.RemoteAddr().String(), "silent", silenceLimit.String())
}

// pause is how long to wait before the control plane is asked again.
func (r *relay) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.next)
}

// slower makes the next try come later than the last; r.mu is held.
func (r *relay) slower() {
	r.failures++
	pause := pauseMax
	if shift := r.failures - 1; shift < 6 {
		pause = min(pauseBase<<shift, pauseMax)
	}
	// The last half is random: after a restart of the control plane, all proxies
	// have the same reason to come.
	r.next = time.Now().Add(pause/2 + rand.N(pause/2+1))
}

func (r *relay) refused(err error) {
	r.mu.Lock()
	r.failed++
	r.missed++
	r.lastError = err
	r.slower()
	missed := r.missed
	r.mu.Unlock()
	if missed&(missed-1) == 0 { // a line for the first, and whenever they have doubled
		r.log.Warn(r.to+" can't be reached; trying again, and serving on meanwhile", "tries", missed, "error", err)
	}
}

func (r *relay) opened(conn net.Conn) {
	r.mu.Lock()
	r.succeeded++
	r.missed, r.lastError = 0, nil
	r.connected[conn] = time.Now()
	r.mu.Unlock()
	r.log.Info("connected to "+r.to, "address", conn.RemoteAddr().String())
}

func (r *relay) closed(conn net.Conn) {
	r.mu.Lock()
	lasted := time.Since(r.connected[conn])
	delete(r.connected, conn)
	if lasted >= steadyAfter {
		r.failures = 0
	}
	r.slower()
	r.mu.Unlock()
	r.log.Info("the connection to "+r.to+" has ended", "lasted", lasted.Round(time.Millisecond).String())
}

// relayState is what the relay's metrics and the readiness show.
type relayState struct {
	connected         bool
	since             time.Time // of the oldest connection
	succeeded, failed int
	silent            int
	lastError         error
}

func (r *relay) state() relayState {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := relayState{connected: len(r.connected) > 0, succeeded: r.succeeded, failed: r.failed, silent: r.silent, lastError: r.lastError}
	for _, since := range r.connected {
		if s.since.IsZero() || since.Before(s.since) {
			s.since = since
		}
	}
	return s
}

// join carries bytes both ways until both sides have ended, or one has failed, or
// ctx ends.
func join(ctx context.Context, a, b net.Conn) {
	cut := func() { _ = a.Close(); _ = b.Close() }
	defer context.AfterFunc(ctx, cut)()
	var both sync.WaitGroup
	defer both.Wait()
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			from, to := way[0], way[1]
			if _, err := io.Copy(to, from); err != nil {
				cut()
				return
			}
			if err := closeWrite(to); err != nil {
				cut()
			}
		})
	}
}

// closeWrite tells the other side that nothing follows.
func closeWrite(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// sleep says whether it ended before ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
