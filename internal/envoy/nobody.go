package envoy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// NobodysAuthorities returns authorities in whose name nobody can show a certificate. They take
// the place of some that Envoy refuses.
func NobodysAuthorities(name string) *Resource {
	r, err := resource(Secrets, name, &tlsv3.Secret{Name: name, Type: trust(inline(nobodys()))})
	if err != nil {
		panic(fmt.Sprintf("envoy: secret %q: %v", name, err))
	}
	return r
}

// nobodys is a certificate of an authority whose key is forgotten at once.
var nobodys = sync.OnceValue(func() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the system has no random numbers
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "nobody"},
		NotBefore:             now.AddDate(-1, 0, 0),
		NotAfter:              now.AddDate(100, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
})
