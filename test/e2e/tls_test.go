//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/slow"
)

// tlsClient is a client of which a test decides how it speaks TLS.
type tlsClient struct {
	address string // host:port
	config  *tls.Config
}

// client returns one for a host name and a port of the Gateway. It trusts the run's
// authority and checks the names.
func (s *site) client(t *testing.T, host string, port int) *tlsClient {
	t.Helper()
	return &tlsClient{
		address: net.JoinHostPort(s.address, strconv.Itoa(port+portOffset)),
		config:  &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, RootCAs: testAuthority().Pool()},
	}
}

// shows makes the client show a certificate, whichever authorities the server names.
func (c *tlsClient) shows(t *testing.T, p pair) *tlsClient {
	t.Helper()
	certificate, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	c.config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }
	return c
}

// get sends one request over a new connection. Over TLS 1.3, a refusal of the
// client's certificate comes only with the first answer.
func (c *tlsClient) get(headers ...string) (*outcome, *tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := (&tls.Dialer{Config: c.config}).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, nil, err
	}
	req := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Host: c.config.ServerName, Header: http.Header{}, Close: true}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	if err := req.Write(conn); err != nil {
		return nil, nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return nil, nil, err
	}
	out := &outcome{}
	if err := out.take(res, nil); err != nil {
		return nil, nil, err
	}
	state := conn.(*tls.Conn).ConnectionState()
	return out, &state, nil
}

// works expects an answer of the backend.
func (c *tlsClient) works(headers ...string) (*outcome, *tls.ConnectionState, error) {
	o, state, err := c.get(headers...)
	if err == nil && o.status != http.StatusOK {
		err = fmt.Errorf("status %d", o.status)
	}
	return o, state, err
}

// refused expects that Envoy ends the connection, which a port that nothing listens on does not show.
func (c *tlsClient) refused() error {
	o, _, err := c.get()
	if err == nil {
		return fmt.Errorf("answered with status %d", o.status)
	}
	if hung := (net.Error)(nil); errors.As(err, &hung) && hung.Timeout() || errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return nil
}

// keyFor returns what key the certificate has that a client of TLS 1.2 with a single
// cipher suite is shown. Such clients are older than the extension by which all of Go's
// name their version, so that it is hidden. The handshake can't be finished then.
func (c *tlsClient) keyFor(suite uint16) (key x509.PublicKeyAlgorithm, err error) {
	conn, err := net.DialTimeout("tcp", c.address, 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	config := c.config.Clone()
	config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{suite}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		key = state.PeerCertificates[0].PublicKeyAlgorithm
		return nil
	}
	if err := tls.Client(oldClient{conn}, config).Handshake(); key == 0 {
		return 0, err
	}
	return key, nil
}

// oldClient hides the extension supported_versions by giving it a number that no
// extension has.
type oldClient struct{ net.Conn }

func (c oldClient) Write(b []byte) (int, error) {
	return c.Conn.Write(bytes.Replace(b, []byte("\x00\x2b\x00\x03\x02\x03\x03"), []byte("\xfa\xfa\x00\x03\x02\x03\x03"), 1))
}

func mustSecret(t *testing.T, name string, hosts ...string) string {
	t.Helper()
	text, err := secretManifest(siteNamespace, name, "", hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func clientWith(ca authority, change func(*x509.Certificate)) pair {
	return sign(ca, nil, func(c *x509.Certificate) {
		c.Subject.CommonName = "joe"
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		change(c)
	})
}

// TestTLSVersionsAndKeys protects clients that can do only one of RSA and ECDSA on a
// listener with both, and listeners from versions that they don't want.
func TestTLSVersionsAndKeys(t *testing.T) {
	t.Parallel()
	rsaSecret, err := rsaSecretManifest(siteNamespace, "rsa", "*.example")
	if err != nil {
		t.Fatal(err)
	}
	s := startSite(t, map[string]string{
		"ecdsa.yaml": mustSecret(t, "ecdsa", "*.example"),
		"rsa.yaml":   rsaSecret,
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}",
			"{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: ecdsa}, {name: rsa}]}}",
			"{name: modern, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: ecdsa}], options: {gatehouse.dev/min-tls-version: \"1.3\"}}}"),
	})
	s.conditions(t, "Gateway gw", "modern", "Programmed=True")
	s.conditions(t, "Gateway gw", "https", "Programmed=True")
	for suite, want := range map[uint16]x509.PublicKeyAlgorithm{
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:   x509.RSA,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: x509.ECDSA,
	} {
		if got, err := s.client(t, "home.example", 443).keyFor(suite); err != nil || got != want {
			t.Errorf("%s: the certificate's key is %v, want %v (%v)", tls.CipherSuiteName(suite), got, want, err)
		}
	}
	for _, c := range []struct {
		port   int
		most   uint16
		served bool
	}{{443, tls.VersionTLS11, false}, {443, tls.VersionTLS12, true}, {8443, tls.VersionTLS12, false}, {8443, tls.VersionTLS13, true}} {
		client := s.client(t, "home.example", c.port)
		client.config.MinVersion, client.config.MaxVersion = tls.VersionTLS10, c.most //nolint:gosec // that it is refused is the point
		if c.served {
			_, _, err = client.works()
		} else {
			err = client.refused()
		}
		if err != nil {
			t.Errorf("port %d with at most %s: %v", c.port, tls.VersionName(c.most), err)
		}
	}
}

