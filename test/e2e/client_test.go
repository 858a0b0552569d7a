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
	http3     bool
	websocket string // a message to send over a WebSocket
	key       string // counts the request at the backends; empty for none

	clientCertificate string   // see clientTLS
	session           *session // keeps the connection for a later call
	reuse             bool     // go over the connection that session keeps
}

// caller is something that a step sends.
type caller interface {
	// do sends it once. An error means that there was no answer at all.
	do(ctx context.Context) (*outcome, error)
}

// keyedCaller is one that the backends can count.
type keyedCaller interface {
	caller
	keyed(key string) caller
}

func (c *clientCall) keyed(key string) caller {
	keyed := *c
	keyed.key = key
	return &keyed
}

// What nobody can mean by a failure: a call that was neither answered nor
// refused, and one whose answer is not that of an echo backend.
var (
	errHung    = errors.New("neither answered nor refused in time")
	errGarbled = errors.New("an answer that no echo backend gives")
)

// failed reports whether err is that there was no answer at all.
func failed(err error) bool {
	return err != nil && !errors.Is(err, errHung) && !errors.Is(err, errGarbled)
}

// hung marks an error that comes of waiting.
func hung(err error) error {
	timeout, ok := errors.AsType[net.Error](err)
	if errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout() {
		return fmt.Errorf("%w: %w", errHung, err)
	}
	return err
}

// session is an HTTP/2 connection that outlives a call.
type session struct {
	conn        *http.ClientConn
	certificate []string
}

func (s *session) keep(conn *http.ClientConn, certificate []string) {
	s.close()
	s.conn, s.certificate = conn, certificate
}

func (s *session) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
}

// outcome is what came back.
type outcome struct {
	status      int
	headers     http.Header
	body        []byte
	answer      echo.Answer // zero when the body isn't an echo server's
	certificate []string    // names in the server's certificate
	took        time.Duration

	trailers http.Header
	code     string // name of the status code of gRPC
	reply    string // lines or datagram of the backend, without its name
	closed   bool   // the connection ended without an answer
	silent   bool   // no datagram came
}

// What is counted for answers that no backend gave.
const (
	whoClosed = "closed"
	whoNone   = "none"
	whoFailed = "failure" // not even a connection, or no handshake
)

// who names the backend that answered, or what came instead.
func (o *outcome) who() string {
	switch {
	case o.closed:
		return whoClosed
	case o.silent:
		return whoNone
	case o.code != "" && o.code != grpcCodes[0]:
		return o.code
	case o.status != 0 && o.status != http.StatusOK:
		return strconv.Itoa(o.status)
	default:
		return o.answer.Name
	}
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
	tlsConfig, err := c.tlsConfig(&out.certificate)
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
	return out, hung(err)
}

func (c *clientCall) doHTTP(req *http.Request, tlsConfig *tls.Config, out *outcome) error {
	if c.http3 {
		transport := c.quic(tlsConfig)
		defer func() { _ = transport.Close() }()
		return out.take(transport.RoundTrip(req))
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return c.dial(ctx, network)
		},
		// Left to itself, net/http puts a server name where none shall be.
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := c.dial(ctx, network)
			if err != nil {
				return nil, err
			}
			secure := tls.Client(conn, tlsConfig)
			if err := secure.HandshakeContext(ctx); err != nil {
				_ = conn.Close()
				return nil, err
			}
			return secure, nil
		},
		DisableKeepAlives: !c.http2,
		Protocols:         new(http.Protocols),
	}
	defer transport.CloseIdleConnections()
	transport.Protocols.SetHTTP1(!c.http2)
	transport.Protocols.SetHTTP2(c.http2)
	transport.Protocols.SetUnencryptedHTTP2(c.http2)
	roundTrip := transport.RoundTrip
	if c.session != nil {
		if !c.reuse {
			address, err := c.dialAddress()
			if err != nil {
				return err
			}
			conn, err := transport.NewClientConn(req.Context(), c.url.Scheme, address)
			if err != nil {
				return err
			}
			c.session.keep(conn, out.certificate)
		}
		if c.session.conn == nil {
			return errors.New("there is no connection to go on with")
		}
		roundTrip, out.certificate = c.session.conn.RoundTrip, c.session.certificate
	}
	return out.take(roundTrip(req))
}

// take reads an answer.
func (out *outcome) take(res *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer res.Body.Close()
	out.status, out.headers = res.StatusCode, res.Header
	if out.body, err = io.ReadAll(res.Body); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	out.trailers = res.Trailer
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

func (c *clientCall) tlsConfig(certificate *[]string) (*tls.Config, error) {
	sni := c.url.Hostname()
	if c.sni != nil {
		sni = *c.sni
	}
	var alpn []string
	if c.http2 {
		alpn = []string{"h2"}
	}
	return clientTLS(sni, alpn, c.clientCertificate, certificate)
}

// unknownAuthority before the name of a client certificate has it signed by an
// authority that nobody trusts.
const unknownAuthority = "other:"

// clientTLS checks the server's chain but not its names: a test says itself
// which certificate it expects. The names in the one served are noted in served.
// client is the subject of the client's certificate, empty for none.
func clientTLS(sni string, alpn []string, client string, served *[]string) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         sni,
		NextProtos:         alpn,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection checks the chain
		VerifyConnection: func(state tls.ConnectionState) error {
			leaf := state.PeerCertificates[0]
			*served = leaf.DNSNames
			_, err := leaf.Verify(x509.VerifyOptions{Roots: testAuthority().Pool()})
			return err
		},
	}
	if client == "" {
		return config, nil
	}
	by := clientAuthority
	if name, ok := strings.CutPrefix(client, unknownAuthority); ok {
		client, by = name, otherAuthority
	}
	p := issueClient(by, client)
	certificate, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	// Unlike Certificates, this shows it whichever authorities the server names.
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
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
