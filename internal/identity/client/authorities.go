package client

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
)

// authorities are what the file had last.
type authorities struct {
	raw  []byte
	pool *x509.CertPool
}

// roots returns the authorities that are in the file now.
func (c *Client) roots() (*x509.CertPool, error) {
	raw, err := os.ReadFile(c.o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("the controller's authorities: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.authorities != nil && bytes.Equal(c.authorities.raw, raw) {
		return c.authorities.pool, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("the controller's authorities: %s has no certificate in PEM", c.o.CAFile)
	}
	c.authorities = &authorities{raw: raw, pool: pool}
	return pool, nil
}
