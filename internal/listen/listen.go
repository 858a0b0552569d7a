package listen

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Limits bound the connections of a listener.
type Limits struct {
	Total      int // of all addresses
	PerAddress int // of one address, or of one network of IPv6
	// Refused is called for each connection that is closed for a bound, from the goroutine
	// that accepts; it must be quick. Nil if nobody wants to know.
	Refused func(source netip.Addr, why Reason)
}

// Reason is which bound a connection is beyond.
type Reason string

// The reasons.
const (
	Total      Reason = "total"
	PerAddress Reason = "per-address"
)

// networkBits is as much of an address of IPv6 as one client can't choose.
const networkBits = 64

// TCP listens on an address.
func TCP(address string, limits Limits) (net.Listener, error) {
	inner, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return Limit(inner, limits), nil
}

// Limit bounds the connections of a listener.
func Limit(inner net.Listener, limits Limits) net.Listener {
	return &listener{Listener: inner, limits: limits, open: map[netip.Addr]int{}}
}

type listener struct {
	net.Listener
	limits Limits

	mu    sync.Mutex
	total int
	open  map[netip.Addr]int // by address
}

// Accept returns the next connection within the bounds.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := sourceOf(inner.RemoteAddr())
		why, ok := l.take(source)
		if ok {
			return &conn{Conn: inner, release: sync.OnceFunc(func() { l.release(source) })}, nil
		}
		if l.limits.Refused != nil {
			l.limits.Refused(source, why)
		}
		if tcp, isTCP := inner.(*net.TCPConn); isTCP {
			_ = tcp.SetLinger(0) // nothing of it is to stay here
		}
		_ = inner.Close()
	}
}

// sourceOf is what a connection is counted under.
func sourceOf(a net.Addr) netip.Addr {
	source, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	ip := source.Addr().Unmap().WithZone("")
	if ip.Is6() {
		network, _ := ip.Prefix(networkBits)
		return network.Addr()
	}
	return ip
}

func (l *listener) take(source netip.Addr) (Reason, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.total >= l.limits.Total:
		return Total, false
	case l.open[source] >= l.limits.PerAddress:
		return PerAddress, false
	}
	l.total++
	l.open[source]++
	return "", true
}

func (l *listener) release(source netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.open[source]--; l.open[source] == 0 {
		delete(l.open, source)
	}
}

// conn is a connection that counts.
type conn struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *conn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite ends the half in which we write, which servers of TLS ask for.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
