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
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/slow"
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
		Name:        ir.NamedSecret(name),
		Certificate: encode("CERTIFICATE", der),
		Key:         ir.Sensitive(encode("PRIVATE KEY", raw)),
	}
}

func nameless(c *x509.Certificate) { c.Subject = pkix.Name{Organization: []string{"x"}} }

// tlsFeature demands an extension of TLS from the server; 5 is a stapled OCSP response.
func tlsFeature(number byte) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, number}}}
	}
}

// TestEnvoyLoadsPair shows that what package topology accepts, Envoy loads.
func TestEnvoyLoadsPair(t *testing.T) {
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
		"feature":   secret(t, "x", p256, tlsFeature(17)),
		"RSA usage": secret(t, "x", newKey(t, "RSA-2048"), func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }),
	}
	for _, kind := range []string{"RSA-2048", "P-256", "P-384", "P-521", "Ed25519"} {
		secrets[kind] = secret(t, "x", newKey(t, kind), nil)
	}
	changed := func(name string, key crypto.Signer, change func(*ir.Secret)) {
		secrets[name] = secret(t, "x", key, nil)
		change(secrets[name])
	}
	changed("text around", p256, func(s *ir.Secret) { s.Certificate = "a comment\n" + s.Certificate + "\nanother\n" })
	changed("CRLF", p256, func(s *ir.Secret) { s.Certificate = strings.ReplaceAll(s.Certificate, "\n", "\r\n") })
	changed("both in both", p256, func(s *ir.Secret) {
		s.Certificate, s.Key = s.Key.Reveal()+s.Certificate, ir.Sensitive(s.Certificate)+s.Key
	})
	changed("parameters", p256, func(s *ir.Secret) {
		s.Key = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + s.Key
	})
	changed("PKCS 8 labelled EC", p256, func(s *ir.Secret) {
		s.Key = ir.Sensitive(strings.ReplaceAll(s.Key.Reveal(), "PRIVATE", "EC PRIVATE"))
	})
	changed("PKCS 8 labelled RSA", newKey(t, "RSA-2048"), func(s *ir.Secret) {
		s.Key = ir.Sensitive(strings.ReplaceAll(s.Key.Reveal(), "PRIVATE", "RSA PRIVATE"))
	})
	sec1, err := x509.MarshalECPrivateKey(p256.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	changed("SEC 1", p256, func(s *ir.Secret) { s.Key = ir.Sensitive(encode("EC PRIVATE KEY", sec1)) })
	rsa2048 := newKey(t, "RSA-2048").(*rsa.PrivateKey)
	changed("PKCS 1", rsa2048, func(s *ir.Secret) {
		s.Key = ir.Sensitive(encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsa2048)))
	})
	s := &setup{listeners: []*ir.Listener{{Name: "https", TLS: true, Addresses: []string{"127.0.0.1"}}}}
	for name, sec := range secrets {
		sec.Name = ir.NamedSecret(name)
		s.secrets = append(s.secrets, sec)
		s.listeners[0].Chains = append(s.listeners[0].Chains, ir.Chain{
			Hostname: strings.ReplaceAll(strings.ToLower(name), " ", "-") + ".example",
			Table:    name, TLS: &ir.TLS{Certificates: []ir.SecretKey{ir.NamedSecret(name)}},
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
			Chains: []ir.Chain{{Table: "t", TLS: &ir.TLS{Certificates: []ir.SecretKey{sec.Name}}}},
		}},
		secrets: []*ir.Secret{sec},
	}
}

