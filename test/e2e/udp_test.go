//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

const (
	// datagramTimeout is how long an answer may take, silence how long one that
	// shall not come is waited for.
	datagramTimeout = 3 * time.Second
	silence         = 300 * time.Millisecond
)

// datagramCall is a datagram from a socket of its own.
type datagramCall struct {
	address string
	port    int // of the listener, not shifted
	send    string
	timeout time.Duration
}

// prepareDatagram makes the call of a UDP step.
func (s *step) prepareDatagram(at string) error {
	c := &datagramCall{address: at, port: s.UDP, send: s.Send, timeout: datagramTimeout}
	if c.send == "" {
		c.send = defaultText
	}
	e := s.Expect
	if _, some := e.Share[whoNone]; some || e.None {
		c.timeout = silence
	}
	if e.Reply == nil && !e.Failure && !e.None && e.Share == nil {
		e.Reply = &c.send
	}
	s.call = c
	return nil
}

// do sends the datagram. The error is that nobody has the port, which is not the
// same as nobody answering.
func (c *datagramCall) do(ctx context.Context) (*outcome, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", net.JoinHostPort(c.address, strconv.Itoa(c.port+portOffset)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, c.send); err != nil {
		return nil, err
	}
	buffer := make([]byte, 64<<10)
	n, err := conn.Read(buffer)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &outcome{silent: true}, nil
	}
	if err != nil {
		return nil, err
	}
	line, err := echo.ParseLine(string(buffer[:n]))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbled, err)
	}
	return &outcome{answer: echo.Answer{Name: line.Name}, reply: line.Text}, nil
}
