package client

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/messagetest"
	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// FuzzAnswer protects proxies from what answers in the controller's place: a certificate is
// taken only if it is for the key that was asked with, and has not ended.
func FuzzAnswer(f *testing.F) {
	// The same key in all processes of a fuzz test.
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32))
	if err != nil {
		f.Fatal(err)
	}
	signed := certs.Sign(&x509.Certificate{DNSNames: []string{"a"}}, key, certs.Authority("fuzz"))
	foreign := certs.For("a")
	for _, chain := range [][]byte{signed.PEM(), append(signed.PEM(), foreign.PEM()...), foreign.PEM(), signed.PEM()[:100], nil} {
		text, err := json.Marshal(Response{Certificate: string(chain), Authorities: string(foreign.PEM())})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"certificate":5}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		answer := &Response{}
		if json.Unmarshal(text, answer) != nil {
			return
		}
		cert, err := certificate(answer, key)
		if err != nil {
			messagetest.Error(t, err, 1024)
			return
		}
		public, ok := cert.Leaf.PublicKey.(*ecdsa.PublicKey)
		if !ok || !public.Equal(&key.PublicKey) || !cert.Leaf.NotAfter.After(time.Now()) {
			t.Fatalf("a certificate for another key is taken, or one that ended at %s", cert.Leaf.NotAfter)
		}
		if !bytes.Equal(cert.Certificate[0], cert.Leaf.Raw) || cert.PrivateKey != key {
			t.Fatal("the leaf is not the chain's")
		}
	})
}
