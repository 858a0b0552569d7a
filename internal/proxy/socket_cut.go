package proxy

import "net"

// socketConn is a connection that its Socket can end.
type socketConn struct {
	*net.UnixConn
	socket *Socket
}

func (s *Socket) keepConn(conn *net.UnixConn) net.Conn {
	c := &socketConn{conn, s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return c
}

// Close implements net.Conn.
func (c *socketConn) Close() error {
	c.socket.mu.Lock()
	delete(c.socket.conns, c)
	c.socket.mu.Unlock()
	return c.UnixConn.Close()
}

// Cut ends every connection. It is for an Envoy in PhaseStalled, which ends none
// itself: whoever is at the other end learns that it is not there. If it goes on, it
// connects anew.
func (s *Socket) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.UnixConn.Close() // its user calls Close, which forgets it
	}
}
