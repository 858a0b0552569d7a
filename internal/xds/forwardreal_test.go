package xds

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/gatehouse-dev/gatehouse/internal/envoy"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// What a route says is for a chain that does with TLS what the route's listener says. While a
// proxy still has another chain for the name, since it refuses the listener or waits for what
// that needs, no connection comes to the backends by it: not decrypted where it should be passed
// through, and not without the certificate that clients should have.
func TestEnvoyForwardsByTheChainThatIsMeant(t *testing.T) {
	server := certs.For("h000")
	pair := ir.Certificate(object.Name{Namespace: "default", Name: "pair"})
	ca := ir.Authorities(object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "default", Name: "ca"}})
	forward := func(backend string) *ir.Forward {
		return &ir.Forward{
			Source:   ir.Source{Kind: kind.TLSRoute, Name: object.Name{Namespace: "default", Name: "route"}},
			Backends: []ir.WeightedBackend{{Backend: ir.NamedBackend(backend), Weight: 1}},
		}
	}
	before := ir.Chain{Hostname: "h000", TLS: &ir.TLS{Certificates: []ir.SecretKey{pair}}, Forward: forward("public")}
	for name, c := range map[string]struct {
		now     ir.Chain
		refused bool // the listener
	}{
		"passed through":               {ir.Chain{Hostname: "h000", Forward: forward("private")}, true},
		"with certificates of clients": {ir.Chain{Hostname: "h000", TLS: &ir.TLS{Certificates: []ir.SecretKey{pair}, Clients: &ir.Clients{Authorities: ca}}, Forward: forward("private")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := realWorld(t)
			w.client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: server.Pool(), ServerName: "h000"}
			w.client.Transport.(*http.Transport).DisableKeepAlives = true
			port := func(c ir.Chain) (l, forwarder *envoy.Resource) {
				in := &ir.Listener{Name: "tls-443", TLS: true, Port: w.port, BindPort: w.port, Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{c}}
				l, errs := envoy.Listener("tls-443", in)
				f, err := envoy.Forwarder(in, &c)
				return must(t, l, errs...), must(t, f, err)
			}
			var all []any
			for _, backend := range []string{"public", "private"} {
				is := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, backend) }))
				t.Cleanup(is.Close)
				at := netip.MustParseAddrPort(is.Listener.Addr().String())
				ends, err := envoy.LoadAssignment(backend, []ir.Endpoint{{Address: at.Addr().String(), Port: at.Port()}})
				all = append(all, w.destination(backend)[0], must(t, ends, err))
			}
			s, err := envoy.Secret(&ir.Secret{Name: pair, Certificate: string(server.PEM()), Key: ir.Sensitive(server.KeyPEM())})
			trust, trustErr := envoy.Secret(&ir.Secret{Name: ca, Authorities: string(certs.Authority("ca").PEM())})
			l, was := port(before)
			w.apply(append(all, must(t, s, err), must(t, trust, trustErr), l, was)...)
			get := func() string { return w.getBy("https", w.port, "h000") }
			waitFor(t, "the first backend", func() bool { return get() == "public" })

			var passed atomic.Int64
			stop := crowd(func() {
				if get() == "private" {
					passed.Add(1)
				}
			})
			next, is := port(c.now)
			if c.refused {
				next = changedResource(t, next, &listenerv3.Listener{}, func(l *listenerv3.Listener) { l.FilterChains = append(l.FilterChains, l.FilterChains[0]) })
			}
			edit, back := []any{next, is}, []any{l, was}
			if was.Name != is.Name {
				edit, back = append(edit, "-"+Ref{was.Type, was.Name}.String()), append(back, "-"+Ref{is.Type, is.Name}.String())
			}
			for range 10 {
				w.apply(edit...)
				if c.refused {
					w.state("refused", rejects("listener/tls-443 old"))
				}
				w.settled()
				w.apply(back...)
				waitFor(t, "the first backend", func() bool { return get() == "public" })
			}
			stop()
			if n := passed.Load(); n > 0 {
				t.Errorf("%d connections come to the backend by the chain from before", n)
			}
		})
	}
}
