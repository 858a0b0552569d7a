package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// errNotReady is returned before there are roots.
var errNotReady = errors.New("the authority is not ready yet")

// Issue signs a certificate for a pod of a Gateway's fleet. It returns the chain
// and the authorities, in PEM.
func (a *Authority) Issue(key any, gateway object.Name, role Role, pod string) (chain, authorities []byte, until time.Time, err error) {
	a.mu.Lock()
	r, bundle := a.roots, a.bundle
	a.mu.Unlock()
	if r == nil {
		return nil, nil, time.Time{}, errNotReady
	}
	uses := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if role == Limits { // proxies connect to it
		uses = append(uses, x509.ExtKeyUsageServerAuth)
	}
	cert, err := r.current.sign(&x509.Certificate{
		URIs: []*url.URL{memberURI(gateway, role, pod)}, ExtKeyUsage: uses,
	}, time.Now(), a.o.Life, key)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	return encodeCert(cert), bundle, cert.NotAfter, nil
}

// serve renews our own certificate if that is due: two thirds of its life are
// over, or another root signs now.
func (a *Authority) serve(now time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.roots == nil || a.signer == a.roots.current && now.Before(a.renew) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	host := a.o.Service + "." + a.o.Namespace + ".svc"
	cert, err := a.roots.current.sign(&x509.Certificate{
		URIs:        []*url.URL{controllerURI(a.o.Pod)},
		DNSNames:    []string{host, host + ".cluster.local", "localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, now, a.o.Life, &key.PublicKey)
	if err != nil {
		return err
	}
	if a.own == nil {
		close(a.ready)
	}
	a.own = &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}
	a.signer = a.roots.current
	a.renew = now.Add(cert.NotAfter.Sub(now) * 2 / 3)
	return nil
}

// parseCSR returns the key of a request, which the sender must have. The names in
// it are not looked at.
func parseCSR(raw []byte) (key any, err error) {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("csr is not a certificate request in PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, errors.New("csr is not a certificate request (PKCS #10)")
	}
	switch key := csr.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() {
			return nil, errors.New("the key in csr must be ECDSA P-256 or Ed25519")
		}
	case ed25519.PublicKey:
	default:
		return nil, errors.New("the key in csr must be ECDSA P-256 or Ed25519")
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, errors.New("csr is not signed with its own key")
	}
	return csr.PublicKey, nil
}
