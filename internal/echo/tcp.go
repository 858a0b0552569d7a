package echo

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// maxLine is the longest line that is answered; a longer one ends the
	// connection.
	maxLine = 64 << 10
	// handshakeTimeout is how long a client may take to begin with TLS.
	handshakeTimeout = 10 * time.Second
)

// TCPServer is a backend that answers each line with a [Line]. It sends nothing before
// the client does. A client that closes its side gets the line [Bye] and then the end
// of the connection.
type TCPServer struct {
	name      string
	tls       *tls.Config
	listeners []net.Listener
}

// NewTCP opens the addresses of o; connections wait in the backlog until
// [TCPServer.Run].
func NewTCP(ctx context.Context, o Options) (*TCPServer, error) {
	listeners, err := listen(ctx, o.Listen)
	if err != nil {
		return nil, err
	}
	return &TCPServer{name: o.Name, tls: o.TLS, listeners: listeners}, nil
}

// Addresses returns where the server listens, in the order of Options.Listen.
func (s *TCPServer) Addresses() []net.Addr { return addresses(s.listeners) }

// Run answers until ctx ends, and cuts the connections that are open then. It
// may be called once.
func (s *TCPServer) Run(ctx context.Context) error {
	defer closeAll(s.listeners)
	defer context.AfterFunc(ctx, func() { closeAll(s.listeners) })()
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range s.listeners {
		group.Go(func() error {
			var open sync.WaitGroup
			defer open.Wait()
			for {
				conn, err := l.Accept()
				if err != nil {
					if errors.Is(err, net.ErrClosed) {
						return nil
					}
					return fmt.Errorf("echo: accept on %s: %w", l.Addr(), err)
				}
				open.Go(func() { s.serve(ctx, conn) })
			}
		})
	}
	return group.Wait()
}

// serve answers one connection. An error means that the client is gone or can't speak
// TLS, so nobody can be told.
func (s *TCPServer) serve(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	answer := Line{Name: s.name}
	if s.tls != nil {
		secure := tls.Server(conn, s.tls)
		// This ends the TLS session too. On a broken connection it does nothing.
		defer func() { _ = secure.Close() }()
		handshake, cancel := context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
		if secure.HandshakeContext(handshake) != nil {
			return
		}
		state := secure.ConnectionState()
		answer.TLS, conn = tlsInfo(&state), secure
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		answer.Text = lines.Text()
		if _, err := io.WriteString(conn, answer.String()+"\n"); err != nil {
			return
		}
	}
	if lines.Err() == nil {
		answer.Text = Bye
		_, _ = io.WriteString(conn, answer.String()+"\n")
	}
}
