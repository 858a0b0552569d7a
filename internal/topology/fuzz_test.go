package topology

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// maxReason is how much the condition of a listener takes of a certificate's fault, whose
// text says what the library found.
const maxReason = 1024

// seedPairs are certificate chains with their keys: of each form, and damaged ones.
func seedPairs() (pairs [][2][]byte) {
	plain := certs.For("a.example.com")
	_, key, _ := ed25519.GenerateKey(nil) // never fails
	other := certs.Sign(&x509.Certificate{Subject: pkix.Name{CommonName: "a\x00b"}, DNSNames: []string{"*.example.com"}}, key, certs.Authority("fuzz"))
	for _, c := range []*certs.Certificate{plain, other} {
		pairs = append(pairs, [2][]byte{c.PEM(), c.KeyPEM()}, [2][]byte{append(c.PEM(), plain.PEM()...), c.KeyPEM()},
			[2][]byte{append(c.KeyPEM(), c.PEM()...), append(c.PEM(), c.KeyPEM()...)})
	}
	return append(pairs, [2][]byte{plain.PEM()[:200], plain.KeyPEM()}, [2][]byte{plain.PEM(), other.KeyPEM()}, [2][]byte{[]byte("\xff"), nil},
		[2][]byte{plain.PEM(), []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nDEK-Info: \x1b[31m\n\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")})
}

// FuzzCertificate protects listeners: a Secret that is accepted serves certificates and
// nothing else, again the same when it is read again, and what is said of one that is
// refused quotes nothing of the key.
func FuzzCertificate(f *testing.F) {
	for _, pair := range seedPairs() {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, chain, key []byte) {
		leaf, certificates, err := checkPair(chain, key)
		if err != nil {
			messagetest.Error(t, err, maxReason)
			if !strings.Contains(err.Error(), "tls.crt") && !strings.Contains(err.Error(), "tls.key") {
				t.Fatalf("the error names no field: %v", err)
			}
			if leaf != nil || certificates != "" {
				t.Fatal("what is refused is returned")
			}
			if text := strings.TrimSpace(string(key)); len(text) > 16 && strings.Contains(err.Error(), text) {
				t.Fatalf("the error quotes the key: %v", err)
			}
			return
		}
		if strings.Contains(certificates, "PRIVATE") {
			t.Fatal("a private key is in the chain")
		}
		if len(certificates) > 2*len(chain)+100 {
			t.Fatalf("%d bytes became %d", len(chain), len(certificates))
		}
		blocks := 0
		for block, rest := pem.Decode([]byte(certificates)); block != nil; block, rest = pem.Decode(rest) {
			blocks++
			if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
				t.Fatalf("a block %q with headers %v is in the chain", block.Type, block.Headers)
			}
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				t.Fatal(err)
			}
		}
		if blocks == 0 {
			t.Fatal("an empty chain is accepted")
		}
		again, same, err := checkPair([]byte(certificates), key)
		if err != nil || same != certificates || !again.Equal(leaf) {
			t.Fatalf("read again, the chain is another: %v", err)
		}
		for _, name := range certificateNames(leaf) {
			if name == "" {
				t.Fatal("an empty name")
			}
		}
	})
}

// FuzzAuthorities protects connections to backends and of clients: what is trusted is
// certificates and nothing else, each once.
func FuzzAuthorities(f *testing.F) {
	for _, pair := range seedPairs() {
		f.Add(pair[0])
		f.Add(append(pair[0], pair[0]...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ref := object.Key{Kind: kind.ConfigMap, Name: object.Name{Namespace: "ns", Name: "a"}}
		a := readAuthority(ref, "ca.crt", text)
		if a.Ref != ref || (a.Problem == "") == (a.Certificates == "") {
			t.Fatalf("%+v", a)
		}
		if a.Problem != "" {
			messagetest.Check(t, a.Problem, maxReason)
			if !strings.Contains(a.Problem, "ca.crt") {
				t.Fatalf("the problem names no field: %s", a.Problem)
			}
			return
		}
		if strings.Contains(a.Certificates, "PRIVATE") || len(a.Certificates) > 2*len(text)+100 {
			t.Fatalf("%d bytes became %d", len(text), len(a.Certificates))
		}
		if again := readAuthority(ref, "ca.crt", []byte(a.Certificates)); !again.Equal(a) {
			t.Fatalf("read again, the authorities are others: %s", again.Problem)
		}
	})
}
