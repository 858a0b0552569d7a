package topology

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
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// pair is a certificate and its key in PEM form.
type pair struct{ crt, key []byte }

var keys = map[string]func() (crypto.Signer, error){
	"ecdsa":   func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
	"other":   func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
	"p224":    func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P224(), rand.Reader) },
	"rsa":     func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
	"rsa1024": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 1024) },
	"ed25519": func() (crypto.Signer, error) { _, k, err := ed25519.GenerateKey(rand.Reader); return k, err },
}

// templates are the pairs whose certificate is special, all with an ECDSA key.
var templates = map[string]func(*x509.Certificate){
	"commonname": func(c *x509.Certificate) { c.DNSNames = nil },
	"nameless":   func(c *x509.Certificate) { c.DNSNames, c.Subject = nil, pkix.Name{Organization: []string{"x"}} },
	"mail": func(c *x509.Certificate) {
		c.DNSNames, c.Subject, c.EmailAddresses = nil, pkix.Name{}, []string{"a@b.example"}
	},
	"address": func(c *x509.Certificate) {
		c.DNSNames, c.Subject, c.IPAddresses = nil, pkix.Name{}, []net.IP{{127, 0, 0, 1}}
	},
	"uri": func(c *x509.Certificate) {
		c.DNSNames, c.Subject, c.URIs = nil, pkix.Name{}, []*url.URL{{Scheme: "spiffe", Host: "x"}}
	},
	"signs":    func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature },
	"encrypts": func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment },
	"staple":   func(c *x509.Certificate) { c.ExtraExtensions = tlsFeature(5) },
	"feature":  func(c *x509.Certificate) { c.ExtraExtensions = tlsFeature(17) },
}

// tlsFeature demands an extension of TLS from the server; 5 is a stapled OCSP response.
func tlsFeature(number byte) []pkix.Extension {
	return []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 3, 2, 1, number}}}
}

var (
	pairsMu sync.Mutex
	pairs   = map[string]pair{}
)

// makePair returns the pair of a name, the same for the whole run.
func makePair(t testing.TB, name string) pair {
	t.Helper()
	pairsMu.Lock()
	defer pairsMu.Unlock()
	if p, ok := pairs[name]; ok {
		return p
	}
	generate, change := keys[name], templates[name]
	if change != nil {
		generate = keys["ecdsa"]
	}
	if generate == nil {
		t.Fatalf("no pair is named %q", name)
	}
	key, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"*.example.com"},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p := pair{
		crt: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
	pairs[name] = p
	return p
}

var pairPattern = regexp.MustCompile(`\$\{(crt|key|pem) (\w+)\}`)

// expandPairs puts base64 of PEM in the place of ${crt NAME} and ${key NAME}.
func expandPairs(t testing.TB, text string) string {
	return pairPattern.ReplaceAllStringFunc(text, func(m string) string {
		parts := pairPattern.FindStringSubmatch(m)
		p := makePair(t, parts[2])
		switch parts[1] {
		case "pem": // within quotes
			return strings.ReplaceAll(string(p.crt), "\n", "\\n")
		case "crt":
			return base64.StdEncoding.EncodeToString(p.crt)
		}
		return base64.StdEncoding.EncodeToString(p.key)
	})
}
