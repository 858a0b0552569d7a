package envoy

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// minRSA is the shortest RSA key that Envoy accepts, in bits.
const minRSA = 2048

// Secret returns a certificate with its key. An error says why Envoy would
// refuse the pair; it never quotes key material.
func Secret(s *ir.Secret) (*Resource, error) {
	if err := checkPair(s); err != nil {
		return nil, fmt.Errorf("secret %s: %w", s.Name, err)
	}
	r, err := resource(Secrets, s.Name, &tlsv3.Secret{
		Name: s.Name,
		Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: inline(s.Certificate),
			PrivateKey:       inline(s.Key.Reveal()),
		}},
	})
	if err != nil {
		// The rules' own text could quote the message.
		return nil, fmt.Errorf("secret %s: not a valid certificate and key", s.Name)
	}
	return r, nil
}

// checkPair holds a pair against what Envoy was seen to refuse. An expired
// certificate is not among it: clients judge that.
func checkPair(s *ir.Secret) error {
	pair, err := tls.X509KeyPair([]byte(s.Certificate), []byte(s.Key.Reveal()))
	if err != nil {
		return fmt.Errorf("certificate and key can't be used: %w", err)
	}
	for i, der := range pair.Certificate {
		if _, err := x509.ParseCertificate(der); err != nil {
			return fmt.Errorf("certificate %d of the chain can't be read: %w", i+1, err)
		}
	}
	leaf := pair.Leaf
	if leaf.Subject.CommonName == "" && len(leaf.DNSNames) == 0 && len(leaf.IPAddresses) == 0 && len(leaf.URIs) == 0 {
		return errors.New("the certificate names nothing: it has neither a common name nor a DNS, IP or URI name")
	}
	switch key := leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < minRSA {
			return fmt.Errorf("the RSA key has %d bits, Envoy wants %d or more", n, minRSA)
		}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
		default:
			return fmt.Errorf("the ECDSA key is on curve %s, Envoy takes P-256, P-384 and P-521", key.Params().Name)
		}
		if leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0 {
			return errors.New("the ECDSA certificate's key usage does not allow digital signatures, which TLS needs")
		}
	case ed25519.PublicKey:
	default:
		return fmt.Errorf("the key is of kind %s, Envoy takes RSA, ECDSA and Ed25519", leaf.PublicKeyAlgorithm)
	}
	return nil
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}
