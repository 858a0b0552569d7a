//go:build linux

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/test/port"
)

// nameServer is knot, with the zone example.test, in which whoever has the key may write.
type nameServer struct {
	port   int
	secret string
}

const knotConfiguration = `
server:
  listen: 127.0.0.1@%[1]d
  rundir: %[2]s
database:
  storage: %[2]s
log:
- target: stderr
  any: warning
key:
- id: external-dns
  algorithm: hmac-sha256
  secret: %[3]s
acl:
- id: writers
  key: external-dns
  action: [transfer, update]
zone:
- domain: example.test
  storage: %[2]s
  file: zone
  acl: writers
`

const zoneAtFirst = `$ORIGIN example.test.
$TTL 60
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
edge A 198.18.0.2
`

func (n *neighbourhood) startNameServer(t *testing.T) nameServer {
	t.Helper()
	dir := t.TempDir()
	s := nameServer{port.OfTest(t), base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))}
	for name, text := range map[string]string{"knot.conf": fmt.Sprintf(knotConfiguration, s.port, dir, s.secret), "zone": zoneAtFirst} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.start(t, "knotd", "-c", filepath.Join(dir, "knot.conf"))
	n.start(t, filepath.Join(n.dir, "externaldns"), "--kubeconfig", n.admin, "--port", strconv.Itoa(s.port), "--zone", "example.test", "--secret", s.secret)
	return s
}

// addresses are what kdig finds for a name.
func (s nameServer) addresses(t *testing.T, name string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "kdig", "@127.0.0.1", "-p", strconv.Itoa(s.port), "+short", name, "A").Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}

// dial connects to a name, as the server has it.
func (s nameServer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	}}
	return (&net.Dialer{Resolver: resolver}).DialContext(ctx, network, address)
}

// TestNeighbourNames goes the whole way: a team applies a Gateway and a route of the class public-web of the
// library. cert-manager issues the certificate, external-dns writes the name into a DNS server, and a client
// that knows nothing but the name and the authority gets an answer. The name goes with the Gateway.
func TestNeighbourNames(t *testing.T) {
	n, authority, address := servedPublicWeb(t)
	n.apply(`{apiVersion: gatehouse.dev/v1alpha1, kind: GatewayClassValues, metadata: {namespace: gatehouse-system, name: public-web},
	  spec: {targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: public-web}, overrides: {edge: edge.example.test}}}`)
	server := n.startNameServer(t)
	_, listener, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, neighbourTimeout, func() error {
		if found := server.addresses(t, "shop.example.test"); strings.Join(found, " ") != "edge.example.test. 198.18.0.2" {
			return fmt.Errorf("the name leads to %v", found)
		}
		return nil
	})
	web := clientThatTrusts(authority, "")
	web.Transport.(*http.Transport).DialContext = server.dial
	eventually(t, neighbourTimeout, func() error {
		code, err := httpStatus(web, "https://shop.example.test:"+listener+"/")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("status %d", code)
		}
		return err
	})
	n.gatewayIs(t, "shop", "web", "gatehouse.dev/Ready")
	n.sh("", "kubectl delete gateway -n shop web --wait=false")
	eventually(t, neighbourTimeout, func() error {
		if found := server.addresses(t, "shop.example.test"); len(found) > 0 {
			return fmt.Errorf("the name still leads to %v", found)
		}
		return nil
	})
}
