//go:build linux

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// defaultText is what is sent to an echo backend when a step doesn't say.
const defaultText = "hello"

// lineCall is a connection over TCP, or TLS over it, on which lines are sent.
type lineCall struct {
	address           string
	port              int // of the listener, not shifted
	send              string
	finish            bool // close the own side, and want the backend's last line
	secure            bool
	sni               string
	alpn              []string
	clientCertificate string
}

// prepareLine fills in what the verbs tcp and tls have in common.
func (s *step) prepareLine(c *lineCall) error {
	if c.send = s.Send; c.send == "" {
		c.send = defaultText
	}
	c.finish = s.Finish
	e := s.Expect
	if c.finish && (e.Failure || e.Closed) {
		return errors.New("finish needs an answer")
	}
	if e.Reply == nil && !e.Failure && !e.Closed && e.Share == nil {
		e.Reply = &c.send
	}
	s.call = c
	return nil
}

// do opens the connection, sends the lines, and reads as many as it has sent.
// A connection that ends before is closed; an error is one that didn't come
// about.
func (c *lineCall) do(ctx context.Context) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := &outcome{}
	began := time.Now()
	err := c.talk(ctx, out)
	out.took = time.Since(began)
	return out, hung(err)
}

func (c *lineCall) talk(ctx context.Context, out *outcome) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(c.address, strconv.Itoa(c.port+portOffset)))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	closeWrite := conn.(*net.TCPConn).CloseWrite //nolint:errcheck // what "tcp" dials
	if c.secure {
		config, err := clientTLS(c.sni, c.alpn, c.clientCertificate, &out.certificate)
		if err != nil {
			return err
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return err
		}
		conn, closeWrite = secure, secure.CloseWrite
	}
	// When this fails, reading tells why.
	_, _ = io.WriteString(conn, c.send+"\n")
	r := bufio.NewReader(conn)
	if err := out.readLines(r, 1+strings.Count(c.send, "\n")); err != nil || out.closed || !c.finish {
		return err
	}
	if err := closeWrite(); err != nil {
		return err
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%w after the end of the client's side: %w", errGarbled, err)
	}
	want := echo.Line{Name: out.answer.Name, TLS: out.answer.TLS, Text: echo.Bye}.String() + "\n"
	if string(rest) != want {
		return fmt.Errorf("%w: after the end of the client's side came %q, want %q", errGarbled, rest, want)
	}
	return nil
}

// readLines reads n lines of one echo backend.
func (o *outcome) readLines(r *bufio.Reader, n int) error {
	var reply []string
	for i := range n {
		text, err := r.ReadString('\n')
		if err != nil {
			// In TLS 1.3 a refusal of the client's certificate comes after the
			// client's own handshake.
			refused := false
			if op, ok := errors.AsType[*net.OpError](err); ok {
				refused = op.Op == "remote error" || op.Timeout()
			}
			if i > 0 || text != "" {
				return fmt.Errorf("%w: %q, then %w", errGarbled, append(reply, text), err)
			}
			if refused {
				return err
			}
			o.closed = true
			return nil
		}
		line, err := echo.ParseLine(strings.TrimSuffix(text, "\n"))
		if err != nil {
			return fmt.Errorf("%w: %w", errGarbled, err)
		}
		if i > 0 && line.Name != o.answer.Name {
			return fmt.Errorf("%w: lines of one connection came from %s and %s", errGarbled, o.answer.Name, line.Name)
		}
		o.answer.Name, o.answer.TLS = line.Name, line.TLS
		reply = append(reply, line.Text)
	}
	o.reply = strings.Join(reply, "\n")
	return nil
}
