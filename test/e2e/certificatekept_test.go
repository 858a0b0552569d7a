//go:build linux

package e2e

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestBrokenSecretKeepsServing protects TLS from mistakes: the certificate is replaced in
// two steps, and its Secret is deleted and made again, under a client that notices nothing.
func TestBrokenSecretKeepsServing(t *testing.T) {
	t.Parallel()
	old := issue(func(*x509.Certificate) {}, "home.example")
	const day = 24 * time.Hour
	next := issue(func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(-85*day), time.Now().Add(5*day) }, "home.example")
	s := startSite(t, map[string]string{
		"cert.yaml": old.manifest(siteNamespace, "cert"),
		"gateway.yaml": siteGateway("{name: http, port: 80, protocol: HTTP}",
			"{name: https, port: 443, protocol: HTTPS, hostname: home.example, tls: {certificateRefs: [{name: cert}]}}"),
	})
	s.conditions(t, "Gateway gw", "https", "ResolvedRefs=True", "Programmed=True")
	c := s.client(t, "home.example", 443)
	var asked atomic.Int64
	// shown waits until a client is shown a certificate, and for some requests of the other
	// client after that.
	shown := func(p pair) {
		t.Helper()
		eventually(t, siteTimeout, func() error {
			_, state, err := c.works()
			if err == nil && !state.PeerCertificates[0].Equal(leafOf(t, p)) {
				err = errors.New("another certificate is shown")
			}
			return err
		})
		from := asked.Load()
		eventually(t, siteTimeout, func() error {
			if n := asked.Load() - from; n < 50 {
				return fmt.Errorf("%d requests", n)
			}
			return nil
		})
	}
	kept := []string{"ResolvedRefs=False/InvalidCertificateRef", "Programmed=True"}
	beside(t, func(int) error { asked.Add(1); _, _, err := c.works(); return err }, func() {
		s.write(t, "cert.yaml", pair{cert: next.cert, key: old.key}.manifest(siteNamespace, "cert"))
		s.conditions(t, "Gateway gw", "https", kept...)
		s.says(t, "Gateway gw", "its last good certificate stays in force, and expires at ")
		shown(old)
		s.write(t, "cert.yaml", next.manifest(siteNamespace, "cert"))
		s.conditions(t, "Gateway gw", "https", "ResolvedRefs=True", "Programmed=True")
		s.says(t, "Gateway gw", "the certificate in Secret "+siteNamespace+"/cert expires at ")
		shown(next)

		s.remove(t, "cert.yaml")
		s.conditions(t, "Gateway gw", "https", kept...)
		s.says(t, "Gateway gw", "does not exist; create it or correct tls.certificateRefs; its last good certificate stays in force until ")
		shown(next)
		// Whatever else changes meanwhile, it goes on.
		s.write(t, "second.yaml", siteRoute("second", "second.example", "v2"))
		s.serves(t, "second.example", "v2")
		shown(next)
		s.write(t, "cert.yaml", old.manifest(siteNamespace, "cert"))
		s.conditions(t, "Gateway gw", "https", "ResolvedRefs=True", "Programmed=True")
		shown(old)
	})
	_, metrics, err := s.get("/metrics")
	want := fmt.Sprintf(`gatehouse_certificate_expiry_timestamp_seconds{gateway="%s/gw",listener="https",listener_set=""} %v`+"\n", siteNamespace, float64(leafOf(t, old).NotAfter.Unix()))
	if err != nil || !strings.Contains(metrics, want) {
		t.Errorf("the metrics lack %q: %v", want, err)
	}
}

func leafOf(t *testing.T, p pair) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(p.cert)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}
