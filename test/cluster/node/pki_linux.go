package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// frontProxy is what the API server calls itself to those who answer for a part of its API.
const frontProxy = "front-proxy-client"

// authority signs the certificates of a cluster; it lives as long as it.
type authority struct {
	dir  string // where files go: NAME.crt, NAME.key
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// credentials makes all keys and certificates, and kubeconfigs for those who
// need one.
func credentials(dir string) error {
	a := &authority{dir: filepath.Join(dir, "pki")}
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	if err := a.issue("ca", pkix.Name{CommonName: "cluster"}); err != nil {
		return err
	}
	for _, c := range []struct {
		name    string
		subject pkix.Name
		hosts   []string
	}{
		{"apiserver", pkix.Name{CommonName: "kube-apiserver"}, []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", nodeAddress, apiService}},
		{"apiserver-kubelet", pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}}, nil},
		{"kubelet", pkix.Name{CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}}, []string{nodeName, nodeAddress}},
		{"admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}, nil},
		{"kube-controller-manager", pkix.Name{CommonName: "system:kube-controller-manager"}, nil},
		{"kube-scheduler", pkix.Name{CommonName: "system:kube-scheduler"}, nil},
		{"kube-proxy", pkix.Name{CommonName: "system:kube-proxy"}, nil},
	} {
		if err := a.issue(c.name, c.subject, c.hosts...); err != nil {
			return err
		}
		if err := kubeconfig(dir, c.name); err != nil {
			return err
		}
	}
	if err := a.serviceAccounts(); err != nil {
		return err
	}
	// An authority of its own, since whoever has a certificate of it may speak for anybody.
	front := &authority{dir: a.dir}
	if err := front.issue("front-proxy-ca", pkix.Name{CommonName: "front-proxy"}); err != nil {
		return err
	}
	return front.issue("front-proxy-client", pkix.Name{CommonName: frontProxy})
}

// issue makes a key and a certificate. The first is the authority's own.
func (a *authority) issue(name string, subject pkix.Name, hosts ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		template.IsCA, template.BasicConstraintsValid, template.ExtKeyUsage = true, true, nil
		template.KeyUsage |= x509.KeyUsageCertSign
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return err
		}
		a.key = key
	}
	if err := a.write(name+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return a.writeKey(name+".key", key)
}

// serviceAccounts makes the key that signs their tokens.
func (a *authority) serviceAccounts() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := a.write("serviceaccounts.pub", "PUBLIC KEY", der); err != nil {
		return err
	}
	return a.writeKey("serviceaccounts.key", key)
}

func (a *authority) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return a.write(name, "EC PRIVATE KEY", der)
}

func (a *authority) write(name, kind string, der []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func kubeconfig(dir, name string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: cluster, cluster: {server: "https://127.0.0.1:6443", certificate-authority: %[1]s/pki/ca.crt}}]
users: [{name: user, user: {client-certificate: %[1]s/pki/%[2]s.crt, client-key: %[1]s/pki/%[2]s.key}}]
contexts: [{name: cluster, context: {cluster: cluster, user: user}}]
current-context: cluster
`, dir, name)
	return os.WriteFile(filepath.Join(dir, name+".conf"), []byte(text), 0o600)
}
