//go:build linux

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// trusting returns a BackendTLSPolicy for the Service of its name.
func trusting(name, authority, hostname string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: %[1]s, namespace: %[4]s}
spec:
  targetRefs: [{group: "", kind: Service, name: %[1]s}]
  validation:
    caCertificateRefs: [{group: "", kind: ConfigMap, name: %[2]s}]
    hostname: %[3]s
`, name, authority, hostname, siteNamespace)
}

// trusted returns a ConfigMap with the certificates of authorities.
func trusted(t *testing.T, name string, authorities ...authority) string {
	t.Helper()
	text := ""
	for _, from := range authorities {
		text += string(from().PEM())
	}
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata:\n  ca.crt: |\n%s",
		name, siteNamespace, indent(indent(text))+"\n")
}

// secure returns an HTTPS Service of a name, whose certificate is for its name.example.
func secure(t *testing.T, name, server string) string {
	t.Helper()
	manifest, err := httpsBackend.manifest(siteNamespace, name, server, server+".example")
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}

// overTLS returns a route of one host to an HTTPS Service.
func overTLS(name, host, service string) string {
	return siteRules(name, host, fmt.Sprintf("- backendRefs: [{name: %s, port: 8443}]", service))
}

// siteGatewayShowing returns the Gateway with a certificate to show to its backends.
func siteGatewayShowing(secret string) string {
	return siteGateway("{name: http, port: 80, protocol: HTTP}") +
		fmt.Sprintf("  tls: {backend: {clientCertificateRef: {name: %s}}}\n", secret)
}

// TestBackendTLSComesAndGoes protects routes from what becomes of others' backends: a
// BackendTLSPolicy with its authority and a client certificate are there for less
// than the time that Envoy may take to ask for them. A cluster that waits for a secret
// which is no longer there must not keep others from coming.
func TestBackendTLSComesAndGoes(t *testing.T) {
	t.Parallel()
	const (
		cycles = 50
		bar    = time.Second
	)
	s := startSite(t, map[string]string{"gateway.yaml": siteGatewayShowing("client")})
	client := issueClient(clientAuthority, "joe")
	var churn sync.WaitGroup
	defer churn.Wait()
	churn.Go(func() {
		for i := range cycles {
			name := fmt.Sprintf("secure-%d", i)
			s.write(t, "churn.yaml", secure(t, name, "secure")+trusted(t, name, testAuthority)+
				trusting(name, name, "secure.example")+overTLS(name, name+".example", name)+client.manifest(siteNamespace, "client"))
			time.Sleep(time.Duration(i%4) * 50 * time.Millisecond)
			s.remove(t, "churn.yaml")
			time.Sleep(20 * time.Millisecond)
		}
	})
	stuck, slowest := 0, time.Duration(0)
	for i := range cycles {
		name := fmt.Sprintf("new-%d", i)
		start := time.Now()
		s.write(t, name+".yaml", mustBackend(t, siteNamespace, name, "v1")+siteRoute(name, name+".example", name))
		s.answers(t, "http://"+name+".example/", http.StatusOK)
		took := time.Since(start)
		if slowest = max(slowest, took); took > bar {
			stuck++
		}
	}
	t.Logf("the slowest of %d routes was live after %v", cycles, slowest)
	if stuck > 0 {
		t.Errorf("%d of %d routes were not live within %v; the slowest took %v", stuck, cycles, bar, slowest)
	}
	churn.Wait()
	// What comes last works.
	s.write(t, "last.yaml", secure(t, "last", "secure")+trusted(t, "last", testAuthority)+
		trusting("last", "last", "secure.example")+overTLS("last", "last.example", "last")+client.manifest(siteNamespace, "client"))
	s.serves(t, "last.example", "secure")
}

// TestAuthoritiesRotateUnderLoad protects requests to a TLS backend while those whom
// it is trusted by are replaced, and the client certificate with them.
func TestAuthoritiesRotateUnderLoad(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{
		"gateway.yaml": siteGatewayShowing("client"),
		"secure.yaml":  secure(t, "secure", "secure") + trusting("secure", "authority", "secure.example") + overTLS("secure", "secure.example", "secure"),
		"ca.yaml":      trusted(t, "authority", testAuthority),
	})
	s.serves(t, "secure.example", "secure")
	l := startLoad(t, s.listener(), loadClients, func() string { return "secure.example" })
	l.more(t, 50)
	bundles := []string{
		trusted(t, "authority", testAuthority, otherAuthority),
		trusted(t, "authority", otherAuthority, testAuthority),
		trusted(t, "authority", testAuthority),
	}
	for i := range 30 {
		client := issueClient(clientAuthority, fmt.Sprintf("joe-%d", i))
		s.write(t, "ca.yaml", bundles[i%len(bundles)])
		s.write(t, "client.yaml", client.manifest(siteNamespace, "client"))
		time.Sleep(50 * time.Millisecond)
	}
	l.more(t, 50)
	if wrong := l.end(); len(wrong) > 0 {
		t.Errorf("of %d requests, not 200: %v", l.sent.Load(), wrong)
	}
}

// TestBackendTLSPolicyUnderLoad protects requests while the policy of their Service
// comes and goes. With it the backend answers; without it, the backend is spoken to
// in clear, and says what it thinks of that: nothing else may be seen. A policy that
// asks for another name of the same backend changes nothing for clients.
func TestBackendTLSPolicyUnderLoad(t *testing.T) {
	t.Parallel()
	s := startSite(t, map[string]string{
		"secure.yaml": secure(t, "secure", "secure") + overTLS("secure", "secure.example", "secure"),
		"ca.yaml":     trusted(t, "authority", testAuthority) + trusted(t, "same", testAuthority),
		"policy.yaml": trusting("secure", "authority", "secure.example"),
	})
	s.serves(t, "secure.example", "secure")
	l := startLoad(t, s.listener(), loadClients, func() string { return "secure.example" })
	l.more(t, 50)
	for i := range 30 {
		s.write(t, "policy.yaml", trusting("secure", []string{"same", "authority"}[i%2], "secure.example"))
		time.Sleep(60 * time.Millisecond)
	}
	l.more(t, 50)
	if wrong := l.end(); len(wrong) > 0 {
		t.Errorf("while the policy changed, of %d requests, not 200: %v", l.sent.Load(), wrong)
	}

	l = startLoad(t, s.listener(), loadClients, func() string { return "secure.example" })
	l.more(t, 50)
	for range 15 {
		s.remove(t, "policy.yaml")
		time.Sleep(60 * time.Millisecond)
		s.write(t, "policy.yaml", trusting("secure", "authority", "secure.example"))
		time.Sleep(60 * time.Millisecond)
	}
	s.serves(t, "secure.example", "secure")
	wrong := l.end()
	delete(wrong, fmt.Sprintf("status %d", http.StatusBadRequest)) // to clear text
	if len(wrong) > 0 {
		t.Errorf("while the policy came and went, of %d requests, neither 200 nor 400: %v", l.sent.Load(), wrong)
	}
}

// systemTrusting returns a BackendTLSPolicy that trusts the authorities of this host.
func systemTrusting(name, hostname string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: %[1]s, namespace: %[3]s}
spec:
  targetRefs: [{group: "", kind: Service, name: %[1]s}]
  validation: {wellKnownCACertificates: System, hostname: %[2]s}
`, name, hostname, siteNamespace)
}

