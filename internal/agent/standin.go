package agent

import (
	"context"
	"net"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/lastgood"
)

const (
	// standInLeast is how long an Envoy is served from what was kept, though a control plane can be
	// reached, as long as it has not taken its configuration.
	standInLeast = 5 * time.Second
	// standInTick is how often that is looked at.
	standInTick = 100 * time.Millisecond
)

// untilUnanswered returns true when an Envoy that starts has waited long enough for its first answer
// over a connection, and false when it has one or ctx ends. A control plane that has not read
// its sources yet takes connections, and answers nothing.
func (r *relay) untilUnanswered(ctx context.Context, tap *lastgood.Tap) bool {
	for since := time.Now(); sleep(ctx, standInTick) && !tap.Answered(); {
		if wait, starts := r.kept.Wait(); starts && wait == 0 && time.Since(since) >= lastgood.StandInAfter {
			return true
		}
	}
	return false
}

// standIn serves Envoy from its last good configuration until a control plane can be reached.
// Envoy connects again then, and names what it has.
func (r *relay) standIn(ctx context.Context, envoy net.Conn) {
	ctx, end := context.WithCancel(ctx)
	back := make(chan struct{})
	go func() {
		defer close(back)
		defer end()
		r.untilBack(ctx)
	}()
	r.kept.Serve(ctx, envoy)
	end()
	<-back
}

// untilBack returns when a control plane can be reached, and Envoy has had time to start.
func (r *relay) untilBack(ctx context.Context) {
	least := time.Now().Add(standInLeast)
	for sleep(ctx, max(r.pause(), pauseBase)) {
		dialing, cancel := context.WithTimeout(ctx, dialTimeout)
		conn, err := r.dial(dialing)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				r.refused(err)
			}
			continue
		}
		_ = conn.Close()
		for !r.kept.Live() && time.Now().Before(least) {
			if !sleep(ctx, standInTick) {
				return
			}
		}
		r.mu.Lock()
		r.next = time.Time{}
		r.mu.Unlock()
		return
	}
}