// TestCertificateRotation protects handshakes and open connections: the certificate
// and its key are replaced every 500 ms for 20 s while 100 new connections come each
// second.
func TestCertificateRotation(t *testing.T) {
	slow.Skip(t)
	t.Parallel()
	s := startSite(t, map[string]string{
		"cert.yaml": mustSecret(t, "cert", "home.example"),
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}",
			"{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}"),
	})
	s.conditions(t, "Gateway gw", "https", "Programmed=True")
	c := s.client(t, "home.example", 443)
	kept, err := tls.Dial("tcp", c.address, c.config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()

	var mu sync.Mutex
	failures, serials := map[string]int{}, map[string]bool{}
	var clients sync.WaitGroup
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	const connections = 2000
	for i := range connections {
		<-ticker.C
		if i%50 == 0 {
			s.write(t, "cert.yaml", mustSecret(t, "cert", "home.example"))
		}
		clients.Go(func() {
			_, state, err := c.works()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures[err.Error()]++
				return
			}
			serials[state.PeerCertificates[0].SerialNumber.String()] = true
		})
	}
	clients.Wait()
	if len(failures) > 0 {
		t.Errorf("of %d connections failed: %v", connections, failures)
	}
	if len(serials) < 20 {
		t.Errorf("only %d of 40 certificates were seen", len(serials))
	}
	if _, err := io.WriteString(kept, "GET / HTTP/1.1\r\nHost: home.example\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if res, err := http.ReadResponse(bufio.NewReader(kept), nil); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the connection that was open all the time: %v, %v", res, err)
	}
}

// clientSite starts a site whose port 443 lets in the clients of an authority, and
// 8443 those of others.
func clientSite(t *testing.T) *site {
	t.Helper()
	listener := "{name: %s, port: %d, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}"
	gateway := siteGateway("{name: http, port: 80, protocol: HTTP}",
		fmt.Sprintf(listener, "https", 443), fmt.Sprintf(listener, "others", 8443))
	gateway = strings.Replace(gateway, "  listeners:\n", `  tls:
    frontend:
      default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}
      perPort:
      - {port: 8443, tls: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: others}]}}}
  listeners:
`, 1)
	s := startSite(t, map[string]string{
		"cert.yaml": mustSecret(t, "cert", "*.example"), "gateway.yaml": gateway,
		"clients.yaml": caManifest(clientAuthority, siteNamespace, "clients"), "others.yaml": caManifest(otherAuthority, siteNamespace, "others"),
	})
	s.conditions(t, "Gateway gw", "https", "Programmed=True")
	s.conditions(t, "Gateway gw", "others", "Programmed=True")
	return s
}

// TestClientCertificates protects backends from clients that are not who they say:
// certificates that are too old, not for clients, or not what a header claims.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	s := clientSite(t)
	joe := clientWith(clientAuthority, func(c *x509.Certificate) {
		c.DNSNames = []string{"joe.example"}
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example", Path: "/joe"}}
	})
	o, _, err := s.client(t, "home.example", 443).shows(t, joe).works("X-Forwarded-Client-Cert", `Subject="CN=root"`)
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(o.answer.Headers.Values("X-Forwarded-Client-Cert"), " | ")
	for _, part := range []string{"Hash=", `Subject="CN=joe"`, "URI=spiffe://example/joe", "DNS=joe.example"} {
		if !strings.Contains(told, part) {
			t.Errorf("the backend is told %s, without %s", told, part)
		}
	}
	if strings.Contains(told, "root") {
		t.Errorf("the backend is told what the client says: %s", told)
	}
	for name, p := range map[string]pair{
		"expired": clientWith(clientAuthority, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }),
		"early":   clientWith(clientAuthority, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }),
		"server's": clientWith(clientAuthority, func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}),
		"of another authority": clientWith(otherAuthority, func(*x509.Certificate) {}),
		"of the servers'":      clientWith(testAuthority, func(*x509.Certificate) {}),
	} {
		for _, most := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			c := s.client(t, "home.example", 443).shows(t, p)
			c.config.MaxVersion = most
			if err := c.refused(); err != nil {
				t.Errorf("a certificate that is %s, %s: %v", name, tls.VersionName(most), err)
			}
		}
	}
}

