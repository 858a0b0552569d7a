package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/certs"
	"github.com/gatehouse-dev/gatehouse/test/output"
)

// ca signs certificates of proxies, whose name is gateway:pod.
type ca struct{ *certs.Certificate }

func newCA() *ca { return &ca{certs.Authority("proxies")} }

func (c *ca) proxy(name string, life time.Duration) tls.Certificate {
	return certs.Sign(&x509.Certificate{
		URIs: []*url.URL{{Scheme: "test", Opaque: name}}, NotAfter: time.Now().Add(life),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, nil, c.Certificate).TLS()
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
	gone    error // why no pod may be connected
}

func startTLS(t *testing.T, maxAge time.Duration) *tlsHarness {
	t.Helper()
	h := &tlsHarness{ca: newCA(), changed: make(chan struct{}), log: &output.Buffer{}}
	h.harness = &harness{t: t, states: make(chan State, 1000)}
	h.server = New(Options{
		Log:     slog.New(slog.NewTextHandler(h.log, nil)),
		OnState: func(_ object.Name, s State) { h.states <- s },
	})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.address = lis.Addr().String()
	serving := certs.Sign(&x509.Certificate{
		DNSNames: []string{"controller.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, nil, h.ca.Certificate).TLS()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- h.server.ServeTLS(ctx, lis, TLS{
			Config: &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{serving},
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: h.ca.Pool(),
			},
			Identify: h.identify,
			Changed:  h.next,
			MaxAge:   maxAge,
			Admit:    h.admit, AdmitInterval: 20 * time.Millisecond,
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

func (h *tlsHarness) identify(cs tls.ConnectionState) (gateway object.Name, pod string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.revoked {
		return object.Name{}, "", errors.New("nobody is trusted any more")
	}
	text, pod, ok := strings.Cut(cs.VerifiedChains[0][0].URIs[0].Opaque, ":")
	if !ok {
		return object.Name{}, "", errors.New("not a proxy")
	}
	return named(text), pod, nil
}

func (h *tlsHarness) admit(_ context.Context, _ object.Name, _ string, source netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone == nil && !source.IsLoopback() {
		return errors.New("the address is not that of the connection")
	}
	return h.gone
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
		MinVersion: tls.VersionTLS13, RootCAs: h.ca.Pool(), ServerName: "controller.test",
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

// served returns a stream that has got its listeners. Where connections or certificates are short-lived,
// a busy machine may need several tries, each with the certificate that is said.
func (h *tlsHarness) served(cert func() tls.Certificate) *client {
	h.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		p := h.stream(cert(), nil)
		select {
		case <-p.got:
			return p
		case <-p.err:
			p.cancel()
			_ = p.conn.Close()
		}
	}
	h.t.Fatal("nobody is served")
	return nil
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
