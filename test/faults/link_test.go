package faults

import (
	"context"
	"net"
	"sync"

	"github.com/gatehouse-dev/gatehouse/test/fleet"
)

// link is a proxy's network. What is sent while a way of it is cut arrives when it is mended, as TCP
// has it.
type link struct{ up, down way }

// way is one direction.
type way struct {
	mu    sync.Mutex
	whole chan struct{} // closed when it is; nil where it is not cut
}

func (w *way) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole = make(chan struct{})
}

func (w *way) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.whole)
	w.whole = nil
}

// pass waits while the way is cut, unless the connection ends.
func (w *way) pass(ended <-chan struct{}) {
	w.mu.Lock()
	whole := w.whole
	w.mu.Unlock()
	if whole == nil {
		return
	}
	select {
	case <-whole:
	case <-ended:
	}
}

// through dials over the link.
func (l *link) through(dial fleet.Dialer) fleet.Dialer {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		c := &linked{Conn: conn, link: l, ended: make(chan struct{})}
		c.end = sync.OnceFunc(func() { close(c.ended) })
		return c, nil
	}
}

type linked struct {
	net.Conn
	link  *link
	ended chan struct{}
	end   func()
}

// Read implements net.Conn.
func (c *linked) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.link.down.pass(c.ended)
	return n, err
}

// Write implements net.Conn.
func (c *linked) Write(b []byte) (int, error) {
	c.link.up.pass(c.ended)
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *linked) Close() error {
	c.end()
	return c.Conn.Close()
}
