// Package trust says by what servers of others are known: certificates of authorities in a file, such as one of a mounted
// Secret, which may be another one at each handshake.
//
// Proxies and controllers know each other otherwise, see package identity.
package trust

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Server returns how a server of this name is known: by a certificate of the authorities in a
// file, or of those of the system if the file is "". The name may be an IP address.
func Server(authorities, name string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if authorities == "" {
		return config, nil
	}
	if _, err := readAuthorities(authorities); err != nil {
		return nil, err
	}
	// The verification that is skipped is done below, with what is in the file at the time.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(cs tls.ConnectionState) error {
		roots, err := readAuthorities(authorities)
		if err != nil {
			return err
		}
		between := x509.NewCertPool()
		for _, c := range cs.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err = cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: name})
		return err
	}
	return config, nil
}

func readAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return roots, nil
}
