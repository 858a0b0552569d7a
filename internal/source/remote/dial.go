package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// TLS says how a server is known, and what is shown to it. Files are read at each connection.
type TLS struct {
	CA         string // file of the authorities that its certificate may be of; empty for the system's
	Cert, Key  string // files of the certificate to show; empty for none
	ServerName string // that its certificate is to have; empty for the host of the address
	// Plaintext does without TLS.
	Plaintext bool
}

// Check reports what is wrong with options.
func (o Options) Check() error {
	host, port, err := net.SplitHostPort(o.Address)
	switch {
	case err != nil:
		return fmt.Errorf("remote %q: the address must be HOST:PORT", o.Address)
	case host == "" || port == "":
		return fmt.Errorf("remote %q: the address must have a host and a port", o.Address)
	case (o.TLS.Cert == "") != (o.TLS.Key == ""):
		return fmt.Errorf("remote %s: a certificate needs its key, and a key its certificate", o.Address)
	case o.TLS.Plaintext && (o.TLS.CA != "" || o.TLS.Cert != "" || o.TLS.ServerName != ""):
		return fmt.Errorf("remote %s: without TLS there are no certificates: leave out either of them", o.Address)
	case o.TLS.Plaintext && o.TokenFile != "" && !Loopback(host):
		return fmt.Errorf("remote %s: a token is sent with TLS only, or to this machine", o.Address)
	}
	return nil
}

// Loopback reports whether a host is this machine.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (o Options) dialOptions() ([]grpc.DialOption, error) {
	creds, err := o.credentials()
	if err != nil {
		return nil, err
	}
	out := []grpc.DialOption{grpc.WithTransportCredentials(creds)}
	if o.TokenFile != "" {
		token, err := readToken(o.TokenFile)
		if err != nil {
			return nil, err
		}
		out = append(out, grpc.WithPerRPCCredentials(bearer{token, o.TLS.Plaintext}))
	}
	return out, nil
}

func (o Options) credentials() (credentials.TransportCredentials, error) {
	if o.TLS.Plaintext {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.TLS.ServerName}
	if o.TLS.CA != "" {
		text, err := os.ReadFile(o.TLS.CA)
		if err != nil {
			return nil, fmt.Errorf("authorities of the config server: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("authorities of the config server: %s has no certificate in PEM", o.TLS.CA)
		}
	}
	if o.TLS.Cert != "" {
		certificate, err := tls.LoadX509KeyPair(o.TLS.Cert, o.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate for the config server: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return credentials.NewTLS(config), nil
}

// maxToken bounds a token, in bytes: it is a header's value.
const maxToken = 8 << 10

func readToken(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("token for the config server: %w", err)
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", fmt.Errorf("token for the config server: %s is empty", file)
	case len(token) > maxToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("token for the config server: %s is to have one token, a line", file)
	}
	return token, nil
}

// bearer shows a token.
type bearer struct {
	token     string
	plaintext bool
}

// GetRequestMetadata is of credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// RequireTransportSecurity is of credentials.PerRPCCredentials.
func (b bearer) RequireTransportSecurity() bool { return !b.plaintext }
