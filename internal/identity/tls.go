package identity

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/gatehouse-dev/gatehouse/internal/object"
)

// ServerTLS returns what a controller's port is served with: our newest
// certificate, and the authorities as they are at each handshake. With mode
// RequireAndVerifyClientCert no client without a certificate of ours gets through the
// handshake.
func (a *Authority) ServerTLS(mode tls.ClientAuthType, protocols ...string) *tls.Config {
	return a.serverTLS(func(c *tls.Config) error {
		c.ClientAuth, c.ClientCAs = mode, a.pool
		return nil
	}, protocols)
}

// ServerTLSFor is ServerTLS for a port whose clients have certificates of other authorities: nobody else gets through
// the handshake. clients is called for each; nil is nobody.
func (a *Authority) ServerTLSFor(clients func() *x509.CertPool, protocols ...string) *tls.Config {
	return a.serverTLS(func(c *tls.Config) error {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, clients()
		if c.ClientCAs == nil { // Go would take the system's
			return errNotReady
		}
		return nil
	}, protocols)
}

// serverTLS has restrict say which clients get in, for each of them and under the mutex.
func (a *Authority) serverTLS(restrict func(*tls.Config) error, protocols []string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.own == nil {
				return nil, errNotReady
			}
			c := &tls.Config{
				MinVersion:   tls.VersionTLS13,
				NextProtos:   protocols,
				Certificates: []tls.Certificate{*a.own},
				// A resumed session would be that of a certificate which may be
				// over by now.
				SessionTicketsDisabled: true,
			}
			return c, restrict(c)
		},
	}
}

// ClientTLS returns what a controller dials another with.
func (a *Authority) ClientTLS() (*tls.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own == nil {
		return nil, errNotReady
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		RootCAs:      a.pool,
		ServerName:   a.o.Service + "." + a.o.Namespace + ".svc",
		Certificates: []tls.Certificate{*a.own},
		VerifyConnection: func(cs tls.ConnectionState) error {
			_, err := Controller(cs)
			return err
		},
	}, nil
}

// Proxy returns the Gateway and the pod that the certificate of a connection names.
// It is right for a connection that has long been open, too: a certificate that is
// over, or whose root is trusted no more, is refused.
func (a *Authority) Proxy(cs tls.ConnectionState) (gateway object.Name, pod string, err error) {
	gateway, pod, err = Gateway(cs)
	if err != nil {
		return object.Name{}, "", err
	}
	a.mu.Lock()
	pool := a.pool
	a.mu.Unlock()
	if pool == nil {
		return object.Name{}, "", errNotReady // without roots, Go would take the system's
	}
	_, err = cs.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots:     pool,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return gateway, pod, err
}