// TestSystemAuthorities protects wellKnownCACertificates: the authorities are those
// of a file on this host, which SSL_CERT_FILE names.
func TestSystemAuthorities(t *testing.T) {
	path := filepath.Join(t.TempDir(), "authorities.pem")
	if err := os.WriteFile(path, testAuthority().PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", path)
	s := startSite(t, map[string]string{
		"secure.yaml": secure(t, "secure", "secure") + systemTrusting("secure", "secure.example") + overTLS("secure", "secure.example", "secure"),
	})
	s.serves(t, "secure.example", "secure")
	s.conditions(t, "BackendTLSPolicy secure", "gw", "Accepted=True", "ResolvedRefs=True")
}

// TestSystemAuthoritiesMissing protects from trusting everybody where there is no
// such file: nothing is sent, and the policy says why.
func TestSystemAuthoritiesMissing(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", filepath.Join(t.TempDir(), "nonesuch.pem"))
	s := startSite(t, map[string]string{
		"secure.yaml": secure(t, "secure", "secure") + systemTrusting("secure", "secure.example") + overTLS("secure", "secure.example", "secure"),
	})
	s.answers(t, "http://secure.example/", http.StatusServiceUnavailable)
	s.conditions(t, "BackendTLSPolicy secure", "gw", "ResolvedRefs=False/InvalidCACertificateRef")
	s.says(t, "BackendTLSPolicy secure", "nonesuch.pem")
	// What has nothing to do with it still comes.
	s.write(t, "new.yaml", mustBackend(t, siteNamespace, "new", "v2")+siteRoute("new", "new.example", "new"))
	s.serves(t, "new.example", "v2")
}
