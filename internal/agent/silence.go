package agent

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

const (
	// silenceLimit is how long the control plane may owe Envoy an answer. It asks
	// Envoy for a sign of life a second after Envoy's last word (xds.pingAfter), so
	// that one that runs is never silent for much longer than that. A process that
	// is stopped, and a network that drops all, end no connection by themselves.
	silenceLimit = 7 * silenceTick
	silenceTick  = 500 * time.Millisecond
)

// heardConn is a connection to the control plane that knows whose turn it is to say
// something. It knows nothing of what is said.
type heardConn struct {
	net.Conn
	owed    atomic.Bool   // Envoy has spoken last
	reading atomic.Bool   // what the control plane says would be taken at once
	heard   atomic.Uint64 // how often it has said something
}

// Read implements net.Conn.
func (c *heardConn) Read(b []byte) (int, error) {
	c.reading.Store(true)
	n, err := c.Conn.Read(b)
	c.reading.Store(false)
	if n > 0 {
		c.owed.Store(false)
		c.heard.Add(1)
	}
	return n, err
}

// Write implements net.Conn.
func (c *heardConn) Write(b []byte) (int, error) {
	c.owed.Store(true)
	return c.Conn.Write(b)
}

// CloseWrite tells the control plane that nothing follows.
func (c *heardConn) CloseWrite() error { return closeWrite(c.Conn) }

// untilSilent returns true when the control plane has owed an answer for the limit,
// and false when ctx ends. While Envoy is silent itself, because it takes in what it
// was sent, nothing is owed. Time is counted in ticks that this process has lived
// through: one that was stopped itself, or had no CPU, finds what has come meanwhile
// before it can count to the limit.
func (c *heardConn) untilSilent(ctx context.Context) bool {
	tick := time.NewTicker(silenceTick)
	defer tick.Stop()
	var heard uint64
	for silent := time.Duration(0); silent < silenceLimit; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		now := c.heard.Load()
		if now == heard && c.owed.Load() && c.reading.Load() {
			silent += silenceTick
		} else {
			silent = 0
		}
		heard = now
	}
	return true
}
