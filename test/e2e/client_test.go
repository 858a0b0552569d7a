//go:build linux

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// callTimeout bounds a single request.
const callTimeout = 15 * time.Second

// clientCall is one request as a client sends it. Each goes over a new
// connection, so that no answer depends on the one before.
type clientCall struct {
	method    string
	url       *url.URL // as the client sees it: listener ports, not shifted ones
	address   string   // the IP address to which it is sent
	headers   map[string]string
	body      string
	sni       *string // nil: the host of the URL; empty: none
	http2     bool
	websocket string // a message to send over a WebSocket
	key       string // counts the request at the backends; empty for none
}

// outcome is what came back.
type outcome struct {
	status      int
	headers     http.Header
	body        []byte
	answer      echo.Answer // zero when the body isn't an echo server's
	certificate []string    // names in the server's certificate
	took        time.Duration
}

// dialAddress is where the call goes: the listener's port plus the offset.
func (c *clientCall) dialAddress() (string, error) {
	port := 80
	if c.url.Scheme == "https" {
		port = 443
	}
	if p := c.url.Port(); p != "" {
		var err error
		if port, err = strconv.Atoi(p); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(c.address, strconv.Itoa(port+portOffset)), nil
}

// do sends the request and reads the whole answer. Redirects are not followed.
func (c *clientCall) do(ctx context.Context) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out := &outcome{}
	tlsConfig, err := c.tlsConfig(out)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, c.method, c.url.String(), strings.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	if c.body == "" {
		req.Body, req.ContentLength = http.NoBody, 0
	}
	// Without this, net/http asks for gzip and hides it.
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "gatehouse-e2e")
	for name, value := range c.headers {
		if strings.EqualFold(name, "host") {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	if c.key != "" {
		req.Header.Set("Echo-Key", c.key)
	}
	began := time.Now()
	if c.websocket != "" {
		err = c.doWebSocket(req, tlsConfig, out)
	} else {
		err = c.doHTTP(req, tlsConfig, out)
	}
	out.took = time.Since(began)
	return out, err
}

func (c *clientCall) doHTTP(req *http.Request, tlsConfig *tls.Config, out *outcome) error {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return c.dial(ctx, network)
		},
		TLSClientConfig:   tlsConfig,
		DisableKeepAlives: !c.http2,
		Protocols:         new(http.Protocols),
	}
	defer transport.CloseIdleConnections()
	transport.Protocols.SetHTTP1(!c.http2)
	transport.Protocols.SetHTTP2(c.http2)
	transport.Protocols.SetUnencryptedHTTP2(c.http2)
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	out.status, out.headers = res.StatusCode, res.Header
	if out.body, err = io.ReadAll(res.Body); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		// Other JSON than an echo server's leaves the answer empty, which the
		// expectations then show.
		_ = json.Unmarshal(out.body, &out.answer)
	}
	return nil
}

func (c *clientCall) dial(ctx context.Context, network string) (net.Conn, error) {
	address, err := c.dialAddress()
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// tlsConfig checks the server's chain but not its names: a test says itself
// which certificate it expects. What was served is noted in out.
func (c *clientCall) tlsConfig(out *outcome) (*tls.Config, error) {
	ca, err := testAuthority()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.url.Hostname(),
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection checks the chain
		VerifyConnection: func(state tls.ConnectionState) error {
			leaf := state.PeerCertificates[0]
			out.certificate = leaf.DNSNames
			_, err := leaf.Verify(x509.VerifyOptions{Roots: ca.pool})
			return err
		},
	}
	if c.sni != nil {
		config.ServerName = *c.sni
	}
	if c.http2 {
		config.NextProtos = []string{"h2"}
	}
	return config, nil
}

// doWebSocket shakes hands, sends the message, and takes what comes back as the
// body. A refused handshake is an ordinary answer.
func (c *clientCall) doWebSocket(req *http.Request, tlsConfig *tls.Config, out *outcome) error {
	conn, err := c.dial(req.Context(), "tcp")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := req.Context().Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if c.url.Scheme == "https" {
		conn = tls.Client(conn, tlsConfig)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "websocket")
	req.Header.Set("Sec-WebSocket-Version", "13")
	req.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	if err := req.Write(conn); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	out.status, out.headers = res.StatusCode, res.Header
	if res.StatusCode != http.StatusSwitchingProtocols {
		out.body, err = io.ReadAll(res.Body)
		return err
	}
	out.answer.Name = res.Header.Get("Echo-Name")
	// A masked text frame with the mask 0 (RFC 6455 §5.2).
	if len(c.websocket) > 125 {
		return errors.New("the test's WebSocket messages are short ones")
	}
	message := append([]byte{0x81, 0x80 | byte(len(c.websocket)), 0, 0, 0, 0}, c.websocket...)
	if _, err := conn.Write(message); err != nil {
		return err
	}
	head := make([]byte, 2)
	if _, err := io.ReadFull(r, head); err != nil {
		return err
	}
	out.body = make([]byte, head[1]&0x7f)
	_, err = io.ReadFull(r, out.body)
	out.answer.Body = string(out.body)
	return err
}
