package envoy

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/test/port"
)

func TestListenerLeavesOutWhatIsWrong(t *testing.T) {
	certs := &ir.TLS{Certificates: []ir.SecretKey{ir.NamedSecret("default/tls")}}
	l := &ir.Listener{
		Name: "tls-443", TLS: true, BindPort: 443, Addresses: []string{"localhost", "127.0.0.1"},
		Chains: []ir.Chain{
			{Table: "a", Hostname: "a.example", TLS: certs},
			{Table: "b", Hostname: "a.example", TLS: certs},
			{Table: "c", Hostname: "c.example", TLS: &ir.TLS{}},
		},
	}
	r, errs := Listener(l.Name, l)
	if r == nil || len(errs) != 3 {
		t.Fatalf("%v %v", r, errs)
	}
	for i, want := range []string{`"localhost" is not an IP address`, `hostname "a.example": served already`, `hostname "c.example": no certificate`} {
		if !strings.Contains(errs[i].Error(), want) {
			t.Errorf("%v, want %q", errs[i], want)
		}
	}
	good := *l
	good.Addresses, good.Chains = good.Addresses[1:], good.Chains[:1]
	if same, errs := Listener(good.Name, &good); len(errs) > 0 || !same.Equal(r) {
		t.Errorf("%v: what is left differs from what was right", errs)
	}
	l.Chains = nil
	if r, errs := Listener(l.Name, l); r != nil || len(errs) == 0 {
		t.Errorf("nothing to serve: %v %v", r, errs)
	}
	if r, errs := Listener("x", &ir.Listener{Name: "x", Chains: good.Chains}); r != nil || len(errs) == 0 {
		t.Errorf("nowhere to listen: %v %v", r, errs)
	}
}

func TestEnvoyTLS(t *testing.T) {
	ok := func(name string) []*ir.Host {
		return []*ir.Host{{Domain: "*", Rules: []*ir.Rule{{
			Match: prefix("/"), Status: 200,
			Filters: ir.Filters{ResponseHeaders: &ir.HeaderChanges{Set: []ir.Header{{Name: "Table", Value: name}}}},
		}}}}
	}
	chain := func(table, hostname string, certs ...string) ir.Chain {
		tls := &ir.TLS{}
		for _, name := range certs {
			tls.Certificates = append(tls.Certificates, ir.NamedSecret(name))
		}
		return ir.Chain{Table: table, Hostname: hostname, TLS: tls}
	}
	// Envoy chooses among the certificates that are for the server's name.
	named := func(c *x509.Certificate) { c.DNSNames = []string{"a.example"} }
	s := &setup{
		listeners: []*ir.Listener{{Name: "tls-443", TLS: true, Addresses: []string{"127.0.0.1"}, Chains: []ir.Chain{
			chain("any", "", "any"),
			chain("wild", "*.example", "wild"),
			chain("exact", "a.example", "rsa", "ecdsa"),
		}}},
		tables: map[string][]*ir.Host{"any": ok("any"), "wild": ok("wild"), "exact": ok("exact")},
		secrets: []*ir.Secret{
			secret(t, "any", newKey(t, "P-256"), nil), secret(t, "wild", newKey(t, "Ed25519"), nil),
			secret(t, "rsa", newKey(t, "RSA-2048"), named), secret(t, "ecdsa", newKey(t, "P-256"), named),
		},
	}
	r := s.start(t)
	get := func(name string, version uint16) (*http.Response, error) {
		//nolint:gosec // the certificate is what is asked for
		c := &tls.Config{ServerName: name, InsecureSkipVerify: true, MaxVersion: version}
		tr := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true, DisableKeepAlives: true}
		req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+r.addrs["tls-443"], nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = name
		resp, err := tr.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return resp, err
	}
	for _, c := range []struct {
		sni, table, certificate string
		algorithm               x509.PublicKeyAlgorithm
	}{
		{"a.example", "exact", "ecdsa", x509.ECDSA},
		{"b.example", "wild", "wild", x509.Ed25519},
		{"b.c.example", "wild", "wild", x509.Ed25519},
		{"other.test", "any", "any", x509.ECDSA},
		{"", "any", "any", x509.ECDSA},
	} {
		resp, err := get(c.sni, tls.VersionTLS13)
		if err != nil {
			t.Errorf("%q: %v", c.sni, err)
			continue
		}
		leaf := resp.TLS.PeerCertificates[0]
		if resp.Header.Get("Table") != c.table || leaf.PublicKeyAlgorithm != c.algorithm || resp.ProtoMajor != 2 {
			t.Errorf("%q: table %q, certificate %s, %s", c.sni, resp.Header.Get("Table"), leaf.Subject, resp.Proto)
		}
	}
	if _, err := get("a.example", tls.VersionTLS11); err == nil {
		t.Error("TLS 1.1 is served")
	}
}

func TestEnvoyListensOnAllAddresses(t *testing.T) {
	// IPv4 only: not every machine that runs the tests has IPv6.
	s := plain(rulesOn("*", &ir.Rule{Match: prefix("/"), Status: 204}))
	number := port.OfTest(t)
	s.listeners[0].BindPort = uint16(number)
	s.listeners[0].Addresses = []string{"127.0.0.1", "127.0.0.2"}
	r := s.start(t)
	for _, addr := range s.listeners[0].Addresses {
		_, port, _ := net.SplitHostPort(r.addrs["http-80"])
		r.addrs["http-80"] = net.JoinHostPort(addr, port)
		if a := r.get(t, "http://a.example/"); a.Status != 204 {
			t.Errorf("%s: %d", addr, a.Status)
		}
	}
}

func TestEnvoyAccessLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	s := plain(rulesOn("*", &ir.Rule{Match: prefix("/"), Status: 204}))
	s.listeners[0].Telemetry.AccessLogs = []ir.AccessLog{{Path: path}}
	r := s.start(t)
	r.get(t, "http://a.example/logged")
	eventually(t, "a line in the access log", func() bool {
		raw, _ := os.ReadFile(path)
		return strings.Contains(string(raw), "/logged")
	})
}