// TestResumptionChecksClients protects a listener from sessions that another check
// has let in: of another listener, and of the authorities of before.
func TestResumptionChecksClients(t *testing.T) {
	t.Parallel()
	s := clientSite(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		name := tls.VersionName(version)
		joe := clientWith(clientAuthority, func(*x509.Certificate) {})
		sessions := tls.NewLRUClientSessionCache(8)
		client := func(port int) *tlsClient {
			c := s.client(t, "home.example", port).shows(t, joe)
			c.config.MinVersion, c.config.MaxVersion = version, version
			c.config.ClientSessionCache = sessions
			return c
		}
		c := client(443)
		if _, _, err := c.works(); err != nil {
			t.Fatal(name, err)
		}
		if _, state, err := c.works(); err != nil || !state.DidResume {
			t.Fatalf("%s: sessions are not resumed (%v): there is nothing to test", name, err)
		}
		if err := client(8443).refused(); err != nil {
			t.Errorf("%s: the session of another port: %v", name, err)
		}
		// The cache goes by server name: a refused attempt may have emptied it.
		if _, _, err := c.works(); err != nil {
			t.Fatal(name, err)
		}
		s.write(t, "clients.yaml", caManifest(otherAuthority, siteNamespace, "clients"))
		sam := s.client(t, "home.example", 443).shows(t, clientWith(otherAuthority, func(*x509.Certificate) {}))
		eventually(t, siteTimeout, func() error { _, _, err := sam.works(); return err })
		if err := c.refused(); err != nil {
			t.Errorf("%s: the session of before the change of authorities: %v", name, err)
		}
		s.write(t, "clients.yaml", caManifest(clientAuthority, siteNamespace, "clients"))
		eventually(t, siteTimeout, func() error { _, _, err := client(443).works(); return err })
	}
}

// TestRefusedListenerChecksClients protects a listener that asks clients for certificates from a
// mistake elsewhere, because of which Envoy refuses it: it doesn't stay as open as it was.
func TestRefusedListenerChecksClients(t *testing.T) {
	t.Parallel()
	gateway := func(frontend, parameters string) string {
		return siteGateway("{name: http, port: 80, protocol: HTTP}",
			"{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: cert}]}}") +
			"  infrastructure: {parametersRef: {group: gatehouse.dev, kind: GatewayParameters, name: edge}}\n" +
			frontend + siteParameters(parameters)
	}
	const asks = `  tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}}
`
	s := startSite(t, map[string]string{
		"cert.yaml": mustSecret(t, "cert", "*.example"), "clients.yaml": caManifest(clientAuthority, siteNamespace, "clients"),
		"gateway.yaml": gateway("", "accessLog: []"),
	}, "--allow-unsafe-parameters")
	s.conditions(t, "Gateway gw", "https", "Programmed=True")
	c := s.client(t, "home.example", 443)
	if _, _, err := c.works(); err != nil {
		t.Fatal(err)
	}
	s.write(t, "gateway.yaml", gateway(asks, "accessLog: [{path: /nonesuch/log}]"))
	s.conditions(t, "Gateway gw", "https", "Programmed=False")
	s.says(t, "Gateway gw", "/nonesuch/log")
	if _, _, err := c.works(); err == nil {
		t.Error("a client without a certificate is let in")
	}
	s.serves(t, "home.example", "v1") // which asks for nothing
	s.write(t, "gateway.yaml", gateway(asks, "accessLog: []"))
	s.conditions(t, "Gateway gw", "https", "Programmed=True")
	// Envoy has taken the listener, and opens its port a moment later.
	known := s.client(t, "home.example", 443).shows(t, clientWith(clientAuthority, func(*x509.Certificate) {}))
	eventually(t, siteTimeout, func() error { _, _, err := known.works(); return err })
	if err := c.refused(); err != nil {
		t.Error(err)
	}
}
