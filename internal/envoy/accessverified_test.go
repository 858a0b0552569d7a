package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// Tables whose clients need certificates refuse all that comes over connections of listeners that ask for none:
// those from before. Nothing that rules say of who may pass changes that.
func TestEnvoyVerifiedOnly(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	trusted, server := certs.Authority("trusted"), certs.For("a.example")
	authorities := ir.Authorities(object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "default", Name: "clients"}})
	s := &setup{
		verified: true, tables: map[string][]*ir.Host{},
		secrets: []*ir.Secret{
			{Name: ir.NamedSecret("server"), Certificate: string(server.PEM()), Key: ir.Sensitive(server.KeyPEM())},
			{Name: authorities, Authorities: string(trusted.PEM())},
		},
		backends: []*ir.Backend{b.ir}, endpoints: []*ir.Endpoints{b.eps},
	}
	modes := map[string]*ir.TLS{
		"strict":     {Clients: &ir.Clients{Authorities: authorities}},
		"fallback":   {Clients: &ir.Clients{Authorities: authorities, Fallback: true}},
		"unverified": {},
		"plain":      nil,
	}
	for mode, chain := range modes {
		if chain != nil {
			chain.Certificates = []ir.SecretKey{ir.NamedSecret("server")}
		}
		for name, around := range map[string]*ir.Filters{mode: nil, mode + "-guarded": {Access: &ir.Access{Hidden: []string{"x-other"}}}} {
			rule := func(path string, a *ir.Access) *ir.Rule {
				return &ir.Rule{Match: prefix(path), Backends: to(b), Filters: ir.Filters{Access: a}}
			}
			s.tables[name] = rulesOn("a.example",
				rule("/inner", &ir.Access{Hidden: []string{"x-client"}}), rule("/open", &ir.Access{}), rule("/", nil))
			s.listeners = append(s.listeners, &ir.Listener{
				Name: name, TLS: chain != nil, Addresses: []string{"127.0.0.1"}, Filters: around, Chains: []ir.Chain{{Table: name, TLS: chain}},
			})
		}
	}
	r := s.start(t)
	client := x509.Certificate{DNSNames: []string{"joe.example"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	good, own := certs.Sign(&client, nil, trusted).TLS(), certs.Sign(&client, nil, nil).TLS()
	for mode := range modes {
		for _, listener := range []string{mode, mode + "-guarded"} {
			for what, certificate := range map[string]*tls.Certificate{"none": nil, "good": &good, "signed by itself": &own} {
				want := 403
				switch {
				case mode == "strict" && what == "good":
					want = 200
				case mode == "strict":
					want = 0 // no connection
				}
				config := &tls.Config{InsecureSkipVerify: true, ServerName: "a.example"} //nolint:gosec // the client is what is looked at
				if certificate != nil {
					config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
				}
				for _, path := range []string{"/", "/inner", "/open"} {
					if status, _, _ := r.asClient(t, listener, path, config); status != want {
						t.Errorf("%s%s, certificate: %s: %d, want %d", listener, path, what, status, want)
					}
				}
			}
		}
	}
}

// BenchmarkVerified measures what the look at each request adds, and to tell the table of certificates: the median over
// one connection of TLS, in turns with one to a listener that lets everybody in, with the same certificate.
func BenchmarkVerified(b *testing.B) {
	backend := newBackend(b, "echo", ir.HTTP1, nil)
	trusted, server := certs.Authority("trusted"), certs.For("a.example")
	client := certs.Sign(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, nil, trusted).TLS()
	authorities := ir.Authorities(object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "default", Name: "clients"}})
	s := &setup{
		tables: map[string][]*ir.Host{},
		secrets: []*ir.Secret{
			{Name: ir.NamedSecret("server"), Certificate: string(server.PEM()), Key: ir.Sensitive(server.KeyPEM())},
			{Name: authorities, Authorities: string(trusted.PEM())},
		},
		backends: []*ir.Backend{backend.ir}, endpoints: []*ir.Endpoints{backend.eps},
	}
	modes := []string{"fallback", "strict"}
	for _, mode := range modes {
		s.tables[mode] = rulesOn("a.example", &ir.Rule{Match: prefix("/"), Backends: to(backend)})
		s.listeners = append(s.listeners, &ir.Listener{Name: mode, TLS: true, Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{{Table: mode, TLS: &ir.TLS{
			Certificates: []ir.SecretKey{ir.NamedSecret("server")}, Clients: &ir.Clients{Authorities: authorities, Fallback: mode == "fallback"},
		}}}})
	}
	r := s.start(b)
	var turns []*http.Transport
	for _, mode := range modes {
		config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{client}}                                                      //nolint:gosec // the client is what is looked at
		transport := &http.Transport{TLSClientConfig: config, Dial: func(string, string) (net.Conn, error) { return net.Dial("tcp", r.addrs[mode]) }} //nolint:staticcheck // no context to wait with
		defer transport.CloseIdleConnections()
		turns = append(turns, transport)
	}
	took := make([][]time.Duration, len(turns))
	for b.Loop() {
		for i, transport := range turns {
			took[i] = append(took[i], timed(b, transport, "https://a.example/", nil))
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	b.ReportMetric(float64(took[1][len(took[1])/2]-took[0][len(took[0])/2])/float64(time.Microsecond), "us-verified")
}
