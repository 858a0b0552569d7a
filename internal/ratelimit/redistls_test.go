package ratelimit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Counts go over TLS, to a server whose certificate is verified, by a user of the server's
// access list who may do nothing but what the script needs.
func TestRedisTLSAndUser(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile := write("cert.pem", certificate)
	keyFile := write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))

	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := lis.Addr().String()
	lis.Close()
	_, port, _ := net.SplitHostPort(address)
	startRedis(t, append([]string{"--tls-port", port, "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-ca-cert-file", certFile, "--tls-auth-clients", "no",
		"--user"}, strings.Fields("gatehouse on >a-password ~gatehouse:* "+redisPermissions)...)...)

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	for name, c := range map[string]struct {
		roots *x509.CertPool
		fails bool
	}{
		"verified": {roots, false},
		"foreign":  {x509.NewCertPool(), true},
	} {
		store, err := NewRedis(RedisOptions{
			Gateway: gatewayName, Addresses: []string{address},
			Credentials: func() (string, string) { return "gatehouse", "a-password" },
			TLS:         &tls.Config{RootCAs: c.roots},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		for i := range 2 {
			refused, err := store.Take(t.Context(), []Hit{hit("a", 1, time.Hour, 1)}, make([]Verdict, 1))
			if (err != nil) != c.fails || err == nil && refused != (i == 1) {
				t.Errorf("%s: hit %d: refused %v, %v", name, i, refused, err)
			}
		}
	}
}

// What doc.go names for a user's access list.
const redisPermissions = "-@all +hello +auth +ping +eval +evalsha +get +pttl +set +incrby +pexpire"
