package identity_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gatehouse-dev/gatehouse/internal/identity"
	"github.com/gatehouse-dev/gatehouse/internal/identity/client"
)

func (c *cluster) attackByRequest(t *testing.T, h *controller, a *corev1.Pod) {
	good := c.token(t, "ns", "a-sa", a, identity.Audience)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stolen := csr(t, newKey(t), nil)
	stolen[len(stolen)-5] ^= 1
	for name, body := range map[string]string{
		"nothing":                  "",
		"no JSON":                  "csr",
		"no request":               `{"csr": "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"}`,
		"a certificate":            `{"csr": ` + quote(string(h.authority.Bundle())) + `}`,
		"an RSA key":               body(csr(t, weak, nil)),
		"a key of another curve":   body(csr(t, p384, nil)),
		"a key that isn't theirs":  body(stolen),
		"a megabyte":               `{"csr": "` + strings.Repeat("A", 1<<20) + `"}`,
		"a body that doesn't stop": body(csr(t, newKey(t), &x509.CertificateRequest{DNSNames: make64k()})),
	} {
		t.Run(name, func(t *testing.T) {
			h := h.in(t)
			h.expectRefusal(apiRefusals, "bad-request", func() {
				code, answer, err := h.asker("127.0.0.4").do(http.MethodPost, client.Path, good, body)
				if err != nil || code != 400 {
					t.Errorf("got %d %s %v", code, answer, err)
				}
			})
		})
	}

	t.Run("names in the request count for nothing", func(t *testing.T) {
		h := h.in(t)
		_, ed, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		code, raw, err := h.asker("127.0.0.1").do(http.MethodPost, client.Path, good, body(csr(t, ed, &x509.CertificateRequest{
			Subject:  pkix.Name{CommonName: "controller"},
			DNSNames: []string{serverName},
			URIs: []*url.URL{
				{Scheme: "spiffe", Host: "gatehouse.dev", Path: "/ns/ns/gateway/b/pod/b-1"},
				{Scheme: "spiffe", Host: "gatehouse.dev", Path: "/controller/x"},
			},
		})))
		if err != nil || code != 200 {
			t.Fatalf("got %d %s %v", code, raw, err)
		}
		cert := issued(t, raw)
		if len(cert.DNSNames) > 0 || cert.Subject.CommonName != "" || len(cert.URIs) != 1 ||
			cert.URIs[0].String() != "spiffe://gatehouse.dev/ns/ns/gateway/a/pod/a-1" {
			t.Errorf("the certificate is for %v %v %v", cert.Subject, cert.DNSNames, cert.URIs)
		}
		if cert.IsCA || len(cert.ExtKeyUsage) != 1 || cert.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
			t.Errorf("the certificate is good for %v, CA %v", cert.ExtKeyUsage, cert.IsCA)
		}
		if life := time.Until(cert.NotAfter); life > time.Hour || life < 50*time.Minute {
			t.Errorf("the certificate is good for %v", life)
		}
	})
	t.Run("other paths and methods", func(t *testing.T) {
		for path, want := range map[string]int{"/": 404, "/v1": 404, client.Path: 405} {
			if code, _, err := h.asker("127.0.0.1").do(http.MethodGet, path, good, ""); err != nil || code != want {
				t.Errorf("%s: got %d %v, want %d", path, code, err, want)
			}
		}
	})
}

func make64k() []string {
	var names []string
	for i := range 2000 {
		names = append(names, fmt.Sprintf("name-%d.example.com", i))
	}
	return names
}

func quote(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

func issued(t *testing.T, raw []byte) *x509.Certificate {
	t.Helper()
	var answer client.Response
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(answer.Certificate))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
