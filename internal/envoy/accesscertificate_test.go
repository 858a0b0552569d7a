package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// A certificate counts where the listener has verified it, also of a session that is resumed, and
// nowhere else.
func TestEnvoyAccessByCertificate(t *testing.T) {
	b := newBackend(t, "echo", ir.HTTP1, nil)
	trusted, other, server := certs.Authority("trusted"), certs.Authority("other"), certs.For("a.example")
	authorities := ir.Authorities(object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "default", Name: "clients"}})
	guarded := func(path string, c ir.ClientCertificates, conditions ...ir.AccessCondition) *ir.Rule {
		c.Header = "x-client"
		return &ir.Rule{Match: prefix(path), Backends: to(b), Filters: ir.Filters{Access: &ir.Access{
			Authenticated: true, Hidden: []string{"x-client"}, Certificates: []ir.ClientCertificates{c}, Conditions: conditions,
		}}}
	}
	keys := guarded("/keys", ir.ClientCertificates{})
	keys.Filters.Access.Keys = []ir.APIKeys{apiKeys("k", map[string]string{"alice": "secret"}, ir.CredentialSource{Query: "key"})}
	hosts := func() []*ir.Host {
		return rulesOn("a.example", keys,
			guarded("/any", ir.ClientCertificates{}),
			guarded("/dns", ir.ClientCertificates{DNS: []string{"shop.example"}}),
			guarded("/wild", ir.ClientCertificates{DNS: []string{"*.example"}}),
			guarded("/uri", ir.ClientCertificates{URIs: []string{"spiffe://x/shop"}}),
			guarded("/client", ir.ClientCertificates{}, ir.AccessCondition{Clients: []string{"shop.example"}}),
		)
	}
	s := &setup{
		tables: map[string][]*ir.Host{"strict": hosts(), "fallback": hosts(), "unverified": hosts(), "plain": hosts()},
		secrets: []*ir.Secret{
			{Name: ir.NamedSecret("server"), Certificate: string(server.PEM()), Key: ir.Sensitive(server.KeyPEM())},
			{Name: authorities, Authorities: string(trusted.PEM())},
		},
		backends: []*ir.Backend{b.ir}, endpoints: []*ir.Endpoints{b.eps},
	}
	for name, clients := range map[string]*ir.Clients{
		"strict": {Authorities: authorities}, "fallback": {Authorities: authorities, Fallback: true}, "unverified": nil,
	} {
		s.listeners = append(s.listeners, &ir.Listener{Name: name, TLS: true, Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{
			{Table: name, TLS: &ir.TLS{Certificates: []ir.SecretKey{ir.NamedSecret("server")}, Clients: clients}},
		}})
	}
	s.listeners = append(s.listeners, &ir.Listener{Name: "plain", Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{{Table: "plain"}}})
	r := s.start(t)

	spiffe, err := url.Parse("spiffe://x/shop")
	if err != nil {
		t.Fatal(err)
	}
	with := func(by *certs.Certificate, template x509.Certificate) *certs.Certificate {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		return certs.Sign(&template, nil, by)
	}
	named := func(by *certs.Certificate, hosts ...string) *certs.Certificate {
		return with(by, x509.Certificate{Subject: pkix.Name{CommonName: "shop.example"}, DNSNames: hosts})
	}
	both := x509.Certificate{DNSNames: []string{"shop.example"}, URIs: []*url.URL{spiffe}}
	for _, c := range []struct {
		what, listener, path string
		certificate          *certs.Certificate
		want                 int // 0 for no connection
		client               string
	}{
		{"a host", "strict", "/any", named(trusted, "shop.example"), 200, "shop.example"},
		{"a host and a URI", "strict", "/any", with(trusted, both), 200, "spiffe://x/shop"},
		{"neither", "strict", "/any", named(trusted), 200, "CN=shop.example"},
		{"the host", "strict", "/dns", named(trusted, "x.example", "Shop.Example"), 200, "shop.example"},
		{"the host among a URI", "strict", "/dns", with(trusted, both), 200, "shop.example"},
		{"another host", "strict", "/dns", named(trusted, "x.example"), 401, ""},
		{"the host as the subject", "strict", "/dns", named(trusted), 401, ""},
		{"one label", "strict", "/wild", named(trusted, "x.example"), 200, "x.example"},
		{"two labels", "strict", "/wild", named(trusted, "y.x.example"), 401, ""},
		{"a wildcard of its own", "strict", "/wild", named(trusted, "*.example"), 401, ""},
		{"a wildcard among hosts", "strict", "/wild", named(trusted, "*.example", "x.example"), 200, "x.example"},
		{"a wildcard for any", "strict", "/any", named(trusted, "*.example"), 200, "*.example"},
		{"no label", "strict", "/wild", named(trusted, "example"), 401, ""},
		{"the URI", "strict", "/uri", with(trusted, both), 200, "spiffe://x/shop"},
		{"no URI", "strict", "/uri", named(trusted, "shop.example"), 401, ""},
		{"the client", "strict", "/client", named(trusted, "shop.example"), 200, "shop.example"},
		{"another client", "strict", "/client", named(trusted, "x.example"), 403, ""},
		{"a key beside it, which counts", "strict", "/keys?key=secret", named(trusted, "shop.example"), 200, "alice"},
		{"a wrong key beside it", "strict", "/keys?key=bad", named(trusted, "shop.example"), 200, "shop.example"},
		{"another's signature", "strict", "/any", named(other, "shop.example"), 0, ""},
		{"verified, where none is needed", "fallback", "/dns", named(trusted, "shop.example"), 200, "shop.example"},
		{"another's signature, where none is needed", "fallback", "/any", named(other, "shop.example"), 401, ""},
		{"signed by itself, where none is needed", "fallback", "/any", named(nil, "shop.example"), 401, ""},
		{"no certificate, where none is needed", "fallback", "/any", nil, 401, ""},
		{"where none is verified", "unverified", "/any", named(trusted, "shop.example"), 401, ""},
		{"without TLS", "plain", "/any", nil, 401, ""},
	} {
		config := &tls.Config{InsecureSkipVerify: true, ServerName: "a.example", ClientSessionCache: tls.NewLRUClientSessionCache(8)} //nolint:gosec // the client is what is looked at
		if c.certificate != nil {
			pair := c.certificate.TLS()
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		resumed := false
		for range 3 { // the second and third may resume the session of the first
			status, client, again := r.asClient(t, c.listener, c.path, config)
			resumed = resumed || again
			if status != c.want || client != c.client {
				t.Errorf("%s: %s%s: %d %q, want %d %q (session resumed: %t)", c.what, c.listener, c.path, status, client, c.want, c.client, again)
			}
		}
		if c.listener == "strict" && c.want == 200 && !resumed {
			t.Errorf("%s: no session was resumed", c.what)
		}
	}
}

// asClient asks a listener, and returns the status, who the backend was told of, and whether the
// session was resumed; 0 for no answer.
func (r *running) asClient(t *testing.T, listener, path string, config *tls.Config) (status int, client string, resumed bool) {
	t.Helper()
	scheme := "https"
	if strings.HasPrefix(listener, "plain") {
		scheme = "http"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+r.addrs[listener]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "a.example"
	req.Header.Set("X-Client", "admin")
	req.Header.Set("X-Forwarded-Client-Cert", "DNS=shop.example;URI=spiffe://x/shop")
	resp, err := (&http.Transport{TLSClientConfig: config, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, "", false
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	var s seen
	_ = json.NewDecoder(resp.Body).Decode(&s)
	return resp.StatusCode, told(s.Header), resp.TLS != nil && resp.TLS.DidResume
}
