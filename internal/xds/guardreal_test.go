package xds

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// Nobody may pass, and everybody: headers are all that is told to be removed.
var (
	nobody    = &ir.Access{Conditions: []ir.AccessCondition{{Name: "nobody", Never: true}}}
	everybody = &ir.Access{Hidden: []string{"x-user"}}
)

// guardedHost is a host with a rule for everything, and what it says who may pass; nil for nothing.
func guardedHost(t *testing.T, domain string, around, who *ir.Access, change ...func(*ir.Rule)) *envoy.Part {
	t.Helper()
	r := &ir.Rule{
		Match:    ir.Match{Path: ir.PathMatch{Kind: ir.PathPrefix, Value: "/"}},
		Backends: []ir.WeightedBackend{{Backend: ir.NamedBackend("h000"), Weight: 1}},
		Filters:  ir.Filters{Access: who},
	}
	for _, f := range change {
		f(r)
	}
	h := &ir.Host{Domain: domain, Rules: []*ir.Rule{r}}
	if around != nil {
		h.Around = &ir.Filters{Access: around}
	}
	p, errs := envoy.HostPart(h)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return p
}

// refusedHost is a host with a last route that Envoy refuses.
func refusedHost(t *testing.T, p *envoy.Part) *envoy.Part {
	t.Helper()
	_, _, n := protowire.ConsumeTag(p.Body)
	b, _ := protowire.ConsumeBytes(p.Body[n:])
	vh, bad := &routev3.VirtualHost{}, &routev3.Route{
		Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{
			SafeRegex: &matcherv3.RegexMatcher{Regex: "(("},
		}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 404}},
	}
	if err := proto.Unmarshal(b, vh); err != nil {
		t.Fatal(err)
	}
	vh.Routes = append(vh.Routes, bad)
	body := protowire.AppendBytes(protowire.AppendTag(nil, virtualHosts, protowire.BytesType), marshal(vh))
	return &envoy.Part{Name: p.Name, Hash: envoy.Sum(body), Body: body, Guard: p.Guard}
}

// guardedTable has what its listener says who may pass; nil for nothing.
func guardedTable(t *testing.T, around *ir.Access, parts ...*envoy.Part) *envoy.Resource {
	t.Helper()
	var f *ir.Filters
	if around != nil {
		f = &ir.Filters{Access: around}
	}
	r, err := envoy.BundledRouteTable("t", envoy.AroundTables(f, false), []*envoy.Bundle{envoy.NewBundle(parts)})
	return must(t, r, err)
}

// No request passes by a version from before that the new one is there to stop, and none by a
// mixture of both that each of them stops.
func TestEnvoyRefusesGuards(t *testing.T) {
	broken := func(r *ir.Rule) { *r = *envoy.Closed(r) }
	never := refusedHost(t, guardedHost(t, "0.example", nil, nil))
	var more []*envoy.Part // so that it takes some time to find the culprit
	for i := range 30 {
		more = append(more, guardedHost(t, fmt.Sprintf("1%02d.example", i), nil, nil))
	}
	with := func(parts ...*envoy.Part) []*envoy.Part { return slices.Concat([]*envoy.Part{never}, more, parts) }
	for name, c := range map[string]struct {
		before, now *envoy.Resource
		open        bool // at first
		culprit     string
	}{
		"a route's guard replaced the table's": {
			before: guardedTable(t, nobody, guardedHost(t, "a.example", nobody, everybody)),
			now:    guardedTable(t, nobody, refusedHost(t, guardedHost(t, "a.example", nobody, nil))),
			open:   true, culprit: "a.example",
		},
		"a rule is broken": {
			before: guardedTable(t, nil, guardedHost(t, "a.example", nil, nil)),
			now:    guardedTable(t, nil, refusedHost(t, guardedHost(t, "a.example", nil, nil, broken))),
			open:   true, culprit: "a.example",
		},
		"a guard moves from the table to its hosts": {
			before:  guardedTable(t, nobody, guardedHost(t, "a.example", nobody, nil)),
			now:     guardedTable(t, nil, with(guardedHost(t, "a.example", nil, nobody))...),
			culprit: "0.example",
		},
		"a host becomes one of a wildcard": {
			before:  guardedTable(t, nil, guardedHost(t, "*.example", nil, nil), guardedHost(t, "a.example", nil, nobody)),
			now:     guardedTable(t, nil, with(guardedHost(t, "*.example", nil, nobody))...),
			culprit: "0.example",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := realWorld(t)
			all, _ := w.config(1)
			w.apply(append(all, c.before)...)
			w.state("synced", func(s State) bool { return s.Synced })
			want := "403"
			if c.open {
				want = "/"
			}
			waitFor(t, "the first version", func() bool { return w.get("a.example") == want })
			var passed atomic.Int64
			stop := crowd(func() {
				if w.get("a.example") == "/" {
					passed.Add(1)
				}
			})
			w.apply(c.now)
			w.state("refused", func(s State) bool { return len(s.Rejected) == 1 && s.Rejected[0].Part == c.culprit })
			w.settled()
			stop()
			if got := w.get("a.example"); got == "/" {
				t.Errorf("requests pass")
			}
			if n := passed.Load(); n > 0 && !c.open {
				t.Errorf("%d requests passed", n)
			}
		})
	}
}

