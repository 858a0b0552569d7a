//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// backendKind is a kind of backends: the name, protocol and number of their
// Service's port, and what they show in TLS for a host; nil for cleartext.
type backendKind struct {
	name     string
	protocol string
	port     int
	listen   func(context.Context, echo.Options) (echoServer, error)
	tls      func(name, host string) (*tls.Config, error)
}

var (
	httpBackend  = backendKind{"http", "TCP", 8080, listenHTTP, nil}
	grpcBackend  = backendKind{"grpc", "TCP", 9000, listenHTTP, nil}
	tcpBackend   = backendKind{"tcp", "TCP", 9000, listenTCP, nil}
	udpBackend   = backendKind{"udp", "UDP", 5353, listenUDP, nil}
	tlsBackend   = backendKind{"tls", "TCP", 8443, listenTCP, lineTLS}
	httpsBackend = backendKind{"https", "TCP", 8443, listenHTTP, serverTLS}
	mtlsBackend  = backendKind{"mtls", "TCP", 8443, listenHTTP, mutualTLS}
)

// echoServer is an echo backend of any protocol.
type echoServer interface {
	Run(ctx context.Context) error
	Addresses() []net.Addr
}

func listenHTTP(ctx context.Context, o echo.Options) (echoServer, error) { return echo.New(ctx, o) }
func listenTCP(ctx context.Context, o echo.Options) (echoServer, error)  { return echo.NewTCP(ctx, o) }
func listenUDP(ctx context.Context, o echo.Options) (echoServer, error)  { return echo.NewUDP(ctx, o) }

// backends are the echo servers of this test run, started when first named.
// They are shared: a test counts its own requests by their keys.
var backends = struct {
	sync.Mutex
	byKey map[backendKey]echoServer
}{byKey: map[backendKey]echoServer{}}

// backendKey names a server; host is what its certificate is for.
type backendKey struct{ kind, host, name string }

// start returns the server of a name, which listens on 127.0.0.1 and ::1, each
// with its own port. What it shows in TLS, if it does, is made for host.
func (k backendKind) start(name, host string) (echoServer, error) {
	backends.Lock()
	defer backends.Unlock()
	key := backendKey{kind: k.name, name: name}
	if k.tls != nil {
		key.host = host
	}
	if s, ok := backends.byKey[key]; ok {
		return s, nil
	}
	var config *tls.Config
	if k.tls != nil {
		var err error
		if config, err = k.tls(name, host); err != nil {
			return nil, err
		}
	}
	ctx := context.Background()
	s, err := k.listen(ctx, echo.Options{Name: name, Listen: []string{"127.0.0.1:0", "[::1]:0"}, TLS: config})
	if err != nil {
		return nil, err
	}
	go func() { _ = s.Run(ctx) }()
	backends.byKey[key] = s
	return s, nil
}

// lineTLS is for all hosts of a case. The certificate also has a name by which
// clients can tell whose it is.
func lineTLS(name, host string) (*tls.Config, error) {
	return showing(issue(func(*x509.Certificate) {}, host, "*."+host, name+"."+host))
}

// serverTLS asks for a client's certificate, but takes whatever comes.
func serverTLS(_, host string) (*tls.Config, error) {
	config, err := showing(issue(func(c *x509.Certificate) {
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "e2e", Path: "/" + host}}
	}, host))
	if err == nil {
		config.ClientAuth = tls.RequestClientCert
	}
	return config, err
}

// mutualTLS refuses clients without a certificate of the clients' authority.
func mutualTLS(name, host string) (*tls.Config, error) {
	config, err := serverTLS(name, host)
	if err != nil {
		return nil, err
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, clientAuthority().Pool()
	return config, nil
}

// showing is the TLS of one who has the certificate.
func showing(p pair) (*tls.Config, error) {
	certificate, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}, nil
}

// backend returns the HTTP echo server of that name.
func backend(name string) (*echo.Server, error) {
	s, err := httpBackend.start(name, "")
	if err != nil {
		return nil, err
	}
	server, ok := s.(*echo.Server)
	if !ok {
		return nil, fmt.Errorf("an HTTP backend of type %T", s)
	}
	return server, nil
}

// arrivals is how many requests of a key the HTTP, HTTPS and gRPC servers of a
// name have had.
func arrivals(name, key string) int {
	backends.Lock()
	defer backends.Unlock()
	count := 0
	for k, s := range backends.byKey {
		if server, ok := s.(*echo.Server); ok && k.name == name {
			count += server.Requests().Count(key)
		}
	}
	return count
}

// portOf returns the port of a server on 127.0.0.1 (index 0) or ::1 (1).
func portOf(s echoServer, index int) (int, error) {
	_, text, err := net.SplitHostPort(s.Addresses()[index].String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// backendPort returns the port of an HTTP backend.
func backendPort(name string, index int) (int, error) {
	s, err := backend(name)
	if err != nil {
		return 0, err
	}
	return portOf(s, index)
}

// httpsPort returns the port of an HTTPS backend, whose certificate is for host.
func httpsPort(host, name string) (int, error) {
	s, err := httpsBackend.start(name, host)
	if err != nil {
		return 0, err
	}
	return portOf(s, 0)
}

// manifest returns a Service "name" and its EndpointSlice, pointing to the echo
// server "server", whose certificate, if any, is for host.
func (k backendKind) manifest(namespace, name, server, host string) (string, error) {
	s, err := k.start(server, host)
	if err != nil {
		return "", err
	}
	port, err := portOf(s, 0)
	if err != nil {
		return "", err
	}
	return k.leading(namespace, name, port), nil
}

// leading returns a Service "name" and its EndpointSlice, which lead to a port of
// 127.0.0.1.
func (k backendKind) leading(namespace, name string, port int) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  ports: [{name: %[3]s, port: %[4]d, targetPort: %[5]d, protocol: %[6]s}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[2]s-1, namespace: %[1]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: %[3]s, port: %[5]d, protocol: %[6]s}]
endpoints: [{addresses: [127.0.0.1]}]
`, namespace, name, k.name, k.port, port, k.protocol)
}

// backendManifest is the manifest of an HTTP backend.
func backendManifest(namespace, name, server string) (string, error) {
	return httpBackend.manifest(namespace, name, server, "")
}

// mustBackend is backendManifest for Go tests.
func mustBackend(t *testing.T, namespace, name, server string) string {
	t.Helper()
	manifest, err := backendManifest(namespace, name, server)
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}
