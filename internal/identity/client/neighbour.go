package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Pods of one Gateway's fleet talk to each other: proxies to those that count requests for them.
// Both sides show the certificates that the controller has issued, which name the Gateway and
// what the pod is there.

// DialLimits connects to what counts requests for a Gateway, as one of its proxies.
func (c *Client) DialLimits(ctx context.Context, address, namespace, gateway string) (net.Conn, error) {
	config, err := c.TLS(ctx)
	if err != nil {
		return nil, err
	}
	roots := config.RootCAs
	config.NextProtos = []string{"h2"}
	// What a Service is called says nothing about whose it is. The certificate does, which is
	// looked at here in full.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(cs tls.ConnectionState) error {
		return verify(cs, roots, x509.ExtKeyUsageServerAuth, name(namespace, gateway, "limits"))
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialTimeout}, Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to what counts requests at %s: %w", address, err)
	}
	return conn, nil
}

// LimitsTLS is what requests are counted behind: for the proxies of a Gateway, and for nobody
// else.
func (c *Client) LimitsTLS(namespace, gateway string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			config, err := c.TLS(hello.Context())
			if err != nil {
				return nil, err
			}
			roots := config.RootCAs
			config.NextProtos = []string{"h2"}
			config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, roots
			config.SessionTicketsDisabled = true // a resumed one would be that of a certificate that is over
			config.VerifyConnection = func(cs tls.ConnectionState) error {
				return verify(cs, roots, x509.ExtKeyUsageClientAuth, name(namespace, gateway, "pod"))
			}
			return config, nil
		},
	}
}

// name is what the names of a fleet's pods of one role begin with: see package identity.
func name(namespace, gateway, role string) string {
	return "spiffe://gatehouse.dev/ns/" + namespace + "/gateway/" + gateway + "/" + role + "/"
}

// verify checks a certificate: that the controller has issued it for this use, and for a pod
// whose name begins so.
func verify(cs tls.ConnectionState, roots *x509.CertPool, use x509.ExtKeyUsage, prefix string) error {
	if len(cs.PeerCertificates) == 0 || roots == nil {
		return errors.New("there is no certificate")
	}
	leaf := cs.PeerCertificates[0]
	between := x509.NewCertPool()
	for _, c := range cs.PeerCertificates[1:] {
		between.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
		return err
	}
	if len(leaf.URIs) != 1 {
		return fmt.Errorf("the certificate has %d names, not one", len(leaf.URIs))
	}
	pod, ok := strings.CutPrefix(leaf.URIs[0].String(), prefix)
	if !ok || pod == "" || strings.Contains(pod, "/") {
		return fmt.Errorf("the certificate is that of %s, and not of a pod of %s", leaf.URIs[0], prefix)
	}
	return nil
}