// encode returns key material in PEM form.
func encode(label string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

// TestEnvoyRefusesPair shows that package topology refuses a pair for a reason:
// without one, its checks would keep somebody's certificate from being served.
func TestEnvoyRefusesPair(t *testing.T) {
	slow.Skip(t)
	p256, rsa2048 := newKey(t, "P-256"), newKey(t, "RSA-2048")
	good, rsaGood := secret(t, "x", p256, nil), secret(t, "x", rsa2048, nil)
	certificate, key := good.Certificate, good.Key.Reveal()
	sec1, err := x509.MarshalECPrivateKey(p256.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	pkcs1 := x509.MarshalPKCS1PrivateKey(rsa2048.(*rsa.PrivateKey))
	damaged := func(label string) string { return "-----BEGIN " + label + "-----\n!!!!\n-----END " + label + "-----\n" }
	with := func(certificate, key string) *ir.Secret {
		return &ir.Secret{Name: ir.NamedSecret("x"), Certificate: certificate, Key: ir.Sensitive(key)}
	}
	for _, c := range []struct {
		name   string
		secret *ir.Secret
		want   string // of what Envoy says
	}{
		{"no certificate", with("", key), "certificate chain not set"},
		{"no key", with(certificate, ""), "private key"},
		{"garbage", with("garbage", "garbage"), "certificate chain"},
		{"garbage as key", with(certificate, "garbage"), "private key"},
		{"mismatch", with(certificate, secret(t, "x", newKey(t, "P-256"), nil).Key.Reveal()), "MISMATCH"},
		{"unreadable", with(certificate+encode("CERTIFICATE", []byte{0, 0, 0}), key), "certificate chain"},
		{"damaged", with(certificate+damaged("CERTIFICATE"), key), "certificate chain"},
		{"damaged before", with(damaged("CERTIFICATE")+certificate, key), "certificate chain"},
		{"damaged other block", with(certificate+damaged("X"), key), "certificate chain"},
		{"cut off", with(certificate+certificate[:len(certificate)/2], key), "certificate chain"},
		{"no line break between", with(strings.TrimSpace(certificate)+certificate, key), "certificate chain"},
		{"encrypted", with(certificate, strings.ReplaceAll(key, "PRIVATE", "ENCRYPTED PRIVATE")), "private key"},
		{"damaged key", with(certificate, damaged("PRIVATE KEY")+key), "private key"},
		{"headers", with(strings.Replace(certificate, "-----\n", "-----\nA: b\n\n", 1), key), "certificate chain"},
		{"headers of a key", with(certificate, strings.Replace(key, "-----\n", "-----\nA: b\n\n", 1)), "private key"},
		{"SEC 1 labelled PKCS #8", with(certificate, encode("PRIVATE KEY", sec1)), "private key"},
		{"PKCS #1 labelled PKCS #8", with(rsaGood.Certificate, encode("PRIVATE KEY", pkcs1)), "private key"},
		{"RSA labelled EC", with(rsaGood.Certificate, strings.ReplaceAll(rsaGood.Key.Reveal(), "PRIVATE", "EC PRIVATE")), "private key"},
		{"unknown label", with(certificate, strings.ReplaceAll(key, "PRIVATE", "X PRIVATE")), "private key"},
		{"short RSA", secret(t, "x", newKey(t, "RSA-1024"), nil), "2048-bit or larger"},
		{"curve", secret(t, "x", newKey(t, "P-224"), nil), "certificate chain"},
		{"usage", secret(t, "x", p256, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCertSign }), "certificate chain"},
		{"nameless", secret(t, "x", p256, nameless), "neither subject CN nor SAN names"},
		{"mail", secret(t, "x", p256, func(c *x509.Certificate) { nameless(c); c.EmailAddresses = []string{"a@b.example"} }), "neither subject CN nor SAN names"},
		{"must-staple", secret(t, "x", p256, tlsFeature(5)), "OCSP response is required"},
	} {
		if err := serving(c.secret).validate(t); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestSecretErrorHidesKey protects the logs from what can't be marshalled.
func TestSecretErrorHidesKey(t *testing.T) {
	r, err := Secret(&ir.Secret{Name: ir.NamedSecret("default/tls"), Certificate: "x", Key: "PRIVATE \xff"})
	if err == nil || r != nil || strings.Contains(err.Error(), "PRIVATE") || !strings.Contains(err.Error(), "default/tls") {
		t.Errorf("%v, %v", r, err)
	}
}

// Envoy writes a client's secret as it is, and issuers read it as of a form. A key of sessions stays as it is.
func TestSecretOfClient(t *testing.T) {
	session := ir.LoginSession{Secret: object.Name{Namespace: "shop", Name: "staff"}, Entry: "client-secret", Client: "people"}
	for _, c := range []struct {
		name       ir.SecretKey
		text, want string
	}{
		{session.ClientSecret(), "Az09-._~", "Az09-._~"},
		{session.ClientSecret(), "a+b c%41:&=/?#", "a%2Bb%20c%2541%3A%26%3D%2F%3F%23"},
		{session.Key(), "00ff", "00ff"},
	} {
		r, err := Secret(&ir.Secret{Name: c.name, Text: ir.Sensitive(c.text)})
		if err != nil {
			t.Fatal(err)
		}
		var got tlsv3.Secret
		if err := proto.Unmarshal(r.Body(), &got); err != nil {
			t.Fatal(err)
		}
		if text := got.GetGenericSecret().GetSecret().GetInlineString(); text != c.want {
			t.Errorf("%s with %q is sent as %q, want %q", c.name, c.text, text, c.want)
		}
	}
}
