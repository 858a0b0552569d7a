//go:build linux

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gatehouse-dev/gatehouse/test/port"
)

// platformAuthority is an issuer `platform` for the whole cluster, with a certificate of its own.
const platformAuthority = `
apiVersion: v1
kind: Namespace
metadata: {name: cert-manager}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: itself}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {namespace: cert-manager, name: platform}
spec:
  isCA: true
  commonName: platform
  secretName: platform
  privateKey: {algorithm: ECDSA}
  issuerRef: {kind: ClusterIssuer, name: itself}
---
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: platform}
spec: {ca: {secretName: platform}}
`

// startCertManager starts cert-manager with an authority, and returns who trusts that.
func (n *neighbourhood) startCertManager(t *testing.T) *x509.CertPool {
	t.Helper()
	n.start(t, filepath.Join(n.dir, "certmanager"), "--kubeconfig", n.admin)
	n.apply(platformAuthority)
	secret := &corev1.Secret{}
	eventually(t, neighbourTimeout, func() error {
		return n.Get(t.Context(), client.ObjectKey{Namespace: "cert-manager", Name: "platform"}, secret)
	})
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("cert-manager's authority has no certificate")
	}
	return pool
}

// publicWeb is what a team writes for the class of the library.
func publicWeb(listener int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: gatehouse.dev/v1alpha1
kind: GatewayValues
metadata: {namespace: shop, name: web}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: web}
  defaults: {issuer: platform}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: web}
spec:
  gatewayClassName: public-web
  listeners:
  - {name: https, port: %d, protocol: HTTPS, hostname: shop.example.test, tls: {certificateRefs: [{name: web-tls}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: web}
spec:
  parentRefs: [{name: web}]
  rules: [{backendRefs: [{name: app, port: 80}]}]
`, listener)
}

// clientThatTrusts asks an address, whatever names it is given. Each request has a connection of its own.
func clientThatTrusts(authority *x509.CertPool, address string) *http.Client {
	return &http.Client{Timeout: callTimeout, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority}, DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
}

// servedPublicWeb is a neighbourhood with a Gateway of the class public-web that is served, and where.
func servedPublicWeb(t *testing.T) (n *neighbourhood, authority *x509.CertPool, address string) {
	t.Helper()
	n = startNeighbourhood(t)
	authority = n.startCertManager(t)
	n.sh("", "kubectl apply --server-side -f "+library(t, "public-web"))
	listener := port.OfTest(t)
	n.apply(publicWeb(listener) + backendAt(t, "shop", "app", "198.18.0.11"))
	n.serve(t, "shop", "web", "198.18.0.2")
	gateway := n.gatewayIs(t, "shop", "web", "Programmed")
	return n, authority, net.JoinHostPort(gateway.Status.Addresses[0].Value, strconv.Itoa(listener))
}

// TestNeighbourCertificate follows a team from its Gateway to an answer over TLS: the class public-web of
// the library asks for the certificate, cert-manager issues it, and Envoy shows it.
func TestNeighbourCertificate(t *testing.T) {
	_, authority, address := servedPublicWeb(t)
	web := clientThatTrusts(authority, address)
	eventually(t, neighbourTimeout, func() error {
		code, err := httpStatus(web, "https://shop.example.test/")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("status %d", code)
		}
		return err
	})
}

// library is a folder of blueprints/, without its cases.
func library(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../../blueprints", name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
