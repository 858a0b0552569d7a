package visit

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

// Timeout bounds one request. An answer that takes longer is as bad as none.
const Timeout = 5 * time.Second

// Client has one connection at a time. It is for one goroutine.
type Client struct {
	Address string
	// Dial is how to connect; that of a net.Dialer if nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is nil for plain HTTP. Without a ServerName it is the host that is asked for.
	TLS *tls.Config

	// Conn is the connection that is open; without one the next request opens it.
	Conn net.Conn

	in  *bufio.Reader
	out []byte
}

// Request is a GET.
type Request struct {
	Host, Path string
	Header     string // lines to send beside the host; may be empty
}

// Answer is a response whose body was read to its end and dropped.
type Answer struct {
	Status int
	Header http.Header
}

// Get sends a request. After an error the next one opens a new connection.
func (c *Client) Get(ctx context.Context, r Request) (Answer, error) {
	a, err := c.try(ctx, r)
	if err != nil {
		c.Close()
		return Answer{}, fmt.Errorf("GET http://%s%s: %w", r.Host, r.Path, err)
	}
	return a, nil
}

// Close ends the connection. The next request opens another one.
func (c *Client) Close() {
	if c.Conn != nil {
		_ = c.Conn.Close()
		c.Conn = nil
	}
}

func (c *Client) try(ctx context.Context, r Request) (Answer, error) {
	if c.Conn == nil {
		if err := c.connect(ctx, r.Host); err != nil {
			return Answer{}, err
		}
	}
	if err := c.Conn.SetDeadline(time.Now().Add(Timeout)); err != nil {
		return Answer{}, err
	}
	c.out = fmt.Appendf(c.out[:0], "GET %s HTTP/1.1\r\nHost: %s\r\n", r.Path, r.Host)
	if r.Header != "" {
		c.out = append(append(c.out, r.Header...), "\r\n"...)
	}
	c.out = append(c.out, "\r\n"...)
	if _, err := c.Conn.Write(c.out); err != nil {
		return Answer{}, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return Answer{}, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return Answer{}, err
	}
	if response.Close {
		c.Close()
	}
	return Answer{response.StatusCode, response.Header}, nil
}

// connect opens the connection; a handshake of TLS comes with the first request.
func (c *Client) connect(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", c.Address)
	if err != nil {
		return err
	}
	if c.TLS != nil {
		config := c.TLS
		if config.ServerName == "" {
			config = config.Clone()
			config.ServerName = host
		}
		conn = tls.Client(conn, config)
	}
	c.Conn, c.in = conn, bufio.NewReader(conn)
	return nil
}
