package xds

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

// ca signs certificates of proxies, whose name is gateway:pod.
type ca struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newCA(t *testing.T) *ca {
	t.Helper()
	c := &ca{cert: &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotAfter: time.Now().Add(time.Hour),
	}}
	made := c.sign(t, c.cert)
	c.key, c.cert = made.PrivateKey.(*ecdsa.PrivateKey), made.Leaf
	return c
}

func (c *ca) sign(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := c.key
	if signer == nil {
		signer = key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Minute)
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (c *ca) proxy(t *testing.T, name string, life time.Duration) tls.Certificate {
	t.Helper()
	return c.sign(t, &x509.Certificate{
		URIs: []*url.URL{{Scheme: "test", Opaque: name}}, NotAfter: time.Now().Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (c *ca) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return pool
}

// tlsHarness is a harness whose server is reached by TLS.
type tlsHarness struct {
	*harness
	ca      *ca
	address string
	log     *output.Buffer

	mu      sync.Mutex
	changed chan struct{} // closed when revoked may have changed
	revoked bool
}

func startTLS(t *testing.T, maxAge time.Duration) *tlsHarness {
	t.Helper()
	h := &tlsHarness{ca: newCA(t), changed: make(chan struct{}), log: &output.Buffer{}}
	h.harness = &harness{t: t, states: make(chan State, 1000)}
	h.server = New(Options{
		Log:     slog.New(slog.NewTextHandler(h.log, nil)),
		OnState: func(_ string, s State) { h.states <- s },
	})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.address = lis.Addr().String()
	serving := h.ca.sign(t, &x509.Certificate{
		DNSNames: []string{"controller.test"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- h.server.ServeTLS(ctx, lis, TLS{
			Config: &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{serving},
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: h.ca.pool(),
			},
			Identify: h.identify,
			Changed:  h.next,
			MaxAge:   maxAge,
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("ServeTLS: %v", err)
		}
		h.server.Stop()
	})
	return h
}

func (h *tlsHarness) identify(cs tls.ConnectionState) (gateway, pod string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.revoked {
		return "", "", errors.New("nobody is trusted any more")
	}
	gateway, pod, ok := strings.Cut(cs.VerifiedChains[0][0].URIs[0].Opaque, ":")
	if !ok {
		return "", "", errors.New("not a proxy")
	}
	return gateway, pod, nil
}

func (h *tlsHarness) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

func (h *tlsHarness) change(revoked bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revoked = revoked
	close(h.changed)
	h.changed = make(chan struct{})
}

// stream dials with a certificate, and asks for listeners as a node. It returns
// the stream with what answers.
func (h *tlsHarness) stream(cert tls.Certificate, node *corev3.Node) *client {
	h.t.Helper()
	conn, err := grpc.NewClient("passthrough:"+h.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: h.ca.pool(), ServerName: "controller.test",
		// Sent also to those who say that they don't know its authority.
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil },
	})))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	p := &client{t: h.t, conn: conn, got: make(chan *discoveryv3.DeltaDiscoveryResponse, 100), err: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	h.t.Cleanup(cancel)
	p.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		p.err <- err
		return p
	}
	_ = p.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: envoy.Listeners.URL(), Node: node})
	go func() {
		for {
			m, err := p.stream.Recv()
			if err != nil {
				p.err <- err
				return
			}
			p.got <- m
		}
	}()
	return p
}

// ended waits for the end of a stream.
func (p *client) ended() error {
	p.t.Helper()
	for {
		select {
		case err := <-p.err:
			return err
		case <-p.got:
		case <-time.After(patience):
			p.t.Fatal("the stream doesn't end")
		}
	}
}

func (h *tlsHarness) refused(why string, n float64) {
	h.t.Helper()
	told := func() bool { return strings.Contains(h.log.String(), "reason="+why) } // after it is counted
	for deadline := time.Now().Add(patience); h.counted(why) < n || !told(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("fewer than %v refusals are counted as %s, or the log doesn't say so:\n%s", n, why, h.log)
		}
	}
}

func (h *tlsHarness) counted(why string) float64 {
	h.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(h.server.metrics.refused)
	families, err := registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == why {
			return m.GetCounter().GetValue()
		}
	}
	h.t.Fatalf("no metric for %s", why)
	return 0
}

func TestCertificateSelectsTheConfiguration(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{
		{Gateway: "ns/a", Set: []*envoy.Resource{listener("l", "A's")}},
		{Gateway: "ns/b", Set: []*envoy.Resource{listener("l", "B's")}},
	})
	a := h.ca.proxy(t, "ns/a:pod", time.Hour)
	for name, tc := range map[string]struct {
		node *corev3.Node
		code codes.Code
	}{
		"no node":            {nil, codes.OK},
		"itself":             {&corev3.Node{Id: "ns/a", Cluster: "ns/a"}, codes.OK},
		"its pod":            {&corev3.Node{Id: "ns/a/pod", Cluster: "ns/a"}, codes.OK},
		"B by cluster":       {&corev3.Node{Id: "ns/a", Cluster: "ns/b"}, codes.PermissionDenied},
		"B by id":            {&corev3.Node{Id: "ns/b", Cluster: "ns/a"}, codes.PermissionDenied},
		"a longer name":      {&corev3.Node{Id: "ns/ab", Cluster: "ns/a"}, codes.PermissionDenied},
		"B by metadata only": {&corev3.Node{Id: "ns/a"}, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			p := h.stream(a, tc.node)
			p.t = t
			if tc.code != codes.OK {
				if err := p.ended(); status.Code(err) != tc.code {
					t.Errorf("the stream ended with %v, want %v", err, tc.code)
				}
				return
			}
			p.expect("listener +l=A's")
		})
	}
	h.refused(refusedNode, 3)

	b := h.stream(h.ca.proxy(t, "ns/b:pod", time.Hour), nil)
	b.expect("listener +l=B's")
}

