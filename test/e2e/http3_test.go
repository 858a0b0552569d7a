//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// quic makes the transport of a call over HTTP/3. A connection lasts as long as it.
func (c *clientCall) quic(config *tls.Config) *http3.Transport {
	return &http3.Transport{
		TLSClientConfig: config,
		Dial: func(ctx context.Context, _ string, config *tls.Config, options *quic.Config) (*quic.Conn, error) {
			address, err := c.dialAddress()
			if err != nil {
				return nil, err
			}
			return quic.DialAddr(ctx, address, config, options)
		},
	}
}

// TestHTTP3Connection protects connections of HTTP/3 from what goes on around them:
// one lasts through changes of routes, and carries bodies that exceed all windows.
func TestHTTP3Connection(t *testing.T) {
	t.Parallel()
	s := startSite(t, secureSite(t, "home.example"), "--http3")
	call := &clientCall{method: http.MethodPost, url: &url.URL{Scheme: "https", Host: "home.example", Path: "/"}, address: s.address, http3: true}
	config, err := call.tlsConfig(new([]string))
	if err != nil {
		t.Fatal(err)
	}
	dials := 0
	transport := call.quic(config)
	dial := transport.Dial
	transport.Dial = func(ctx context.Context, address string, config *tls.Config, options *quic.Config) (*quic.Conn, error) {
		dials++
		return dial(ctx, address, config, options)
	}
	defer func() { _ = transport.Close() }()
	send := func(body string) *outcome {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 3*callTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.url.String(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		out := &outcome{}
		if err := out.take(transport.RoundTrip(req)); err != nil {
			t.Fatal(err)
		}
		if out.status != http.StatusOK {
			t.Fatalf("%d: %s", out.status, clipped(out.body))
		}
		return out
	}
	for i := range 20 {
		s.write(t, "more.yaml", siteRoute(fmt.Sprintf("more-%d", i), fmt.Sprintf("more-%d.example", i), "v2"))
		s.serves(t, fmt.Sprintf("more-%d.example", i), "v2")
		send("")
	}
	// A listener more is a filter chain more, which is no matter to the others.
	s.write(t, "gateway.yaml", siteGateway(
		"{name: http, port: 80, protocol: HTTP}",
		"{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}",
		"{name: other, port: 443, protocol: HTTPS, hostname: other.example, tls: {certificateRefs: [{name: cert}]}}",
	))
	s.conditions(t, "Gateway gw", "other", "Programmed=True")
	// The echo answers with the start of it.
	body := strings.Repeat("0123456789abcdef", 2<<20/16)
	if out := send(body); out.answer.Body == "" || !strings.HasPrefix(body, out.answer.Body) {
		t.Errorf("a body of %d bytes came back with %d", len(body), len(out.answer.Body))
	}
	if dials != 1 {
		t.Errorf("%d connections, want one for all", dials)
	}
	s.conditions(t, "Gateway gw", "https", "Programmed=True")
}

// TestHTTP3SlowBackend protects bodies that come faster than a backend reads them: the
// client is made to wait, and loses nothing. Packets that it sends in one go arrive as one.
func TestHTTP3SlowBackend(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		total, part := 0, make([]byte, 16<<10)
		for {
			n, err := r.Body.Read(part)
			total += n
			if err != nil {
				break
			}
			time.Sleep(time.Millisecond) // is slow
		}
		_, _ = fmt.Fprint(w, total)
	}))
	defer slow.Close()
	manifests := secureSite(t, "home.example")
	manifests["slow.yaml"] = siteRoute("slow", "slow.example", "slow") +
		httpBackend.leading(siteNamespace, "slow", slow.Listener.Addr().(*net.TCPAddr).Port)
	s := startSite(t, manifests, "--http3")
	body := strings.Repeat("0123456789abcdef", 8<<20/16)
	out, err := (&clientCall{
		method: http.MethodPost, url: &url.URL{Scheme: "https", Host: "slow.example", Path: "/"}, body: body,
		sni: new("home.example"), address: s.address, http3: true,
	}).do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if out.status != http.StatusOK || string(out.body) != strconv.Itoa(len(body)) {
		t.Errorf("%d: %s; want 200 and %d bytes", out.status, clipped(out.body), len(body))
	}
}

// TestHTTP3PortTaken protects whoever wonders why there is no HTTP/3: the listener
// says so while it serves over TCP, and has it as soon as the port is free.
func TestHTTP3PortTaken(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	address := newAddress()
	taken, err := net.ListenPacket("udp", net.JoinHostPort(address, strconv.Itoa(443+portOffset)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := startSite(t, secureSite(t, "home.example"), "--bind", address)
	s.address = address
	s.conditions(t, "Gateway gw", "https", "Programmed=True")
	s.write(t, "gateway.yaml", siteGateway(
		"{name: http, port: 80, protocol: HTTP}",
		`{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}], options: {gatehouse.dev/http3: "true"}}}`,
	))
	s.conditions(t, "Gateway gw", "https", "Accepted=False/PortUnavailable", "Programmed=False")
	s.says(t, "Gateway gw", fmt.Sprintf("UDP port %d is used by another process", 443+portOffset))
	s.conditions(t, "Gateway gw", "http", "Programmed=True")
	over := func(http3 bool) error {
		_, err := (&clientCall{
			method: http.MethodGet, url: &url.URL{Scheme: "https", Host: "home.example", Path: "/"}, address: s.address, http3: http3,
		}).do(t.Context())
		return err
	}
	if err := over(false); err != nil {
		t.Errorf("over TCP: %v", err)
	}
	_ = taken.Close()
	s.conditions(t, "Gateway gw", "https", "Accepted=True", "Programmed=True")
	eventually(t, siteTimeout, func() error { return over(true) })
	s.write(t, "gateway.yaml", siteGateway(
		"{name: http, port: 80, protocol: HTTP}",
		`{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}], options: {gatehouse.dev/http3: "false"}}}`,
	))
	eventually(t, siteTimeout, func() error {
		if over(true) == nil {
			return errors.New("there is HTTP/3, though it is turned off")
		}
		return nil
	})
	if err := over(false); err != nil {
		t.Errorf("over TCP, afterwards: %v", err)
	}
	s.write(t, "gateway.yaml", siteGateway(
		"{name: http, port: 80, protocol: HTTP}",
		`{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}], options: {gatehouse.dev/http3: "true"}}}`,
	))
	eventually(t, siteTimeout, func() error { return over(true) })
	for range 20 {
		if err := over(true); err != nil {
			t.Errorf("HTTP/3, turned on again: %v", err)
		}
	}
}

// secureSite returns manifests that give a site an HTTPS listener too, with a
// certificate for the host.
func secureSite(t *testing.T, host string) map[string]string {
	t.Helper()
	secret, err := secretManifest(siteNamespace, "cert", "", host)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"secret.yaml": secret,
		"gateway.yaml": siteGateway(
			"{name: http, port: 80, protocol: HTTP}",
			"{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}",
		),
	}
}
