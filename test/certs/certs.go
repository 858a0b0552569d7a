// Package certs makes the certificates and keys that tests need.
//
// Nothing here returns an error: only a template that can't be signed fails, which is a
// fault of the test, and panics.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// Certificate is a certificate with its key.
type Certificate struct {
	Leaf *x509.Certificate
	Key  crypto.Signer
}

// Key returns a new ECDSA key.
func Key() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	return key
}

// Authority returns a certificate that may sign others, valid for a day.
func Authority(name string) *Certificate {
	return Sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
}

// For returns a certificate for hosts that its own key has signed.
func For(hosts ...string) *Certificate {
	return Sign(&x509.Certificate{DNSNames: hosts}, nil, nil)
}

// Sign returns a certificate of a template and a key. Without a key it makes one, and
// without an authority the key signs its own certificate. Where the template says
// nothing else, the certificate has a random number, and is valid from an hour ago for a
// day.
func Sign(template *x509.Certificate, key crypto.Signer, by *Certificate) *Certificate {
	if key == nil {
		key = Key()
	}
	signer := key
	if by != nil {
		signer = by.Key
	}
	return &Certificate{Leaf: issue(template, key.Public(), by, signer), Key: key}
}

// Issue returns a certificate like Sign, for one who keeps the key to itself.
func (c *Certificate) Issue(template *x509.Certificate, public crypto.PublicKey) []byte {
	return encode(issue(template, public, c, c.Key))
}

func issue(template *x509.Certificate, public crypto.PublicKey, by *Certificate, signer crypto.Signer) *x509.Certificate {
	t := *template
	if t.SerialNumber == nil {
		serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
		must(err)
		t.SerialNumber = serial
	}
	if t.NotBefore.IsZero() {
		t.NotBefore = time.Now().Add(-time.Hour)
	}
	if t.NotAfter.IsZero() {
		t.NotAfter = time.Now().Add(24 * time.Hour)
	}
	parent := &t
	if by != nil {
		parent = by.Leaf
	}
	der, err := x509.CreateCertificate(rand.Reader, &t, parent, public, signer)
	must(err)
	leaf, err := x509.ParseCertificate(der)
	must(err)
	return leaf
}

// PEM returns the certificate in PEM.
func (c *Certificate) PEM() []byte { return encode(c.Leaf) }

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// KeyPEM returns the key in PEM.
func (c *Certificate) KeyPEM() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(c.Key)
	must(err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TLS returns what a server or a client shows.
func (c *Certificate) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.Leaf.Raw}, PrivateKey: c.Key, Leaf: c.Leaf}
}

// Pool returns a pool with this certificate alone.
func (c *Certificate) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	return pool
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("a certificate for a test: %v", err))
	}
}
