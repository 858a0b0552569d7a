//go:build linux

package e2e

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse/test/certs"
)

// authority is a certificate authority of this test run.
type authority = func() *certs.Certificate

var (
	// testAuthority signs what servers show, clientAuthority what clients show.
	testAuthority   = sync.OnceValue(func() *certs.Certificate { return certs.Authority("gatehouse e2e") })
	clientAuthority = sync.OnceValue(func() *certs.Certificate { return certs.Authority("gatehouse e2e clients") })
	// otherAuthority is one that nobody has reason to trust.
	otherAuthority = sync.OnceValue(func() *certs.Certificate { return certs.Authority("gatehouse e2e other") })
)

// pair is a certificate with its key, both PEM.
type pair struct{ cert, key []byte }

// mustStaple is the TLS feature extension that asks for OCSP stapling (RFC 7633).
var mustStaple = pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}, Value: []byte{0x30, 0x03, 0x02, 0x01, 0x05}}

// issue signs a server's certificate for the hosts, after change has been applied
// to it.
func issue(change func(*x509.Certificate), hosts ...string) pair {
	return sign(testAuthority, nil, func(c *x509.Certificate) {
		c.Subject.CommonName = "e2e server"
		c.DNSNames = hosts
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		change(c)
	})
}

// issueClient signs a client's certificate with the subject CN=subject.
func issueClient(by authority, subject string) pair {
	return sign(by, nil, func(c *x509.Certificate) {
		c.Subject.CommonName = subject
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

// sign makes a certificate of key, or of a new one, with what fill adds to it.
func sign(by authority, key crypto.Signer, fill func(*x509.Certificate)) pair {
	template := &x509.Certificate{NotBefore: time.Now().Add(-24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature}
	fill(template)
	made := certs.Sign(template, key, by())
	return pair{cert: made.PEM(), key: made.KeyPEM()}
}

// The ways in which a Secret can be of no use.
const (
	secretExpired    = "expired"
	secretMismatched = "mismatched" // the key is another certificate's
	secretGarbage    = "garbage"    // not PEM
	secretEmpty      = "empty"      // PEM without a certificate in it
	secretStaple     = "staple"     // OCSP must-staple
	secretForeign    = "foreign"    // beside the private key stands another's public one
	secretUsage      = "usage"      // an ECDSA certificate that is not for signatures
)

// secretManifest returns a TLS Secret for the hosts; flaw is empty for a good one.
func secretManifest(namespace, name, flaw string, hosts ...string) (string, error) {
	change := func(c *x509.Certificate) {
		switch flaw {
		case secretExpired:
			c.NotAfter = time.Now().Add(-time.Hour)
		case secretUsage:
			c.KeyUsage = x509.KeyUsageKeyEncipherment
		case secretStaple:
			c.ExtraExtensions = append(c.ExtraExtensions, mustStaple)
		}
	}
	p := issue(change, hosts...)
	switch flaw {
	case "", secretExpired, secretUsage, secretStaple:
	case secretMismatched:
		p.key = issue(change, hosts...).key
	case secretForeign:
		key, err := foreignKey(p.key)
		if err != nil {
			return "", err
		}
		p.key = key
	case secretGarbage:
		p.cert = []byte("this is not a certificate")
	case secretEmpty:
		p.cert = []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
	default:
		return "", fmt.Errorf("no such flaw of a Secret: %q", flaw)
	}
	return p.manifest(namespace, name), nil
}

// foreignKey returns an ECDSA key with another's public key beside it. Go computes the
// public key of the private one; Envoy reads it, and finds that they don't belong
// together.
func foreignKey(key []byte) ([]byte, error) {
	block, _ := pem.Decode(key)
	mine, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	other := certs.Key()
	public := func(k *ecdsa.PrivateKey) []byte {
		point, err := k.PublicKey.Bytes()
		if err != nil {
			panic(err) // a key that was made here
		}
		return point
	}
	der, err := x509.MarshalECPrivateKey(mine.(*ecdsa.PrivateKey))
	if err != nil {
		return nil, err
	}
	der = bytes.Replace(der, public(mine.(*ecdsa.PrivateKey)), public(other), 1)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// manifest is the TLS Secret of a certificate.
func (p pair) manifest(namespace, name string) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`---
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s}
type: kubernetes.io/tls
data:
  tls.crt: %s
  tls.key: %s
`, name, namespace, encode(p.cert), encode(p.key))
}

// rsaSecretManifest is secretManifest with a key of RSA instead of ECDSA.
func rsaSecretManifest(namespace, name string, hosts ...string) (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	p := sign(testAuthority, key, func(c *x509.Certificate) {
		c.Subject.CommonName = "e2e server"
		c.DNSNames = hosts
		c.KeyUsage |= x509.KeyUsageKeyEncipherment
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
	return p.manifest(namespace, name), nil
}

// caManifest returns a ConfigMap with the authority's certificate as ca.crt.
func caManifest(ca authority, namespace, name string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: %s}
data:
  ca.crt: |
%s
`, name, namespace, indent(indent(string(ca().PEM()))))
}

// trustBundle returns a ClusterTrustBundle with the run's own authority. It has no
// namespace.
func trustBundle(name string) string {
	return fmt.Sprintf("---\napiVersion: certificates.k8s.io/v1\nkind: ClusterTrustBundle\nmetadata: {name: %s}\nspec:\n  trustBundle: |\n%s\n",
		name, indent(indent(string(testAuthority().PEM()))))
}
