package envoy

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
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

func checkPair(s *ir.Secret) error {
	pair, err := tls.X509KeyPair([]byte(s.Certificate), []byte(s.Key.Reveal()))
	if err != nil {
		return fmt.Errorf("certificate and key can't be used: %w", err)
	}
	switch key := pair.PrivateKey.(type) {
	case *rsa.PrivateKey:
		if n := key.N.BitLen(); n < minRSA {
			return fmt.Errorf("the RSA key has %d bits, Envoy wants %d or more", n, minRSA)
		}
	case *ecdsa.PrivateKey:
	default:
		return errors.New("the key is neither RSA nor ECDSA, the kinds that Envoy accepts")
	}
	return nil
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}
