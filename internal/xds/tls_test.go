package xds

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
)

func TestCertificateSelectsTheConfiguration(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{
		{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}},
		{Gateway: named("ns/b"), Set: []*envoy.Resource{listener("l", "B's")}},
	})
	a := h.ca.proxy("ns/a:pod", time.Hour)
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

	b := h.stream(h.ca.proxy("ns/b:pod", time.Hour), nil)
	b.expect("listener +l=B's")
}

// A node that names another Gateway is refused in a later request too.
func TestNodeIsCheckedInEveryRequest(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(h.ca.proxy("ns/a:pod", time.Hour), &corev3.Node{Cluster: "ns/a"})
	p.expect("listener +l=A's ?")
	p.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: envoy.Clusters.URL(), Node: &corev3.Node{Cluster: "ns/b"}})
	if err := p.ended(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestConnectionEndsWithItsCertificate(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}}})
	life := time.Second
	p := h.served(func() tls.Certificate {
		life *= 2 // than a busy machine needs to connect
		return h.ca.proxy("ns/a:pod", life)
	})
	if err := p.ended(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	h.refused(refusedExpired, 1)
	// And is not let in again.
	before := h.counted(refusedHandshake)
	p = h.stream(h.ca.proxy("ns/a:pod", -time.Second), nil)
	if err := p.ended(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	h.refused(refusedHandshake, before+1)
}

func TestConnectionEndsWithItsAuthority(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(h.ca.proxy("ns/a:pod", time.Hour), nil)
	p.expect("listener +l=A's")
	h.change(false)
	p.quiet() // what is still trusted stays
	h.change(true)
	p.ended()
	h.refused(refusedCertificate, 1)
}

func TestConnectionEndsOfAge(t *testing.T) {
	h := startTLS(t, time.Second)
	h.server.Apply([]Update{{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}}})
	cert := h.ca.proxy("ns/a:pod", time.Hour)
	again := func() tls.Certificate { return cert }
	h.served(again).ended()
	h.served(again)
	if strings.Contains(h.log.String(), "refused") {
		t.Errorf("an old connection is no refusal:\n%s", h.log)
	}
}

func TestForeignCertificatesAreRefused(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(newCA().proxy("ns/a:pod", time.Hour), nil)
	p.ended()
	h.refused(refusedHandshake, 1)
	p = h.stream(tls.Certificate{}, nil)
	p.ended()
	h.refused(refusedHandshake, 2)
	p = h.stream(h.ca.proxy("no proxy", time.Hour), nil)
	p.ended()
	h.refused(refusedCertificate, 1)
	if n := h.server.Sessions(); len(n) != 0 {
		t.Errorf("there are sessions: %+v", n)
	}
}

// A proxy with the certificate of a Gateway that does not exist waits, and nothing is kept
// of it.
func TestUnknownGatewayCostsNothing(t *testing.T) {
	h := startTLS(t, 0)
	cert := h.ca.proxy("ns/later:pod", time.Hour)
	p := h.stream(cert, nil)
	h.state("a session", func(s State) bool { return s.Connected == 1 })
	select {
	case m := <-p.got:
		t.Fatalf("got %v for a Gateway that isn't known", m)
	case <-time.After(200 * time.Millisecond):
	}
	h.server.Apply([]Update{{Gateway: named("ns/later"), Set: []*envoy.Resource{listener("l", "late")}}})
	p.expect("listener +l=late")
	h.server.Apply([]Update{{Gateway: named("ns/later"), Gone: true}})
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

// A replica that does not know a Gateway cuts its proxies' connections, so that they try
// another one.
func TestProxyOfUnknownGatewayMovesOn(t *testing.T) {
	h := startTLS(t, 0)
	h.server.unknownTimeout = 100 * time.Millisecond
	h.server.Apply([]Update{{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}}})
	p := h.stream(h.ca.proxy("ns/later:pod", time.Hour), nil)
	if err := p.ended(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	p = h.stream(h.ca.proxy("ns/a:pod", time.Hour), nil)
	p.expect("listener +l=A's")
	time.Sleep(2 * h.server.unknownTimeout)
	p.quiet()
}

func TestPodHasFewConnections(t *testing.T) {
	h := startTLS(t, 0)
	h.server.Apply([]Update{{Gateway: named("ns/a"), Set: []*envoy.Resource{listener("l", "A's")}}})
	cert := h.ca.proxy("ns/a:pod", time.Hour)
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
