package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

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
