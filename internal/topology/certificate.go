package topology

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-dev/gatehouse/internal/flow"
	"github.com/gatehouse-dev/gatehouse/internal/ir"
)

// declareCertificates reads the Secrets that listeners of ours refer to, each once
// for each of its versions, however many refer to it.
func (g *Graph) declareCertificates() flow.Table[ir.Name, *Certificate] {
	bySecret := flow.NewIndex(g.owned, func(_ ir.Name, gw *gwv1.Gateway, yield func(ir.Name)) {
		seen := map[ir.Name]bool{}
		for i := range gw.Spec.Listeners {
			for _, ref := range certificateRefs(&gw.Spec.Listeners[i]) {
				name := secretName(gw, ref)
				if isSecret(ref) && !seen[name] {
					seen[name] = true
					yield(name)
				}
			}
		}
	}, ir.Name.Compare)
	wanted := flow.Group("topology-secrets", bySecret,
		func(_ *flow.Ctx, _ ir.Name, _ flow.Members[ir.Name, *gwv1.Gateway]) (struct{}, bool) {
			return struct{}{}, true
		}, flow.Equal(flow.Same[struct{}]))
	return flow.Map("topology-certificates", wanted,
		func(c *flow.Ctx, name ir.Name, _ struct{}, emit func(ir.Name, *Certificate)) {
			if secret, ok := flow.Get(c, g.in.Secrets, name); ok {
				emit(name, readCertificate(name, secret))
			}
		})
}

// Equal reports whether two nodes hold the same certificate.
func (c *Certificate) Equal(o *Certificate) bool { return *c == *o }

// certificateRefs returns the references that the listener's protocol makes use of.
func certificateRefs(l *gwv1.Listener) []gwv1.SecretObjectReference {
	if l.Protocol != gwv1.HTTPSProtocolType || l.TLS == nil {
		return nil
	}
	return l.TLS.CertificateRefs
}

func isSecret(ref gwv1.SecretObjectReference) bool {
	return valueOr(ref.Group, "") == "" && valueOr(ref.Kind, "Secret") == "Secret"
}

func secretName(gw *gwv1.Gateway, ref gwv1.SecretObjectReference) ir.Name {
	return ir.Name{
		Namespace: string(valueOr(ref.Namespace, gwv1.Namespace(gw.Namespace))),
		Name:      string(ref.Name),
	}
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// readCertificate takes the pair out of a Secret, or says what is wrong with it.
// What Envoy would refuse is refused here, where one listener pays for it: a bad
// pair that reaches a proxy stalls every handshake that selects it.
func readCertificate(name ir.Name, s *corev1.Secret) *Certificate {
	c := &Certificate{Name: name}
	leaf, err := checkPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Chain = string(s.Data[corev1.TLSCertKey])
	c.Key = ir.Sensitive(s.Data[corev1.TLSPrivateKeyKey])
	c.Validity = Validity{NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter}
	return c
}

// checkPair returns the leaf of a usable chain and key. Its errors quote nothing
// of what it was given.
func checkPair(chain, key []byte) (*x509.Certificate, error) {
	switch {
	case len(chain) == 0:
		return nil, errors.New("tls.crt is missing; it must hold the certificate chain as PEM")
	case len(key) == 0:
		return nil, errors.New("tls.key is missing; it must hold the private key as PEM")
	}
	leaf, err := checkChain(chain)
	if err != nil {
		return nil, err
	}
	if err := checkKeyBlock(key); err != nil {
		return nil, err
	}
	if err := checkPublicKey(leaf); err != nil {
		return nil, err
	}
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		if strings.Contains(err.Error(), "does not match") {
			return nil, errors.New("tls.key does not belong to the certificate in tls.crt; put the key in with which the certificate was requested")
		}
		return nil, errors.New("tls.key is not a private key that can be read; use unencrypted PKCS #8, PKCS #1 or SEC 1")
	}
	return leaf, nil
}

// checkChain parses every certificate: Envoy reads the whole chain too.
func checkChain(chain []byte) (leaf *x509.Certificate, err error) {
	n := 0
	for rest := chain; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		n++
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in tls.crt can't be read: %w", n, err)
		}
		if leaf == nil {
			leaf = cert
		}
	}
	if leaf == nil {
		return nil, errors.New("tls.crt holds no certificate in PEM form")
	}
	return leaf, nil
}

func checkKeyBlock(key []byte) error {
	for rest := key; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return errors.New("tls.key holds no private key in PEM form")
		}
		if strings.HasPrefix(block.Type, "ENCRYPTED") || block.Headers["DEK-Info"] != "" {
			return errors.New("tls.key is encrypted; store it without a passphrase")
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			return nil
		}
	}
}

// minRSABits is the least that Envoy takes.
const minRSABits = 2048

// checkPublicKey refuses the keys that Envoy 1.40.0 refuses.
func checkPublicKey(leaf *x509.Certificate) error {
	switch key := leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < minRSABits {
			return fmt.Errorf("the RSA key in tls.crt has %d bits; %d are the least", n, minRSABits)
		}
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
		default:
			return errors.New("the ECDSA key in tls.crt is on an unsupported curve; use P-256, P-384 or P-521")
		}
	case ed25519.PublicKey:
	default:
		return fmt.Errorf("tls.crt has a key of type %s; use ECDSA, RSA or Ed25519", leaf.PublicKeyAlgorithm)
	}
	return nil
}
