package ratelimit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/trust"
	"github.com/gatehouse-dev/gatehouse/test/port"
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

	number := strconv.Itoa(port.OfTest(t))
	address := net.JoinHostPort("127.0.0.1", number)
	startRedis(t, append([]string{"--tls-port", number, "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-ca-cert-file", certFile, "--tls-auth-clients", "no",
		"--user"}, strings.Fields("gatehouse on >a-password ~gatehouse:* "+redisPermissions)...)...)

	secret := t.TempDir()
	keep := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(secret, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep("username", "gatehouse\n")
	keep("password", "a-password\n")
	keep("ca.crt", string(certificate))
	credentials, err := CredentialsIn(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		name, authorities string
		fails             bool
	}{
		"verified":     {"127.0.0.1", "ca.crt", false},
		"another name": {"redis.example", "ca.crt", true},
		"the system's": {"127.0.0.1", "", true},
	} {
		file := ""
		if c.authorities != "" {
			file = filepath.Join(secret, c.authorities)
		}
		config, err := trust.Server(file, c.name)
		if err != nil {
			t.Fatal(err)
		}
		store, err := NewRedis(RedisOptions{Gateway: gatewayName, Addresses: []string{address}, Credentials: credentials, TLS: config, timeout: patience})
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
	if _, err := trust.Server(filepath.Join(secret, "password"), "127.0.0.1"); err == nil {
		t.Error("a password is an authority")
	}
}

// A password that is replaced is taken with the next connection, and one that can't be read is
// what it was.
func TestRedisCredentials(t *testing.T) {
	secret := t.TempDir()
	if _, err := CredentialsIn(secret); err == nil {
		t.Error("there are credentials in an empty directory")
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(secret, "password"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	if _, err := CredentialsIn(secret); err == nil {
		t.Error("an empty password is one")
	}
	write("before")
	credentials, err := CredentialsIn(secret)
	if err != nil {
		t.Fatal(err)
	}
	server := startRedis(t, "--requirepass", "after")
	store, err := NewRedis(RedisOptions{Gateway: gatewayName, Addresses: []string{server.address}, Credentials: credentials, timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	hits := []Hit{hit("a", 9, time.Hour, 1)}
	if _, err := store.Take(t.Context(), hits, make([]Verdict, 1)); err == nil || strings.Contains(err.Error(), "before") {
		t.Errorf("with the former password: %v", err)
	}
	write("after")
	take(t, store, hits...)
	if err := os.Remove(filepath.Join(secret, "password")); err != nil {
		t.Fatal(err)
	}
	if user, password := credentials(); user != "" || password != "after" {
		t.Errorf("without the file: %q, %q", user, password)
	}
}

// What doc.go names for a user's access list.
const redisPermissions = "-@all +hello +auth +ping +eval +evalsha +get +pttl +set +incrby +pexpire"
