package identity_test

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
)

// proxy is what runs in a pod: the client for its identity, over whose connections
// xDS is spoken.
type proxy struct {
	t *testing.T
	*client.Client
}

func (h *controller) proxy(t *testing.T, token string) *proxy {
	t.Helper()
	dir := t.TempDir()
	p := &proxy{t: t}
	o := client.Options{
		API: h.api, XDS: h.ads, ServerName: serverName,
		TokenFile: filepath.Join(dir, "token"), CAFile: filepath.Join(dir, "ca.crt"),
	}
	for file, text := range map[string]string{o.TokenFile: token, o.CAFile: string(h.authority.Bundle())} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if p.Client, err = client.New(o); err != nil {
		t.Fatal(err)
	}
	run(t, p.Run)
	return p
}

// stream speaks xDS over connections that dial makes, and returns the first answer
// to a request for listeners. It goes on reading until the stream ends.
func stream(t *testing.T, dial func(context.Context) (net.Conn, error), node *corev3.Node) (answer string, ended <-chan error) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:controller", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(func() { cancel(); _ = conn.Close() })
	failed := make(chan error, 1)
	s, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		failed <- err
		return "", failed
	}
	_ = s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: envoy.Listeners.URL(), Node: node})
	m, err := s.Recv()
	if err != nil {
		failed <- err
		return "", failed
	}
	go func() {
		_, err := s.Recv()
		failed <- err
	}()
	return string(m.GetResources()[0].GetResource().GetValue()), failed
}

// dial dials xDS with a certificate.
func (h *controller) dial(cert tls.Certificate) func(context.Context) (net.Conn, error) {
	config := h.asker("").tls
	config.GetClientCertificate = insist(cert)
	config.NextProtos = []string{"h2"}
	return func(ctx context.Context) (net.Conn, error) {
		return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", h.ads)
	}
}

func (c *cluster) attackByXDS(t *testing.T, h *controller, a, b *corev1.Pod) {
	proxyA := h.proxy(t, c.token(t, "ns", "a-sa", a, identity.Audience))
	proxyB := h.proxy(t, c.token(t, "ns", "b-sa", b, identity.Audience))
	t.Run("each has its own", func(t *testing.T) {
		if got, _ := stream(t, proxyA.Dial, &corev3.Node{Id: "ns/a", Cluster: "ns/a"}); got != "A's" {
			t.Errorf("A gets %q", got)
		}
		if got, _ := stream(t, proxyB.Dial, nil); got != "B's" {
			t.Errorf("B gets %q", got)
		}
	})
	for name, node := range map[string]*corev3.Node{
		"A asks to be B":            {Id: "ns/b", Cluster: "ns/b"},
		"A asks to be B by cluster": {Id: "ns/a", Cluster: "ns/b"},
		"A asks to be B by id":      {Id: "ns/b", Cluster: "ns/a"},
	} {
		t.Run(name, func(t *testing.T) {
			h.in(t).expectRefusal(xdsRefusals, "foreign-node", func() {
				got, ended := stream(t, proxyA.Dial, node)
				if err := <-ended; status.Code(err) != codes.PermissionDenied || got != "" {
					t.Errorf("got %q, %v", got, err)
				}
			})
		})
	}
	refused := func(metric string, cert tls.Certificate) func(*testing.T) {
		return func(t *testing.T) {
			h := h.in(t)
			h.expectRefusal(xdsRefusals, metric, func() {
				dialed := 0
				_, ended := stream(t, func(ctx context.Context) (net.Conn, error) {
					if dialed++; dialed > 1 {
						<-ctx.Done() // one attack, one refusal
						return nil, ctx.Err()
					}
					return h.dial(cert)(ctx)
				}, nil)
				if err := <-ended; err == nil {
					t.Error("it is let in")
				}
			})
		}
	}
	own, err := h.authority.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("no certificate", refused("handshake", tls.Certificate{}))
	t.Run("a certificate of another authority", refused("handshake", foreignCertificate(t, "spiffe://gatehouse.dev/ns/ns/gateway/b/pod/b-1")))
	t.Run("what counts requests", func(t *testing.T) {
		pod := c.pod(t, "ns", "a-limits", "a-limits-sa", "a", "127.0.0.1")
		limits := h.in(t).proxy(t, c.token(t, "ns", "a-limits-sa", pod, identity.Audience))
		config, err := limits.TLS(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cert := config.Certificates[0]
		if got := cert.Leaf.URIs[0].String(); got != "spiffe://gatehouse.dev/ns/ns/gateway/a/limits/a-limits" {
			t.Errorf("it is called %s", got)
		}
		t.Run("asks for configuration", refused("certificate", cert))
	})
	t.Run("a certificate of a controller", refused("certificate", own.Certificates[0]))

	short := c.authority(t, identity.Options{Pod: "controller-2", Life: 2 * time.Second})
	ready(t, short)
	t.Run("a certificate that ends", func(t *testing.T) {
		cert := c.certificate(t, short, "a", "a-1")
		h.in(t).expectRefusal(xdsRefusals, "expired", func() {
			got, ended := stream(t, h.dial(cert), nil)
			if got != "A's" {
				t.Fatalf("got %q", got)
			}
			select {
			case <-ended:
			case <-time.After(patience):
				t.Error("the connection outlives its certificate")
			}
		})
		t.Run("and comes back", refused("handshake", cert))
	})
}
