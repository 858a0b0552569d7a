//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	extensionv1alpha1 "github.com/gatehouse-dev/gatehouse/api/extension/v1alpha1"
)

// extensionServer is an extension server at a socket, which can be stopped and started anew.
type extensionServer struct {
	extensionv1alpha1.UnimplementedExtensionServer
	address string // a path of a socket, or HOST:PORT
	options []grpc.ServerOption
	server  *grpc.Server
	done    chan struct{}

	mu     sync.Mutex
	answer func(*extensionv1alpha1.ChangeRequest) *extensionv1alpha1.ChangeResponse
	asked  map[string]int // by name
}

func (s *extensionServer) Change(_ context.Context, r *extensionv1alpha1.ChangeRequest) (*extensionv1alpha1.ChangeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.Name]++
	return s.answer(r), nil
}

func (s *extensionServer) start(t *testing.T) {
	t.Helper()
	network := "tcp"
	if filepath.IsAbs(s.address) {
		network = "unix"
	}
	lis, err := net.Listen(network, s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = lis.Addr().String()
	s.server, s.done = grpc.NewServer(s.options...), make(chan struct{})
	extensionv1alpha1.RegisterExtensionServer(s.server, s)
	go func() {
		defer close(s.done)
		_ = s.server.Serve(lis)
	}()
}

func (s *extensionServer) stop() {
	s.server.Stop()
	<-s.done
	_ = os.Remove(s.address)
}

// says sets what is answered, by a server that starts anew with it.
func (s *extensionServer) says(t *testing.T, answer func(*extensionv1alpha1.ChangeRequest) *extensionv1alpha1.ChangeResponse) {
	t.Helper()
	s.stop()
	s.mu.Lock()
	s.answer = answer
	s.mu.Unlock()
	s.start(t)
}

func (s *extensionServer) times(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}

// patchesHost answers with a JSON patch for one host, and with nothing for others.
func patchesHost(host, patch string) func(*extensionv1alpha1.ChangeRequest) *extensionv1alpha1.ChangeResponse {
	return func(r *extensionv1alpha1.ChangeRequest) *extensionv1alpha1.ChangeResponse {
		if r.Name != host {
			return &extensionv1alpha1.ChangeResponse{}
		}
		return &extensionv1alpha1.ChangeResponse{Change: &extensionv1alpha1.ChangeResponse_Patch{Patch: patch}}
	}
}

const setsTenant = `[{"op": "add", "path": "/response_headers_to_add", "value": [{"header": {"key": "x-tenant", "value": "gold"}}]}]`

// startExtension starts a server that adds a header to answers of home.example, and a site that asks it.
func startExtension(t *testing.T, failureMode string, manifests map[string]string) (*extensionServer, *site) {
	t.Helper()
	needTools(t)
	dir := t.TempDir()
	s := &extensionServer{address: filepath.Join(dir, "s"), asked: map[string]int{}, answer: patchesHost("home.example", setsTenant)}
	s.start(t)
	t.Cleanup(func() { s.stop() })
	return s, startSite(t, manifests, "--extensions", extensionsFile(t, "address: 'unix://"+s.address+"', hooks: [VirtualHost], failureMode: "+failureMode))
}

// extensionsFile is a file with one extension.
func extensionsFile(t *testing.T, settings string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "extensions.yaml")
	if err := os.WriteFile(file, []byte("extensions: [{name: tenants, encoding: JSON, "+settings+"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// tenant waits for an answer of a backend with a value of x-tenant.
func (s *site) tenant(t *testing.T, host, backend, want string) {
	t.Helper()
	eventually(t, siteTimeout, func() error {
		o, err := s.call("http://" + host + "/")
		if err != nil {
			return err
		}
		if err := (&expectation{Status: codes{http.StatusOK}, Backend: backend}).check(o); err != nil {
			return err
		}
		if got := o.headers.Get("x-tenant"); got != want {
			return fmt.Errorf("x-tenant is %q, want %q", got, want)
		}
		return nil
	})
}

// TestExtensionServer protects those whose extension server is away, or answers what it must not: requests are served, others'
// hosts are as they are, and what is wrong is told; and those who rely on it when it is there again.
func TestExtensionServer(t *testing.T) {
	t.Parallel()
	server, s := startExtension(t, "Open", map[string]string{"open.yaml": siteRoute("open", "open.example", "v1")})
	s.tenant(t, "home.example", "v1", "gold")
	s.tenant(t, "open.example", "v1", "")
	s.says(t, "Gateway gw", "Extension servers have answered")

	// Away: what was said counts, what has changed since is served as it is.
	server.stop()
	s.tenant(t, "home.example", "v1", "gold")
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v2"))
	s.tenant(t, "home.example", "v2", "")
	s.says(t, "Gateway gw", "extension tenants has no effect on VirtualHost home.example: the server does not answer")

	// There again: it is asked by itself, about one host each time that this changes.
	server.start(t)
	s.tenant(t, "home.example", "v2", "gold")
	s.says(t, "Gateway gw", "Extension servers have answered")
	before := server.times("open.example")
	s.write(t, "home.yaml", siteRoute("home", "home.example", "v1"))
	s.tenant(t, "home.example", "v1", "gold")
	if n := server.times("open.example"); n != before {
		t.Errorf("an edit of another host had the server asked about open.example %d times", n-before)
	}

	// Answers that must not be taken.
	for what, patch := range map[string]string{
		"operations are no list":                   `garbage`,
		"routes can't be added or removed":         `[{"op": "remove", "path": "/routes/0"}]`,
		"domains can't be changed":                 `[{"op": "replace", "path": "/domains", "value": ["open.example"]}]`,
		"typed_per_filter_config can't be changed": `[{"op": "add", "path": "/typed_per_filter_config", "value": {"x": {"@type": "type.googleapis.com/google.protobuf.Empty"}}}]`,
		"there is no operator NONSENSE":            `[{"op": "add", "path": "/response_headers_to_add", "value": [{"header": {"key": "x-tenant", "value": "%NONSENSE%"}}]}]`,
		"cluster can't be changed":                 `[{"op": "replace", "path": "/routes/0/route/cluster", "value": "xds"}]`,
	} {
		server.says(t, patchesHost("home.example", patch))
		s.says(t, "Gateway gw", what)
		s.tenant(t, "home.example", "v1", "")
		s.tenant(t, "open.example", "v1", "")
	}
	server.says(t, patchesHost("open.example", setsTenant))
	s.tenant(t, "home.example", "v1", "")
	s.tenant(t, "open.example", "v1", "gold")
	s.says(t, "Gateway gw", "Extension servers have answered")
}

// TestExtensionServerTLS protects what an extension server is told, and what it may say, by TLS of both sides: one that nobody
// vouches for isn't heard. Listeners and clusters are changed as it says.
func TestExtensionServerTLS(t *testing.T) {
	t.Parallel()
	needTools(t)
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	shows := func(p pair) grpc.ServerOption {
		t.Helper()
		own, err := tls.X509KeyPair(p.cert, p.key)
		if err != nil {
			t.Fatal(err)
		}
		clients := x509.NewCertPool()
		clients.AddCert(clientAuthority().Leaf)
		return grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
		}))
	}
	good := issue(func(*x509.Certificate) {}, "extension.test")
	stranger := sign(otherAuthority, nil, func(c *x509.Certificate) { c.DNSNames = []string{"extension.test"} })
	client := issueClient(clientAuthority, "gatehouse")
	server := &extensionServer{
		address: "127.0.0.1:0", options: []grpc.ServerOption{shows(stranger)}, asked: map[string]int{},
		answer: func(r *extensionv1alpha1.ChangeRequest) *extensionv1alpha1.ChangeResponse {
			patch := `[{"op": "add", "path": "/connect_timeout", "value": "7s"}]`
			if r.Hook == extensionv1alpha1.Hook_HOOK_LISTENER {
				patch = `[{"op": "add", "path": "/filter_chains/0/filters/0/typed_config/http_filters/-", "value": {"name": "edge", "typed_config": {
					"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
					"default_source_code": {"inline_string": "function envoy_on_response(h) h:headers():add('x-tenant', 'gold') end"}}}}]`
			}
			return &extensionv1alpha1.ChangeResponse{Change: &extensionv1alpha1.ChangeResponse_Patch{Patch: patch}}
		},
	}
	server.start(t)
	t.Cleanup(func() { server.stop() })
	s := startSite(t, nil, "--extensions", extensionsFile(t, fmt.Sprintf(
		"address: %q, hooks: [Listener, Cluster], failureMode: Open, tls: {serverName: extension.test, caFile: %q, certFile: %q, keyFile: %q}", server.address,
		write("ca.pem", testAuthority().PEM()), write("client.pem", client.cert), write("client.key", client.key))))
	s.tenant(t, "home.example", "v1", "")
	s.says(t, "Gateway gw", "certificate signed by unknown authority")
	if len(server.asked) > 0 {
		t.Errorf("a server that nobody vouches for is asked: %v", server.asked)
	}

	server.stop()
	server.options = []grpc.ServerOption{shows(good)}
	server.start(t)
	s.tenant(t, "home.example", "v1", "gold")
	s.says(t, "Gateway gw", "Extension servers have answered")
	eventually(t, siteTimeout, func() error {
		if dump := s.envoySays(t, "/config_dump?resource=dynamic_active_clusters"); !bytes.Contains(dump, []byte(`"connect_timeout": "7s"`)) {
			return fmt.Errorf("no cluster connects for 7s: %.2000s", dump)
		}
		return nil
	})
}
