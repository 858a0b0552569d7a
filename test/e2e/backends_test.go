//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/echo"
)

// backends are the echo servers of this test run, started when first named.
// They are shared: a test counts its own requests by their keys.
var backends = struct {
	sync.Mutex
	byName map[string]*echo.Server
}{byName: map[string]*echo.Server{}}

// backend returns the echo server of that name. It listens on 127.0.0.1 and
// ::1, each with its own port.
func backend(name string) (*echo.Server, error) {
	backends.Lock()
	defer backends.Unlock()
	if s, ok := backends.byName[name]; ok {
		return s, nil
	}
	ctx := context.Background()
	s, err := echo.New(ctx, echo.Options{Name: name, Listen: []string{"127.0.0.1:0", "[::1]:0"}})
	if err != nil {
		return nil, err
	}
	go func() { _ = s.Run(ctx) }()
	backends.byName[name] = s
	return s, nil
}

// backendPort returns the port of a backend on 127.0.0.1 (index 0) or ::1 (1).
func backendPort(name string, index int) (int, error) {
	s, err := backend(name)
	if err != nil {
		return 0, err
	}
	tcp, ok := s.Addresses()[index].(*net.TCPAddr)
	if !ok {
		return 0, errors.New("an echo server that doesn't listen on TCP")
	}
	return tcp.Port, nil
}

// backendManifest returns a Service "name" of port 8080 and its EndpointSlice,
// pointing to the echo server "server".
func backendManifest(namespace, name, server string) (string, error) {
	port, err := backendPort(server, 0)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  ports: [{name: http, port: 8080, targetPort: %[3]d}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[2]s-1, namespace: %[1]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: http, port: %[3]d}]
endpoints: [{addresses: [127.0.0.1]}]
`, namespace, name, port), nil
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
