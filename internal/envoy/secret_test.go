package envoy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

func newKey(t testing.TB, kind string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "RSA-1024":
		key, err = rsa.GenerateKey(rand.Reader, 1024)
	case "RSA-2048":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	case "P-224":
		key, err = ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	case "P-256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "P-384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "P-521":
		key, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "Ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("unknown kind of key %q", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// secret returns a certificate signed by its own key.
func secret(t testing.TB, name string, key crypto.Signer, change func(*x509.Certificate)) *ir.Secret {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	if change != nil {
		change(c)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &ir.Secret{
		Name:        name,
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         ir.Sensitive(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
	}
}

func nameless(c *x509.Certificate) { c.Subject = pkix.Name{Organization: []string{"x"}} }

// What we accept, Envoy loads.
func TestSecretAccepted(t *testing.T) {
	p256 := newKey(t, "P-256")
	named := func(change func(*x509.Certificate)) *ir.Secret {
		return secret(t, "", p256, func(c *x509.Certificate) { nameless(c); change(c) })
	}
	secrets := map[string]*ir.Secret{
		"expired":   secret(t, "x", p256, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }),
		"DNS name":  named(func(c *x509.Certificate) { c.DNSNames = []string{"a.example"} }),
		"IP":        named(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }),
		"URI":       named(func(c *x509.Certificate) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }),
		"signature": secret(t, "x", p256, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }),
		"RSA usage": secret(t, "x", newKey(t, "RSA-2048"), func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }),
	}
	for _, kind := range []string{"RSA-2048", "P-256", "P-384", "P-521", "Ed25519"} {
		secrets[kind] = secret(t, "x", newKey(t, kind), nil)
	}
	text := secret(t, "x", p256, nil)
	text.Certificate = "a comment\n" + text.Certificate + "\nanother\n"
	secrets["text around"] = text
	s := &setup{listeners: []*ir.Listener{{Name: "https", Addresses: []string{"127.0.0.1"}}}}
	for name, sec := range secrets {
		sec.Name = name
		s.secrets = append(s.secrets, sec)
		s.listeners[0].Chains = append(s.listeners[0].Chains, ir.Chain{
			Hostname: strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".example",
			Table:    name, TLS: &ir.TLS{Certificates: []string{name}},
		})
	}
	if err := s.validate(t); err != nil {
		t.Error(err)
	}
}

// serving is a setup whose one chain uses a secret.
func serving(sec *ir.Secret) *setup {
	return &setup{
		listeners: []*ir.Listener{{
			Name: "https", Addresses: []string{"127.0.0.1"},
			Chains: []ir.Chain{{Table: "t", TLS: &ir.TLS{Certificates: []string{sec.Name}}}},
		}},
		secrets: []*ir.Secret{sec},
	}
}

// What package topology refuses, Envoy refuses too: the checks there would else
// keep somebody's certificate from being served for nothing.
func TestSecretRefused(t *testing.T) {
	p256 := newKey(t, "P-256")
	good := secret(t, "x", p256, nil)
	other := secret(t, "x", newKey(t, "P-256"), nil)
	with := func(certificate, key string) *ir.Secret {
		return &ir.Secret{Name: "x", Certificate: certificate, Key: ir.Sensitive(key)}
	}
	block := func(name, body string) string {
		return "-----BEGIN " + name + "-----\n" + body + "\n-----END " + name + "-----\n"
	}
	half := good.Certificate[:len(good.Certificate)/2]
	for name, sec := range map[string]*ir.Secret{
		"mismatch":            with(good.Certificate, other.Key.Reveal()),
		"no certificate":      with("", good.Key.Reveal()),
		"garbage":             with("garbage", "garbage"),
		"no key":              with(good.Certificate, "garbage"),
		"broken chain":        with(good.Certificate+block("CERTIFICATE", "AAAA"), good.Key.Reveal()),
		"empty second":        with(good.Certificate+block("CERTIFICATE", ""), good.Key.Reveal()),
		"damaged second":      with(good.Certificate+block("CERTIFICATE", "!!!!"), good.Key.Reveal()),
		"cut off second":      with(good.Certificate+half, good.Key.Reveal()),
		"damaged other block": with(good.Certificate+block("X", "!!!!"), good.Key.Reveal()),
		"other block":         with(good.Certificate+block("X", "AAAA"), good.Key.Reveal()),
		"damaged first":       with(block("CERTIFICATE", "!!!!")+good.Certificate, good.Key.Reveal()),
		"key: damaged first":  with(good.Certificate, block("PRIVATE KEY", "!!!!")+good.Key.Reveal()),
		"key: cert first":     with(good.Certificate, good.Certificate+good.Key.Reveal()),
		"key: params first":   with(good.Certificate, block("EC PARAMETERS", "BggqhkjOPQMBBw==")+good.Key.Reveal()),
		"key: mislabelled":    with(good.Certificate, strings.ReplaceAll(good.Key.Reveal(), "PRIVATE KEY", "EC PRIVATE KEY")),
		"key: odd label":      with(good.Certificate, strings.ReplaceAll(good.Key.Reveal(), "PRIVATE KEY", "X PRIVATE KEY")),
		"chain in odd label":  with(strings.ReplaceAll(good.Certificate, "CERTIFICATE", "X509 CERTIFICATE"), good.Key.Reveal()),
		"key in chain":        with(good.Key.Reveal()+good.Certificate, good.Key.Reveal()),
		"header in cert":      with(strings.Replace(good.Certificate, "-----\n", "-----\nA: b\n\n", 1), good.Key.Reveal()),
		"crlf":                with(strings.ReplaceAll(good.Certificate, "\n", "\r\n"), good.Key.Reveal()),
		"trailing blanks":     with(strings.ReplaceAll(good.Certificate, "\n", "  \n"), good.Key.Reveal()),
		"inner blanks":        with(strings.ReplaceAll(good.Certificate, "\nM", "\n  M"), good.Key.Reveal()),
		"one line":            with("-----BEGIN CERTIFICATE-----\n"+strings.ReplaceAll(good.Certificate[28:len(good.Certificate)-27], "\n", "")+"\n-----END CERTIFICATE-----\n", good.Key.Reveal()),
		"nul":                 with(good.Certificate+"\x00\x00", good.Key.Reveal()),
		"curve":               secret(t, "x", newKey(t, "P-224"), nil),
		"usage":               secret(t, "x", p256, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCertSign }),
		"usage ed":            secret(t, "x", newKey(t, "Ed25519"), func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCertSign }),
		"rsa1024":             secret(t, "x", newKey(t, "RSA-1024"), nil),
		"nameless":            secret(t, "x", p256, nameless),
		"mail":                secret(t, "x", p256, func(c *x509.Certificate) { nameless(c); c.EmailAddresses = []string{"a@b.example"} }),
	} {
		t.Run(name, func(t *testing.T) {
			sec.Name = "x"
			err := serving(sec).validate(t)
			t.Logf("XX %s: %v", name, err)
		})
	}
}
