package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// skew is how much the clocks of pods and controllers may differ. Certificates are
// valid from so much before they are made.
const skew = 15 * time.Minute

// root is a certificate that others are signed with. One that only verifies has
// no key.
type root struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newRoot(now time.Time, life time.Duration) (*root, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Gatehouse " + now.UTC().Format(time.RFC3339)},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(life),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &root{cert: cert, key: key}, nil
}

// sign signs a template for a key. A certificate never outlives its root.
func (r *root) sign(template *x509.Certificate, now time.Time, life time.Duration, key any) (*x509.Certificate, error) {
	var err error
	if template.SerialNumber, err = serialNumber(); err != nil {
		return nil, err
	}
	template.NotBefore, template.NotAfter = now.Add(-skew), now.Add(life)
	if template.NotAfter.After(r.cert.NotAfter) {
		template.NotAfter = r.cert.NotAfter
	}
	if !template.NotAfter.After(now) {
		return nil, fmt.Errorf("the authority's root ended at %s", r.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, r.cert, key, r.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func serialNumber() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return n.Add(n, big.NewInt(1)), nil
}

func encodeCert(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

func (r *root) encodeKey() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(r.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// parseCert reads a root's certificate.
func parseCert(raw []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("is not a certificate in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("is not a certificate: %w", err)
	}
	if !cert.IsCA {
		return nil, errors.New("is not a certificate that may sign others")
	}
	return cert, nil
}

// parseKey reads the key of a certificate. Its errors quote nothing of the key.
func parseKey(raw []byte, cert *x509.Certificate) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("is not a private key in PEM (PKCS #8)")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("is not a private key (PKCS #8)")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("is not an ECDSA key")
	}
	if !key.PublicKey.Equal(cert.PublicKey) {
		return nil, errors.New("is not the key of the certificate")
	}
	return key, nil
}