// A listener that Envoy refuses is closed where it asks for other certificates of clients than before.
func TestEnvoyRefusesGuardedListeners(t *testing.T) {
	w := realWorld(t)
	all, _ := w.config(1)
	w.apply(all...)
	w.serves("h000", "/1")
	twice := func(l *listenerv3.Listener) { l.FilterChains = append(l.FilterChains, l.FilterChains[0]) }
	bad := changedResource(t, w.httpListener("http", w.port), &listenerv3.Listener{}, twice)
	w.apply(bad)
	w.state("refused", rejects("listener/http old"))
	w.serves("h000", "/1")
	w.apply(w.httpListener("http", w.port))
	w.state("healed", rejects())
	w.apply(bad.Guarded(guardBy("a")))
	w.state("refused and closed", rejects("listener/http"))
	w.settled()
	w.client.CloseIdleConnections()
	waitFor(t, "nobody listens", func() bool { return strings.Contains(w.get("h000"), "connection refused") })
	w.apply(w.httpListener("http", w.port).Guarded(guardBy("a")))
	w.serves("h000", "/1")

	// So is one that can't have its address, until it can.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, taken, err)
	port := uint16(taken.Addr().(*net.TCPAddr).Port)
	w.apply(w.httpListener("http", port).Guarded(guardBy("b")))
	w.client.CloseIdleConnections()
	waitFor(t, "nobody listens", func() bool { return strings.Contains(w.get("h000"), "connection refused") })
	must(t, taken, taken.Close())
	waitFor(t, "it serves", func() bool { return w.getAt(port, "h000") == "/1" })
}

// Authorities that Envoy refuses let nobody in, whoever those before would have let in.
func TestEnvoyRefusesAuthorities(t *testing.T) {
	w := realWorld(t)
	server, before, after := certs.For("h000"), certs.Authority("before"), certs.Authority("after")
	client := func(by *certs.Certificate) *certs.Certificate {
		return certs.Sign(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, certs.Key(), by)
	}
	passes := func(c *certs.Certificate) bool {
		w.client.CloseIdleConnections()
		w.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{
			RootCAs: server.Pool(), ServerName: "h000", Certificates: []tls.Certificate{c.TLS()},
		}
		return w.getBy("https", w.port, "h000") == "/1"
	}
	pair := ir.Certificate(object.Name{Namespace: "default", Name: "pair"})
	ca := ir.Authorities(object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "default", Name: "ca"}})
	secret := func(s *ir.Secret) *envoy.Resource { r, err := envoy.Secret(s); return must(t, r, err) }
	trust := func(text []byte) *envoy.Resource { return secret(&ir.Secret{Name: ca, Authorities: string(text)}) }
	l, errs := envoy.Listener("http", &ir.Listener{
		Name: "http", Port: w.port, BindPort: w.port, Addresses: []string{"127.0.0.1"},
		Chains: []ir.Chain{{Table: "t", TLS: &ir.TLS{Certificates: []ir.SecretKey{pair}, Clients: &ir.Clients{Authorities: ca}}}},
	})
	must(t, l, errs...)
	all, _ := w.config(1)
	w.apply(append(all, l, trust(before.PEM()), secret(&ir.Secret{
		Name: pair, Certificate: string(server.PEM()), Key: ir.Sensitive(server.KeyPEM()),
	}))...)
	waitFor(t, "the first authorities", func() bool { return passes(client(before)) })
	if passes(client(after)) {
		t.Fatal("anybody passes")
	}
	bad := slices.Concat(after.PEM(), []byte("-----BEGIN CERTIFICATE-----\nbad\n-----END CERTIFICATE-----\n"))
	w.apply(trust(bad))
	w.state("refused", rejects("secret/"+envoy.SecretName(ca)))
	w.settled()
	for name, by := range map[string]*certs.Certificate{"before": before, "after": after} {
		if passes(client(by)) {
			t.Errorf("who was signed for by those %s passes", name)
		}
	}
	w.apply(trust(after.PEM()))
	waitFor(t, "the next authorities", func() bool { return passes(client(after)) })
	if passes(client(before)) {
		t.Error("who was signed for by those before passes")
	}
}
