package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// requestTimeout bounds one request. An answer that takes longer is as bad as none.
const requestTimeout = 5 * time.Second

// client sends one request after another over one connection. net/http's client
// would spend a multiple of the CPU, of which Envoy needs its share here.
type client struct {
	address string
	tls     *tls.Config // nil for plain HTTP
	header  string      // a line to send beside the host with get; may be empty
	conn    net.Conn
	in      *bufio.Reader
	out     []byte
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// answer is what the bench looks at in a response.
type answer struct {
	status  int
	version string // set by the route
	backend string // set by the backend
}

// get asks for / of a host. After an error the next call opens a new connection.
func (c *client) get(host string) (answer, error) {
	return c.send(request{host: host, path: "/", header: c.header})
}

// request is what the bench varies in one.
type request struct {
	host, path string
	header     string // lines to send beside the host; may be empty
}

func (c *client) send(r request) (answer, error) {
	a, err := c.try(r)
	if err != nil {
		c.close()
		return answer{}, fmt.Errorf("GET http://%s%s: %w", r.host, r.path, err)
	}
	return a, nil
}

func (c *client) try(r request) (answer, error) {
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.address, requestTimeout)
		if err != nil {
			return answer{}, err
		}
		if c.tls != nil {
			conn = tls.Client(conn, c.tls) // the handshake comes with the request
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return answer{}, err
	}
	c.out = fmt.Appendf(c.out[:0], "GET %s HTTP/1.1\r\nHost: %s\r\n", r.path, r.host)
	if r.header != "" {
		c.out = append(append(c.out, r.header...), "\r\n"...)
	}
	c.out = append(c.out, "\r\n"...)
	if _, err := c.conn.Write(c.out); err != nil {
		return answer{}, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return answer{}, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return answer{}, err
	}
	if response.Close {
		c.close()
	}
	return answer{response.StatusCode, response.Header.Get("Version"), response.Header.Get("Backend")}, nil
}

// wait pauses between two looks at something. It reports false when ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errEnded says that what is waited for can't come any more.
var errEnded = errors.New("gatehouse has ended")

// until looks again and again, and gives up after a time that no healthy run
// needs. An error that is not errEnded only says why it is not reached yet.
func until(ctx context.Context, what string, limit, pause time.Duration, reached func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		ok, err := reached()
		if ok {
			return nil
		}
		if errors.Is(err, errEnded) || !wait(ctx, pause) {
			return fmt.Errorf("waited for %s: %w", what, errors.Join(ctx.Err(), err))
		}
	}
}
