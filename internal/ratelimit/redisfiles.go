package ratelimit

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// What a Redis is reached with is read from files for each new connection, so that a password or
// an authority that is replaced is taken without a restart.

// The files of a directory of credentials.
const (
	userFile     = "username" // where there is none, it is the server's default user
	passwordFile = "password"
)

// CredentialsIn returns what RedisOptions.Credentials reads from a directory. While a file can't
// be read, what was read last is used. The error is that of the first reading.
func CredentialsIn(dir string) (func() (user, password string), error) {
	user, password, err := readCredentials(dir)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func() (string, string) {
		mu.Lock()
		defer mu.Unlock()
		if u, p, err := readCredentials(dir); err == nil {
			user, password = u, p
		}
		return user, password
	}, nil
}

func readCredentials(dir string) (user, password string, err error) {
	read := func(name string) (string, error) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		return strings.TrimRight(string(text), "\r\n"), err
	}
	if user, err = read(userFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	if password, err = read(passwordFile); err != nil {
		return "", "", err
	}
	if password == "" {
		return "", "", fmt.Errorf("%s is empty", filepath.Join(dir, passwordFile))
	}
	return user, password, nil
}

// VerifiedBy returns how a Redis of this name is known: by a certificate of the authorities in a
// file, or of those of the system if the file is "".
func VerifiedBy(authorities, name string) (*tls.Config, error) {
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
