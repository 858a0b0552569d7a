package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// Dial connects to the controller's xDS port, with the newest certificate. It
// waits for the first one.
func (c *Client) Dial(ctx context.Context) (net.Conn, error) {
	config, err := c.TLS(ctx)
	if err != nil {
		return nil, err
	}
	// Go's servers of gRPC insist on the protocol's name.
	config.NextProtos = []string{"h2"}
	raw, err := race(ctx, &tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: config}, c.o.XDS)
	if err != nil {
		return nil, fmt.Errorf("connect to the controller at %s: %w", c.o.XDS, err)
	}
	return &conn{Conn: raw.(*tls.Conn), client: c}, nil
}

// race returns the first of up to dialRacers connections, each begun dialAgain after
// the one before. The address is a Service's, which leads each connection to a replica
// of its choice: one that stands still takes connections and completes none.
func race(ctx context.Context, d *tls.Dialer, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, dialRacers)
	again := time.NewTimer(0)
	defer again.Stop()
	for begun, ended := 0, 0; ; {
		select {
		case <-again.C:
			begun++
			go func() {
				conn, err := d.DialContext(ctx, "tcp", address)
				results <- result{conn, err}
			}()
			if begun < dialRacers {
				again.Reset(dialAgain)
			}
		case r := <-results:
			ended++
			if r.err != nil && ended < begun {
				continue
			}
			cancel()
			for ; ended < begun; ended++ {
				if late := <-results; late.conn != nil {
					_ = late.conn.Close()
				}
			}
			return r.conn, r.err
		}
	}
}

// TLS returns what a connection to the controller is made with: the newest
// certificate and the authorities as they are now. It waits for the first
// certificate.
func (c *Client) TLS(ctx context.Context) (*tls.Config, error) {
	cert, err := c.certificate(ctx)
	if err != nil {
		return nil, err
	}
	config, err := c.trust()
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{*cert}
	return config, nil
}

// trust is TLS without a certificate of our own.
func (c *Client) trust() (*tls.Config, error) {
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: c.o.ServerName}, nil
}

// conn is a connection that learns whether the controller refuses our certificate:
// by TLS 1.3 that is told after the handshake, in place of the first bytes.
type conn struct {
	*tls.Conn
	client *Client
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		select {
		case c.client.early <- struct{}{}:
		default:
		}
	}
	return n, err
}