// A proxy can't change its mind either.
func TestNodeIsCheckedInEveryRequest(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: "ns/a", Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(h.ca.proxy(t, "ns/a:pod", time.Hour), &corev3.Node{Cluster: "ns/a"})
	p.expect("listener +l=A's ?")
	p.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: envoy.Clusters.URL(), Node: &corev3.Node{Cluster: "ns/b"}})
	if err := p.ended(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestConnectionEndsWithItsCertificate(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: "ns/a", Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(h.ca.proxy(t, "ns/a:pod", 2*time.Second), nil)
	p.expect("listener +l=A's")
	if err := p.ended(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	h.refused(refusedExpired, 1)
	// And is not let in again.
	p = h.stream(h.ca.proxy(t, "ns/a:pod", -time.Second), nil)
	if err := p.ended(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	h.refused(refusedHandshake, 1)
}

func TestConnectionEndsWithItsAuthority(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: "ns/a", Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(h.ca.proxy(t, "ns/a:pod", time.Hour), nil)
	p.expect("listener +l=A's")
	h.change(false)
	p.quiet() // what is still trusted stays
	h.change(true)
	p.ended()
	h.refused(refusedCertificate, 1)
}

func TestConnectionEndsOfAge(t *testing.T) {
	h := startTLS(t, time.Second)
	h.server.Apply([]Update{{Gateway: "ns/a", Set: []*envoy.Resource{listener("l", "A's")}}})
	cert := h.ca.proxy(t, "ns/a:pod", time.Hour)
	p := h.stream(cert, nil)
	p.expect("listener +l=A's")
	p.ended()
	p = h.stream(cert, nil)
	p.expect("listener +l=A's")
	if strings.Contains(h.log.String(), "refused") {
		t.Errorf("an old connection is no refusal:\n%s", h.log)
	}
}

func TestForeignCertificatesAreRefused(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: "ns/a", Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(newCA(t).proxy(t, "ns/a:pod", time.Hour), nil)
	p.ended()
	h.refused(refusedHandshake, 1)
	p = h.stream(tls.Certificate{}, nil)
	p.ended()
	h.refused(refusedHandshake, 2)
	p = h.stream(h.ca.proxy(t, "no proxy", time.Hour), nil)
	p.ended()
	h.refused(refusedCertificate, 1)
	if n := h.server.Sessions(); len(n) != 0 {
		t.Errorf("there are sessions: %+v", n)
	}
}

// Whoever has a certificate of a Gateway that doesn't exist waits, and leaves
// nothing behind.
func TestUnknownGatewayCostsNothing(t *testing.T) {
	h := startTLS(t, 0)
	cert := h.ca.proxy(t, "ns/later:pod", time.Hour)
	p := h.stream(cert, nil)
	h.state("a session", func(s State) bool { return s.Connected == 1 })
	select {
	case m := <-p.got:
		t.Fatalf("got %v for a Gateway that isn't known", m)
	case <-time.After(200 * time.Millisecond):
	}
	h.server.Apply([]Update{{Gateway: "ns/later", Set: []*envoy.Resource{listener("l", "late")}}})
	p.expect("listener +l=late")
	h.server.Apply([]Update{{Gateway: "ns/later", Gone: true}})
	p.expect("listener -l")
	p.cancel()
	p.ended()

	p = h.stream(cert, nil)
	h.state("a session", func(s State) bool { return s.Connected == 1 })
	p.cancel()
	p.ended()
	for deadline := time.Now().Add(patience); len(h.server.Gateways()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("records are left of %v", h.server.Gateways())
		}
	}
}

// A replica that doesn't know a Gateway doesn't keep its proxies from those that do.
func TestProxyOfUnknownGatewayMovesOn(t *testing.T) {
	h := startTLS(t, 0)
	h.server.unknown = 100 * time.Millisecond
	h.server.Apply([]Update{{Gateway: "ns/a", Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(h.ca.proxy(t, "ns/later:pod", time.Hour), nil)
	if err := p.ended(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	p = h.stream(h.ca.proxy(t, "ns/a:pod", time.Hour), nil)
	p.expect("listener +l=A's")
	time.Sleep(2 * h.server.unknown)
	p.quiet()
}

func TestPodHasFewConnections(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: "ns/a", Set: []*envoy.Resource{listener("l", "A's")}}})
	cert := h.ca.proxy(t, "ns/a:pod", time.Hour)
	oldest := h.stream(cert, nil)
	oldest.expect("listener +l=A's")
	var others []*client
	for range maxConnections {
		p := h.stream(cert, nil)
		p.expect("listener +l=A's")
		others = append(others, p)
	}
	oldest.ended()
	h.refused(refusedConnections, 1)
	for _, p := range others {
		p.quiet()
	}
}
